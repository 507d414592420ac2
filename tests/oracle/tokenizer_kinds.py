"""Small tokenizers that are not byte-level: WordPiece, unigram and SentencePiece-like BPE, with the normalizers, pre-tokenizers and decoders that
go with them."""
import functools
import json
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
T5 = ["<pad>", "</s>", "<unk>"]
FLAGS = [AddedToken("<r>", rstrip=True), AddedToken("<l>", lstrip=True), AddedToken("word", single_word=True), AddedToken("É!", normalized=True),
         AddedToken("Raw", normalized=False)]


def small_charsmap(rules):
    """A precompiled map of these rules: a double array with a block of 256 units for each node, then the replacements."""
    nodes, text = [{"children": {}}], b""
    for key, value in rules.items():
        node = nodes[0]
        for b in key.encode():
            if b not in node["children"]:
                node["children"][b] = len(nodes)
                nodes.append({"children": {}})
            node = nodes[node["children"][b]]
        node["value"] = len(text)
        text += value.encode() + b"\0"
    units, place = [0] * (256 * (len(nodes) + 1)), {0: 0}
    for i, node in enumerate(nodes):  # a child comes after its parent
        base = 256 * (i + 1)
        units[place[i]] |= (place[i] ^ base) << 10 | ("value" in node) << 8
        if "value" in node:
            units[base] = 1 << 31 | node["value"]
        for b, child in node["children"].items():
            units[base ^ b] = b
            place[child] = base ^ b
    return struct.pack("<I%dI" % len(units), 4 * len(units), *units) + text


RULES = {"\t": " ", "\n": " ", "\r": " ", "\x01": "", "\x7f": "", "\u3000": " ", "\ufb01": "fi", "e\u0301": "é", "Ａ": "A", "…": "...", "½": "1/2", "\u200b": "",
         "\u0301": "", "ⅷ": "viii", "\xad": ""}


@functools.lru_cache
def trained(kind, corpus):
    """The "model" part of a tokenizer of that kind; each is trained once."""
    if kind == "WordPiece":
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=900, special_tokens=BERT, show_progress=False, limit_alphabet=150)
        corpus = corpus + tuple(c.lower() for c in corpus)
    elif kind == "Unigram":
        t = Tokenizer(models.Unigram())
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=T5, unk_token="<unk>", show_progress=False)
        corpus = tuple(c for c in corpus if c.isascii() and "\0" not in c) + ("naïve café 日本語 русский",) * 20
    else:
        t = Tokenizer(models.BPE(unk_token="<unk>"))
        t.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)],
                                      show_progress=False, limit_alphabet=150)
    t.train_from_iterator(corpus, trainer)
    return json.loads(t.to_str())["model"]


def wordpiece(corpus, normalizer, pre, prefix="##", unk="[UNK]", max_chars=100, cleanup=True):
    vocab = {k.replace("##", prefix): v for k, v in trained("WordPiece", corpus)["vocab"].items()}
    t = Tokenizer(models.WordPiece(vocab, unk_token=unk, max_input_chars_per_word=max_chars, continuing_subword_prefix=prefix))
    t.normalizer, t.pre_tokenizer = normalizer, pre
    t.decoder = decoders.WordPiece(prefix=prefix, cleanup=cleanup)
    t.add_special_tokens(BERT)
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def wordpieces(corpus):
    n, p = normalizers, pre_tokenizers
    yield "bert uncased", wordpiece(corpus, n.BertNormalizer(), p.BertPreTokenizer())
    t = wordpiece(corpus, n.BertNormalizer(lowercase=False), p.BertPreTokenizer())
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_tokens(FLAGS)
    yield "bert cased, flags", t
    yield "bert accents kept", wordpiece(corpus, n.BertNormalizer(strip_accents=False), p.BertPreTokenizer(), cleanup=False)
    yield "bert odd", wordpiece(corpus, n.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False),
                                p.BertPreTokenizer(), prefix="@", max_chars=5)
    for name, norm in (("nfd strip", n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()])), ("nfkc", n.NFKC()), ("nfkd", n.NFKD()),
                       ("nmt", n.Sequence([n.Nmt(), n.Strip()])), ("strip left", n.Strip(right=False)),
                       ("replace", n.Sequence([n.Replace("th", "zzz"), n.Replace(Regex(r"\s+"), " "), n.Replace("é", ""), n.Prepend("ab c")]))):
        t = wordpiece(corpus, norm, p.Whitespace())
        t.add_tokens(FLAGS)
        yield f"wordpiece {name}", t
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"punctuation {behavior}", wordpiece(corpus, n.NFC(), p.Sequence([p.WhitespaceSplit(), p.Punctuation(behavior)]))


def words(corpus):
    """Word level, and the pre-tokenizers and decoders that few tokenizers have."""
    n, p, d = normalizers, pre_tokenizers, decoders
    pieces = sorted({w for c in corpus for w, _ in p.BertPreTokenizer().pre_tokenize_str(c) if "\0" not in w})[::3]
    vocab = {w: i for i, w in enumerate(["[UNK]", "[PAD]"] + pieces)}
    for name, pre in (("word level", p.BertPreTokenizer()), ("unicode scripts", p.UnicodeScripts()), ("delimiter", p.CharDelimiterSplit("e")),
                      ("fixed length", p.FixedLength(3)), ("scripts in order", p.Sequence([p.WhitespaceSplit(), p.UnicodeScripts(), p.FixedLength(2)]))):
        t = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
        t.pre_tokenizer = pre
        t.decoder = d.BPEDecoder("e") if name == "delimiter" else d.WordPiece()
        t.add_special_tokens(["[PAD]"])
        t.post_processor = processors.BertProcessing(("[PAD]", 1), ("[PAD]", 1))
        yield name, t


def unigram(corpus, normalizer, pre, decoder, byte_fallback=False):
    vocab = [tuple(x) for x in trained("Unigram", corpus)["vocab"]]
    t = Tokenizer(models.Unigram(vocab + [(f"<0x{b:02X}>", 0.0) for b in range(256) if byte_fallback], 2, byte_fallback))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer, t.decoder = pre, decoder
    t.add_special_tokens(T5)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def unigrams(corpus, charsmap=None):
    n, p, d = normalizers, pre_tokenizers, decoders
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            t = unigram(corpus, None, p.Metaspace(prepend_scheme=scheme, split=split), d.Metaspace(prepend_scheme=scheme))
            if split:
                t.add_tokens(FLAGS)
            yield f"unigram metaspace {scheme} split={split}", t
    t = unigram(corpus, n.Sequence([n.Strip(left=False), n.Replace(Regex(" {2,}"), "▁")]),
                p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")]), d.Metaspace())
    t.add_tokens(FLAGS)
    yield "unigram whitespace first", t
    yield "unigram bytes", unigram(corpus, None, p.Metaspace(), d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]), True)
    yield "albert", unigram(corpus, n.Sequence([n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase(),
                                                n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(), d.Metaspace())
    for name, charsmap in (("small", small_charsmap(RULES)),) + ((("real", charsmap),) if charsmap else ()):
        yield f"precompiled {name}", unigram(corpus, n.Precompiled(charsmap), p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), d.Metaspace())
        t = unigram(corpus, n.Sequence([n.Precompiled(charsmap), n.Strip(left=False), n.Replace(Regex(" {2,}"), "▁")]), p.Metaspace(), d.Metaspace())
        t.add_tokens(FLAGS)
        yield f"precompiled {name}, flags", t


def llama(corpus, fallback=True, fuse=True, unk="<unk>", normalizer=None, pre=None):
    n, d = normalizers, decoders
    model = trained("BPE", corpus)
    t = Tokenizer(models.BPE(model["vocab"], [tuple(m) for m in model["merges"]], unk_token=unk, fuse_unk=fuse, byte_fallback=fallback))
    t.normalizer = normalizer or n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    if pre:
        t.pre_tokenizer = pre
    t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    t.add_special_tokens(["<s>", "</s>"])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def llamas(corpus):
    n, p, d = normalizers, pre_tokenizers, decoders
    yield "llama", llama(corpus)
    t = llama(corpus, pre=p.Metaspace(prepend_scheme="first", split=False), normalizer=n.NFC())
    t.add_tokens(FLAGS)
    yield "llama first", t
    t = llama(corpus, normalizer=n.Replace(" ", "▁"), pre=p.Split(" ", "merged_with_previous"))
    t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse()])
    yield "gemma", t
    yield "bpe unk fused", llama(corpus, fallback=False)
    yield "bpe unk", llama(corpus, fallback=False, fuse=False)


def kinds(corpus, charsmap=None):
    corpus = tuple(corpus)
    yield from words(corpus)
    yield from wordpieces(corpus)
    yield from unigrams(corpus, charsmap)
    yield from llamas(corpus)
