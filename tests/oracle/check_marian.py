#!/usr/bin/env python3
"""Marian's tokenizers: two SentencePiece models and a vocab.json, against transformers' MarianTokenizer on the same folder, and on the one that is saved
again. Environment: SEED (1), N (strings a folder and language, 150)."""
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

import sentencepiece
from transformers import AutoTokenizer, MarianConfig, MarianMTModel

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cli_lines import TEXTGEN, finish, note, run
from strings import strings

SEED, N = int(os.environ.get("SEED", 1)), int(os.environ.get("N", 150))
WORDS = [("the cat and dog went to house hello world word words quick brown fox jumps over lazy naïve café 123 456 don't it's 3,000 The DOG ½"),
         ("die Katze und der Hund gingen zum Haus hallo Welt Wort Wörter schnell braun Fuchs springt über faul naiv Kaffee 123 456 ß Straße 日本語 The")]


def train(tmp, r, words, **options):
    with open(tmp + "/corpus.txt", "w") as f:
        f.write("\n".join(" ".join(r.choice(words.split()) for _ in range(r.randrange(3, 12))) for _ in range(2000)))
    sentencepiece.SentencePieceTrainer.train(input=tmp + "/corpus.txt", model_prefix=tmp + "/trained", vocab_size=r.choice([90, 120, 160]),
                                             hard_vocab_limit=False, minloglevel=2, character_coverage=0.999, **options)
    return open(tmp + "/trained.model", "rb").read()


def make(tmp, folder, r, languages, leave_out, options, config):
    """vocab.json as in the originals: </s> and <unk> first, pieces of both languages by frequency, <pad> last."""
    os.mkdir(folder)
    pieces = []
    for name, words in zip(("source", "target"), WORDS):
        data = train(tmp, r, words, **options)
        open(f"{folder}/{name}.spm", "wb").write(data)
        p = sentencepiece.SentencePieceProcessor(model_proto=data)
        pieces += [p.id_to_piece(i) for i in range(p.get_piece_size()) if not p.is_control(i) and not p.is_unknown(i)]
    pieces = [x for x in dict.fromkeys(pieces) if r.random() >= leave_out]
    r.shuffle(pieces)
    tokens = ["</s>", "<unk>"] + languages + pieces + ["<pad>"]
    json.dump({t: i for i, t in enumerate(tokens)}, open(folder + "/vocab.json", "w"), ensure_ascii=False)
    json.dump(config, open(folder + "/tokenizer_config.json", "w"))
    json.dump({"model_type": "marian"}, open(folder + "/config.json", "w"))
    return len(tokens)


def compare(name, folder, languages):
    t = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(SEED)
    texts = [x for x in strings(SEED + 17, N, t.all_special_tokens + languages + [">>xx<<", ">>", "<<", "▁"]) if "\0" not in x and len(x) < 3000]
    texts += [rng.choice(languages + ["", ">>??<<"]) + " ".join(rng.choices((WORDS[0] + " " + WORDS[1]).split(), k=8)) for _ in range(N)]
    for target in (False, True):
        for more, kind in (([], {}), (["--max-length", "7"], dict(truncation=True, max_length=7)), (["--no-special"], dict(add_special_tokens=False))):
            for x, g in zip(texts, run(["tokenize", "--tokenizer", folder, "--jsonl"] + ["--target"] * target + more, texts)):
                w = (t(text_target=x, **kind) if target else t(x, **kind))["input_ids"]
                note(g.get("ids") == w, f"{name}: {x!r:.80} target {target} {more}: {str(g.get('ids')):.120} != {str(w):.120} {g.get('error', '')}")
    lists = [[rng.randrange(len(t)) for _ in range(rng.randrange(20))] for _ in texts] + [t(text_target=x)["input_ids"] for x in texts]
    lists += [[t.pad_token_id] + x for x in lists[:N]]
    for skip in (False, True):
        for ids, g in zip(lists, run(["detokenize", "--tokenizer", folder, "--jsonl"] + ["--skip-special"] * skip, lists)):
            w = t.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=False)
            note(g == w, f"{name}: decode {ids} skip {skip}: {g!r} != {w!r}")
    return t


def saved(name, folder, vocab, t, tmp):
    """A model folder with this tokenizer, written again by us, opens with the same ids."""
    config = MarianConfig(vocab_size=vocab, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
                          encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=vocab - 1, eos_token_id=0, decoder_start_token_id=vocab - 1)
    MarianMTModel(config).save_pretrained(folder)
    p = subprocess.run([TEXTGEN, "export", folder, tmp + "/out", "--overwrite"], capture_output=True, text=True)
    note(p.returncode == 0, f"{name}: export: {p.stderr.strip()}")
    if p.returncode == 0:
        again = AutoTokenizer.from_pretrained(tmp + "/out")
        for text in ("the cat", "die Katze über", ">>de<< hello"):
            note(again(text)["input_ids"] == t(text)["input_ids"] and again(text_target=text)["input_ids"] == t(text_target=text)["input_ids"],
                 f"{name}: saved: {text!r}")


def main():
    warnings.simplefilter("ignore")
    r = random.Random(SEED)
    cases = [("two languages", [], 0, {}, {"tokenizer_class": "MarianTokenizer", "model_max_length": 512}),
             ("many languages", [">>de<<", ">>fr<<"], 0, {}, {"tokenizer_class": "MarianTokenizer", "source_lang": "eng", "target_lang": "mul"}),
             ("pieces left out", [">>de<<"], 0.2, {}, {"tokenizer_class": "MarianTokenizer"}),
             ("symbols", [], 0, dict(user_defined_symbols="<sym>,the cat"), {"tokenizer_class": "MarianTokenizer"}),
             ("T5's numbers", [], 0, dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1), {"tokenizer_class": "MarianTokenizer"})]
    with tempfile.TemporaryDirectory() as tmp:
        for k, (name, languages, leave_out, options, config) in enumerate(cases):
            folder = f"{tmp}/m{k}"
            vocab = make(tmp, folder, r, languages, leave_out, options, config)
            saved(name, folder, vocab, compare(name, folder, languages), tmp)
    finish()


main()
