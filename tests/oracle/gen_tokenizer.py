#!/usr/bin/env python3
"""Writes tests/golden/tokenizer: small tokenizers made by Hugging Face `tokenizers`, and for each cases.jsonl with the ids, offsets and decoded
texts it gives; rows.jsonl has pairs, truncation and padding. gpt2-a, a tokenizer of the recorded runs, gets its cases only.
Argument "rows": writes rows.jsonl only."""
import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strings import strings
from tokenizer_kinds import FLAGS, RULES, llama, small_charsmap, unigram, wordpiece

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tokenizer")
EOT = "<|endoftext|>"
TEXTS = ["Hello world", " Hello  world\n", "it's we'll DON'T 'tis", "naïve café e\u0301 \u1112\u1161\u11ab", "a<mask> b <mask>  c", "x word words word.",
         f"{EOT}a{EOT}{EOT} b", "12345 67", "日本語テキスト", "👩‍👩‍👧‍👦 👍🏽", "\t\t  \n\n x ", "\u00a0\u3000\u2028", "q\u0323\u0307 \u1e0b\u0323", "\ufffd\U00031bce\U0001e5d0"]


def train(specials, vocab=330):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.train_from_iterator(["the cat and the dog went to the house", "é è ü naïve café", "hello world word words 123 456"] * 3,
                          trainers.BpeTrainer(vocab_size=vocab, min_frequency=2, special_tokens=specials, show_progress=False,
                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    return t


def roberta():
    t = train(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken("word", single_word=True), AddedToken("\t", rstrip=True)])
    return t


def split():
    t = train([EOT])
    t.normalizer = normalizers.NFC()
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(
        single=f"{EOT} $A", pair=f"{EOT} $A {EOT} $B", special_tokens=[(EOT, 0)])])
    t.add_tokens([AddedToken("é!", normalized=True)])
    return t


def write(name, t):
    folder = os.path.join(GOLDEN, name)
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(folder + "/tokenizer.json") or name != "gpt2-a":
        t.save(folder + "/tokenizer.json", pretty=False)
    t = Tokenizer.from_file(folder + "/tokenizer.json")
    rng = random.Random(5)
    with open(folder + "/cases.jsonl", "w") as f:
        for text in TEXTS + [s for s in strings(11, 30, ["<mask>", EOT, "word"]) if len(s) < 80]:
            e, plain = t.encode(text), t.encode(text, add_special_tokens=False)
            ids = [rng.randrange(t.get_vocab_size()) for _ in range(rng.randrange(12))]
            f.write(json.dumps({"text": text, "ids": e.ids, "offsets": [list(o) for o in e.offsets], "plain": plain.ids,
                                "decode": ids, "decoded": t.decode(ids, skip_special_tokens=False),
                                "skipped": t.decode(ids, skip_special_tokens=True)}, separators=(",", ":")) + "\n")


def row_of(e):
    return {"ids": e.ids, "offsets": [list(o) for o in e.offsets], "attention": e.attention_mask, "types": e.type_ids, "special": e.special_tokens_mask}


def write_rows(name):
    """Pairs, truncation and padding: a line holds the options, the texts and every row."""
    folder = os.path.join(GOLDEN, name)
    t = Tokenizer.from_file(folder + "/tokenizer.json")
    rng = random.Random(6)
    texts = TEXTS + [s for s in strings(12, 30, ["<mask>", EOT, "word"]) if len(s) < 30]
    with open(folder + "/rows.jsonl", "w") as f:
        while f.tell() < 20000:
            o = {"special": rng.random() < 0.8, "max_length": rng.choice([3, 4, 5, 6, 9, 14]), "stride": rng.choice([0, 0, 1]),
                 "strategy": rng.choice(["longest_first", "longest_first", "only_first", "only_second"]), "truncate_left": rng.random() < 0.5,
                 "pad": rng.choice([0, 1, 2]), "pad_left": rng.random() < 0.5, "pad_length": 11, "pad_multiple": rng.choice([0, 4])}
            batch = [[x] if rng.random() < 0.4 else [x, rng.choice(texts)] for x in rng.sample(texts, 3)]
            t.no_padding(), t.no_truncation()
            try:
                t.enable_truncation(o["max_length"], stride=o["stride"], strategy=o["strategy"], direction="left" if o["truncate_left"] else "right")
                if o["pad"]:
                    t.enable_padding(direction="left" if o["pad_left"] else "right", pad_id=1, length=o["pad_length"] if o["pad"] == 2 else None,
                                     pad_to_multiple_of=o["pad_multiple"] or None)
                rows = [r for i, e in enumerate(t.encode_batch([x[0] if len(x) < 2 else tuple(x) for x in batch], add_special_tokens=o["special"]))
                        for r in [dict(row_of(e), text=i)] + [dict(row_of(v), text=i) for v in e.overflowing]]
            except BaseException:
                rows = None  # cannot be cut so
            line = json.dumps({"options": o, "texts": batch, "rows": rows}, separators=(",", ":")) + "\n"
            f.write(line if len(line) < 2500 else "")


def write_all():
    write("gpt2-a", Tokenizer.from_file(GOLDEN + "/gpt2-a/tokenizer.json"))
    write("roberta", roberta())
    write("split", split())
    CORPUS = ("the cat and the dog went to the house", "é è ü naïve café", "hello world Hello word words 123 456 don't . , ! ?") * 3
    bert = wordpiece(CORPUS, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    bert.add_tokens(FLAGS)
    write("bert", bert)
    write("t5", unigram(CORPUS, normalizers.Precompiled(small_charsmap({k: v for k, v in RULES.items() if len(k) < 2})), pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoders.Metaspace()))
    first = llama(CORPUS, normalizer=normalizers.NFKC(), pre=pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    first.add_tokens(FLAGS)
    write("llama", first)

if "rows" not in sys.argv:  # training does not always give the same vocabulary: "rows" keeps the tokenizers that are there
    write_all()
for name in ("bert", "roberta", "split", "llama"):
    write_rows(name)
