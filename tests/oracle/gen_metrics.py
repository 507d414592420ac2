#!/usr/bin/env python3
"""Writes tests/golden/metrics/: stems by nltk, and metric values by rouge-score, sacrebleu, nltk and py-rouge on a few texts.

cases.json is a list of {"metric", "args", "items", "key", "samples", "corpus"}; samples or corpus can be null (not compared)."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metric_reference as reference  # noqa: E402
from metric_texts import VOCABULARY, pairs  # noqa: E402

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "metrics")
SUFFIXES = """ational tional enci anci izer abli bli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti iviti biliti
fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize ed
ing eed ied ies sses ss s y e ll""".split()
EDGES = [("", ""), ("", "a"), ("a", ""), ("the cat", "the cat"), ("one", "two"), ("a b c d e", "a b c d e"),
         ("the the the the", "the cat the"), ("a\nb\nc", "c\nb\na"), ("x " * 70, "x " * 65 + "y"), ("\n\n", "\n"),
         ("The U.S. can't.", "the US cannot, can not")]


def stems(rng):
    from nltk.stem.porter import PorterStemmer
    words = {w.lower() for w in VOCABULARY if w.isascii() and w.isalnum()}
    for s in SUFFIXES:
        words |= {p + s for p in ("", "a", "b", "hop", "re", "tr", "oat", "syzyg", "y", "ll", "geo", "controll", "fizz", "sky")}
    for _ in range(300):
        words.add("".join(rng.choice("aeiouybcdlst") for _ in range(rng.randrange(1, 8))) + rng.choice(SUFFIXES))
    words = sorted(words)
    modes = {m: PorterStemmer(m) for m in ("NLTK_EXTENSIONS", "ORIGINAL_ALGORITHM", "MARTIN_EXTENSIONS")}
    return [[w] + [modes[m].stem(w) for m in modes] for w in words]


def write(name, value):
    with open(os.path.join(OUT, name), "w") as f:
        json.dump(value, f, ensure_ascii=True, indent=None, separators=(",", ":"))
        f.write("\n")


def main():
    rng = random.Random(20)
    os.makedirs(OUT, exist_ok=True)
    write("stems.json", stems(rng))
    single = [{"prediction": a, "references": [b]} for a, b in EDGES] + list(pairs(rng, 14, 1, 40))
    multi = list(pairs(rng, 10, 0, 30))
    cases = []
    for metric, args, scorer in reference.settings():
        for items in (single, multi):
            for key, samples, corpus in scorer(items):
                cases.append({"metric": metric, "args": args, "items": items if items is single else None, "key": key,
                              "samples": samples, "corpus": corpus})
    for case in cases:
        case["items"] = "single" if case["items"] else "multi"
    write("cases.json", {"single": single, "multi": multi, "cases": cases})


if __name__ == "__main__":
    main()
