#!/usr/bin/env python3
"""SentencePiece .model files, and folders without a tokenizer.json: what transformers' classes make of the files, and what the sentencepiece package
itself says of a model that belongs to no class. Environment: SEED (1), N (strings a tokenizer, 150)."""
import json
import os
import random
import sys
import tempfile

import sentencepiece
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_lines import finish, note, run
from strings import strings

SEED, N = int(os.environ.get("SEED", 1)), int(os.environ.get("N", 150))
T5 = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
PLAIN = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True)
BYTES = dict(model_type="bpe", byte_fallback=True, vocab_size=600)
FAIRSEQ = dict(unk_id=0, bos_id=1, eos_id=2)
ALBERT = dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP]", user_defined_symbols="[MASK]")
XLNET = dict(FAIRSEQ, control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>", user_defined_symbols="<eop>")
GEMMA = dict(BYTES, **PLAIN, pad_id=0, eos_id=1, bos_id=2, unk_id=3, bos_piece="<bos>", eos_piece="<eos>", add_dummy_prefix=False,
             user_defined_symbols="<mask>,<start_of_turn>,\t,▁▁,▁▁▁")
FAMILIES = [  # name, file, options of the trainer, tokenizer_config.json
    ("t5", "spiece.model", T5, {"tokenizer_class": "T5Tokenizer"}),
    ("mt5", "spiece.model", dict(T5, byte_fallback=True, vocab_size=600), {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}),
    ("flan", "spiece.model", T5, {"tokenizer_class": "T5Tokenizer", "extra_ids": 10, "additional_special_tokens": [f"<extra_id_{i}>" for i in range(10)]}),
    ("albert", "spiece.model", ALBERT, {"tokenizer_class": "AlbertTokenizer"}),
    ("albert cased", "spiece.model", ALBERT, {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True}),
    ("xlnet", "spiece.model", XLNET, {"tokenizer_class": "XLNetTokenizer"}),
    ("xlnet lower", "spiece.model", XLNET, {"tokenizer_class": "XLNetTokenizer", "do_lower_case": True}),
    ("llama", "tokenizer.model", dict(BYTES, **PLAIN, **FAIRSEQ), {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": False}),
    ("llama legacy", "tokenizer.model", dict(BYTES, **PLAIN, **FAIRSEQ), {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": True}),
    ("llama plain", "tokenizer.model", dict(BYTES, **PLAIN, **FAIRSEQ), {"tokenizer_class": "LlamaTokenizer", "add_eos_token": True, "add_prefix_space": False}),
    ("gemma", "tokenizer.model", GEMMA, {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True}),
    ("gemma listed", "tokenizer.model", GEMMA, {"tokenizer_class": "GemmaTokenizer", "additional_special_tokens": ["<start_of_turn>"]}),
    ("mbart", "sentencepiece.bpe.model", FAIRSEQ, {"tokenizer_class": "MBartTokenizer"}),
    ("mbart de", "sentencepiece.bpe.model", FAIRSEQ, {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"}),
    ("xlm-r", "sentencepiece.bpe.model", FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer"}),
    ("pegasus", "spiece.model", T5, {"tokenizer_class": "PegasusTokenizer"}),
    ("pegasus offset", "spiece.model", T5, {"tokenizer_class": "PegasusTokenizer", "offset": 10, "mask_token": "<mask_2>", "mask_token_sent": "<mask_1>"})]
OWN = [("unigram", {}), ("unigram bytes", dict(byte_fallback=True, vocab_size=600)), ("bpe", dict(model_type="bpe")), ("bpe bytes", BYTES),
       ("no prefix", dict(add_dummy_prefix=False)), ("spaces kept", dict(remove_extra_whitespaces=False)), ("bpe identity", dict(BYTES, **PLAIN)),
       ("suffix", dict(treat_whitespace_as_suffix=True)), ("nfkc_cf", dict(normalization_rule_name="nmt_nfkc_cf")),
       ("symbols", dict(user_defined_symbols="<sym>,é!,the cat", control_symbols="<ctl>")),
       ("bpe symbols", dict(BYTES, user_defined_symbols="<sym>,é!,ab", control_symbols="<ctl>")), ("across words", dict(split_by_whitespace=False, vocab_size=300))]
ROBERTA, EOT = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], ["<|endoftext|>"]
OPT = {k: {"content": v, "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "__type": "AddedToken"}
       for k, v in (("bos_token", "</s>"), ("eos_token", "</s>"), ("unk_token", "</s>"), ("pad_token", "<pad>"))}
PAIRS = [("gpt2", EOT, {"tokenizer_class": "GPT2Tokenizer"}), ("gpt2 prefix", EOT, {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}),
         ("opt", ROBERTA, dict(OPT, tokenizer_class="GPT2Tokenizer", add_bos_token=True, add_prefix_space=False)),
         ("roberta", ROBERTA, {"tokenizer_class": "RobertaTokenizer"}), ("bart", ROBERTA, {"tokenizer_class": "BartTokenizer", "add_prefix_space": True}),
         ("blenderbot", ROBERTA, {"tokenizer_class": "BlenderbotTokenizer"}), ("gpt-neox", EOT + ["<|padding|>"], {"tokenizer_class": "GPTNeoXTokenizer"}),
         ("qwen2", EOT, {"tokenizer_class": "Qwen2Tokenizer"})]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TXT = [("bert uncased", {"tokenizer_class": "BertTokenizer"}), ("bert cased", {"tokenizer_class": "BertTokenizer", "do_lower_case": False}),
       ("distilbert", {"tokenizer_class": "DistilBertTokenizer", "strip_accents": False}),
       ("minilm", {"tokenizer_class": "BertTokenizer", "tokenize_chinese_chars": False, "do_basic_tokenize": True})]


def corpus():
    r = random.Random(3)
    words = ("the cat and dog went to house hello world word words quick brown fox jumps over lazy naïve café 日本語 русский ελληνικά 123 456 don't it's "
             "7, 19, 3,000 Hello World The DOG résumé über ½ ﬁne").split()
    return [" ".join(r.choice(words) for _ in range(r.randrange(3, 12))) for _ in range(3000)]


def train(tmp, options):
    args = dict(input=tmp + "/corpus.txt", model_prefix=tmp + "/trained", vocab_size=150, hard_vocab_limit=False, minloglevel=2, character_coverage=0.999)
    sentencepiece.SentencePieceTrainer.train(**{**args, **options})
    return open(tmp + "/trained.model", "rb").read()


def against_class(name, folder, specials=()):
    """Ids, offsets, types and decoded texts of AutoTokenizer on the same folder; single texts and pairs, and cut ones."""
    t = AutoTokenizer.from_pretrained(folder)
    texts = [x for x in strings(SEED + 17, N, [str(x) for x in t.all_special_tokens] + list(specials)) if len(x) < 4000]
    rng = random.Random(SEED)
    batch = [x if rng.random() < 0.6 else [x, rng.choice(texts) or "x"] for x in texts]  # transformers takes an empty second text for none
    for more, kind in (([], {}), (["--max-length", "9", "--truncate", "longest_first"], dict(truncation="longest_first", max_length=9))):
        for x, g in zip(batch, run(["tokenize", "--tokenizer", folder, "--jsonl", "--masks"] + more, batch)):
            w = t(*(x if isinstance(x, list) else [x]), return_offsets_mapping=True, return_token_type_ids=True, return_special_tokens_mask=True, **kind)
            for ours, theirs in (("ids", w.input_ids), ("offsets", [list(o) for o in w.offset_mapping]), ("type_ids", w.token_type_ids),
                                 ("special_tokens_mask", w.special_tokens_mask), ("tokens", t.convert_ids_to_tokens(w.input_ids))):
                if g.get(ours) != theirs:
                    note(False, f"{name}: {x!r:.70} {more[:2]} {ours}: {str(g.get(ours)):.150} != {str(theirs):.150} {g.get('error', '')}")
                    break
            else:
                note(True, "")
    lists = [[rng.randrange(len(t)) for _ in range(rng.randrange(20))] for _ in texts]
    for skip in (False, True):
        for ids, g in zip(lists, run(["detokenize", "--tokenizer", folder, "--jsonl"] + ["--skip-special"] * skip, lists)):
            w = t.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
            note(g == w, f"{name}: decode {ids} {skip}: {g!r} != {w!r}")


def against_package(name, path):
    """A model of no class: the ids of the sentencepiece package."""
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    texts = [x for x in strings(SEED + 23, N, ["<s>", "<sym>", "é!", "the cat", "<ctl>", "</s>", "<unk>", "▁"]) if "\0" not in x]
    for x, g in zip(texts, run(["tokenize", "--tokenizer", path, "--jsonl"], texts)):
        note(g.get("ids") == p.encode(x), f"{name}: {x!r:.80}: {str(g.get('ids')):.150} != {str(p.encode(x)):.150} {g.get('error', '')}")
    lists = [p.encode(x) for x in texts]
    unk = p.unk_id()
    for ids, g in zip(lists, run(["detokenize", "--tokenizer", path, "--jsonl"], lists)):
        if unk not in ids and name != "suffix":
            note(g == p.decode(ids), f"{name}: decode {ids[:30]}: {g!r:.80} != {p.decode(ids)!r:.80}")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        with open(tmp + "/corpus.txt", "w") as f:
            f.write("\n".join(corpus()))
        for k, (name, file, options, config) in enumerate(FAMILIES):
            folder = f"{tmp}/f{k}"
            os.mkdir(folder)
            open(f"{folder}/{file}", "wb").write(train(tmp, options))
            json.dump(config, open(folder + "/tokenizer_config.json", "w"))
            against_class(name, folder, ["<eop>", "<start_of_turn>", "``", "''"])
        for name, options in OWN:
            open(tmp + "/own.model", "wb").write(train(tmp, options))
            against_package(name, tmp + "/own.model")
        for k, (name, specials, config) in enumerate(PAIRS):
            folder = f"{tmp}/p{k}"
            os.mkdir(folder)
            t = Tokenizer(models.BPE())
            t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=500, special_tokens=specials, show_progress=False,
                                                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
            t.model.save(folder)
            json.dump(config, open(folder + "/tokenizer_config.json", "w"))
            against_class(name, folder, ["<mask>"])
        for k, (name, config) in enumerate(TXT):
            folder = f"{tmp}/t{k}"
            os.mkdir(folder)
            t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
            t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT, show_progress=False))
            t.model.save(folder)
            json.dump(config, open(folder + "/tokenizer_config.json", "w"))
            against_class(name, folder)
    finish()


main()
