"""Small tokenizers with the parts of the models we run: GPT-2, GPT-J, OPT, GPT-NeoX, RoBERTa, BART, Blenderbot, BLOOM, Llama 1 to 3, Mistral, Qwen, Gemma,
T5, mT5, mBART, Pegasus, BERT, DistilBERT, MiniLM, ALBERT. Only the vocabularies are trained here; normalizer, pre-tokenizer, post-processor, decoder and added tokens are
those of the published tokenizer.json files."""
import functools

from tokenizers import AddedToken, Regex, Tokenizer, decoders as d, models, normalizers as n, pre_tokenizers as p, processors, trainers
from tokenizer_kinds import RULES, small_charsmap, trained

EOT = "<|endoftext|>"
QWEN = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
LLAMA3 = QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
BLOOM = r""" ?[^(\s|[.,!?…。，、।۔،])]+"""
TEKKEN = (r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"""
          r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""")


def template(single, pair, t):
    names = {x.split(":")[0] for x in (single + " " + pair).split() if not x.startswith("$")}
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(x, t.token_to_id(x)) for x in sorted(names)])


@functools.lru_cache
def trained_bytes(corpus, specials, ignore_merges):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    t.pre_tokenizer = p.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=700, special_tokens=list(specials), show_progress=False, initial_alphabet=p.ByteLevel.alphabet()))
    return t.to_str()


def byte_level(corpus, specials, split=None, normalizer=None, prefix=False, ignore_merges=False):
    t = Tokenizer.from_str(trained_bytes(corpus, tuple(specials), ignore_merges))
    t.pre_tokenizer = p.ByteLevel(add_prefix_space=prefix)
    if split:
        t.pre_tokenizer = p.Sequence([p.Split(Regex(split), "isolated"), p.ByteLevel(add_prefix_space=prefix, use_regex=False)])
    if normalizer:
        t.normalizer = normalizer
    t.decoder, t.post_processor = d.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    return t


def byte_levels(corpus):
    roberta = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    yield "GPT-2", byte_level(corpus, [EOT])
    t = byte_level(corpus, [EOT])
    t.add_tokens([AddedToken(f"<|extratoken_{i}|>", normalized=True) for i in range(1, 4)])
    yield "GPT-J", t
    t = byte_level(corpus, [EOT, "<|padding|>"], normalizer=n.NFC())
    t.add_tokens([AddedToken(" " * k, normalized=True) for k in range(24, 1, -1)])
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    yield "GPT-NeoX", t
    t = byte_level(corpus, roberta)
    t.post_processor = template("</s> $A", "</s> $A </s>:1 $B:1", t)
    yield "OPT", t
    for name, prefix in (("RoBERTa", False), ("BART", False), ("RoBERTa prefix", True)):
        t = byte_level(corpus, roberta, prefix=prefix)
        t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=prefix)
        yield name, t
    t = byte_level(corpus, roberta, prefix=True)
    t.post_processor = template("$A:0 </s>:0", "$A:0 </s>:0 $B:0 </s>:0", t)
    yield "Blenderbot", t
    t = byte_level(corpus, ["<unk>", "<s>", "</s>", "<pad>"], split=BLOOM)
    t.post_processor = processors.ByteLevel(add_prefix_space=True, trim_offsets=False)
    yield "BLOOM", t
    t = byte_level(corpus, ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"], split=LLAMA3, ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True),
                                            template("<|begin_of_text|> $A", "<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", t)])
    yield "Llama 3", t
    t = byte_level(corpus, ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"], split=TEKKEN)
    t.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", t)
    yield "Mistral (tekken)", t
    t = byte_level(corpus, [EOT, "<|im_start|>", "<|im_end|>"], split=QWEN, normalizer=n.NFC())
    t.add_tokens([AddedToken("<tool_call>"), AddedToken("</think>")])
    yield "Qwen 2, 2.5, 3", t


def sentencepiece_bpe(corpus):
    model = trained("BPE", corpus)

    def make(**options):
        return Tokenizer(models.BPE(model["vocab"], [tuple(m) for m in model["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True, **options))

    for name, eos in (("Llama 1, 2", ""), ("Mistral", "")):
        t = make()
        t.normalizer = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
        t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
        t.add_special_tokens([AddedToken(x, normalized=name == "Mistral") for x in ("<unk>", "<s>", "</s>")])
        t.post_processor = template("<s> $A" + eos, "<s> $A" + eos + " <s>:1 $B:1", t)
        yield name, t
    t = make()
    t.normalizer, t.pre_tokenizer = n.Replace(" ", "▁"), p.Split(" ", "merged_with_previous")
    t.decoder = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse()])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    t.add_tokens([AddedToken(x, normalized=False) for x in ("\n", "\n\n", "▁▁", "▁▁▁", "<start_of_turn>")])
    t.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", t)
    yield "Gemma", t


def unigrams(corpus, charsmap):
    vocab = [tuple(x) for x in trained("Unigram", corpus)["vocab"]]
    precompiled = n.Precompiled(charsmap)
    words = p.Sequence([p.WhitespaceSplit(), p.Metaspace()])

    def make(normalizer, pre, extra=()):
        t = Tokenizer(models.Unigram(vocab + [(x, 0.0) for x in extra], 2))
        t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, d.Metaspace()
        t.add_special_tokens(["<pad>", "</s>", "<unk>"] + list(extra))
        return t

    t = make(precompiled, words, [f"<extra_id_{i}>" for i in range(9, -1, -1)])
    t.post_processor = template("$A </s>", "$A </s> $B </s>", t)
    yield "T5, Flan", t
    t = make(n.Sequence([precompiled, n.Strip(left=False), n.Replace(Regex(" {2,}"), "▁")]), p.Metaspace())
    t.post_processor = template("$A </s>", "$A </s> $B </s>", t)
    yield "mT5", t
    t = make(precompiled, words, ["en_XX", "de_DE"])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.post_processor = template("$A </s> en_XX", "$A $B </s> en_XX", t)
    yield "mBART", t
    t = make(precompiled, words, ["<mask_1>", "<mask_2>", "<unk_2>"])
    t.post_processor = template("$A </s>", "$A $B </s>", t)
    yield "Pegasus", t
    for lower in (True, False):
        steps = [n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents()] + [n.Lowercase()] * lower + [precompiled, n.Replace(Regex(" {2,}"), " ")]
        t = make(n.Sequence(steps), words, ["[CLS]", "[SEP]"])
        t.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
        t.post_processor = template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", t)
        yield f"ALBERT lower={lower}", t


def wordpieces(corpus):
    vocab = trained("WordPiece", corpus)["vocab"]
    for name, normalizer in (("BERT uncased", n.BertNormalizer()), ("BERT cased", n.BertNormalizer(lowercase=False)), ("DistilBERT", n.BertNormalizer(strip_accents=None)),
                             ("MiniLM", n.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True))):
        t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
        t.normalizer, t.pre_tokenizer, t.decoder = normalizer, p.BertPreTokenizer(), d.WordPiece()
        t.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
        t.post_processor = template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", t)
        yield name, t


def named(corpus, charsmap=None):
    corpus = tuple(corpus)
    yield from byte_levels(corpus)
    yield from sentencepiece_bpe(corpus)
    yield from unigrams(corpus, charsmap or small_charsmap(RULES))
    yield from wordpieces(corpus)
