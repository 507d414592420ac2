#!/usr/bin/env python3
"""Lexical metrics on random and real-like texts, against rouge-score, sacrebleu, nltk, py-rouge, pycocoevalcap and definitions.

`textgen-env score` must give the reference's numbers: 1e-9, most of them to the bit. N is the number of pairs of each metric, over all of
its settings (most of ter's are short: its reference takes 40 ms for others), SEED makes a run again, REAL is a file of real texts, one a
line, that a half of the pairs are then made of."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metric_reference as reference  # noqa: E402
from metric_texts import edited, pairs, text  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("N", "600"))
REAL = os.environ.get("REAL")
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
ONLY = sys.argv[1:]
passed = failed = compared = 0
pairs_of = {}


def ours(metric, items, options):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for item in items:
            f.write(json.dumps(item) + "\n")
        f.flush()
        command = [f"{BUILD}/textgen-env", "score", "--metric", metric, "--json", "--jsonl", f.name]
        command += [f"{metric}.{k}={json.dumps(v) if not isinstance(v, str) else v}" for k, v in options.items()]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and not (done.returncode == 65 and done.stdout):  # 65 with results: one of them is null
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)["metrics"]


def near(a, b):
    if a is None or b is None:
        return a is None and b is None
    return abs(a - b) <= 1e-9 * max(1.0, abs(b))


def verdict(title, ok, text):
    global passed, failed
    if not ok or N <= 10000:
        print(f"{'ok  ' if ok else 'FAIL'} {title}: {text}", flush=True)
    passed, failed = passed + ok, failed + (not ok)


def compare(title, items, value, samples, corpus):
    """value: ours, {"corpus", "samples"}; samples and corpus: the reference's, None where there is nothing to compare."""
    global compared
    if corpus is not None:
        verdict(title + ", corpus", near(value["corpus"], corpus), f"{value['corpus']} and {corpus}")
    if samples is None:
        return
    bad = [i for i, (a, b) in enumerate(zip(value["samples"], samples)) if not near(a, b)]
    for i in bad[:3]:
        print(f"  {title}: {value['samples'][i]} != {samples[i]} for {json.dumps(items[i])}")
    exact = sum(a == b for a, b in zip(value["samples"], samples))
    verdict(title, not bad and len(value["samples"]) == len(samples), f"{len(samples)} pairs, {len(bad)} differ, {exact} to the bit")
    compared += len(samples)


def long_items(rng, metric):
    """Two long pairs; the references' tables of rouge and their shifts of ter grow with the square."""
    words = {"rouge": 800, "rouge_l_max": 800, "ter": 300, "meteor": 3000}.get(metric, 10000)
    first = text(rng, "plain", words)
    return [{"prediction": first, "references": [edited(rng, first, "plain")]},
            {"prediction": text(rng, "mixed", words), "references": [text(rng, "mixed", words), "short"]}]


WORDS = "red blue river team won in 1990 game city born album first second the of a played for club season".split()


def table_items(rng, n):
    """ToTTo-like: a table, a text about it; plain words, which detokenising and 13a leave alone."""
    some = lambda most: " ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, most)))
    for _ in range(n):
        cells, titles = [some(4) for _ in range(rng.randrange(1, 6))], [some(5), some(4)]
        if not any(v.split() for v in cells + titles):
            cells = ["red"]
        references = [some(15) or "the" for _ in range(rng.randrange(1, 4))]
        prediction = rng.choice(references) if rng.random() < 0.2 else some(15)
        table = {"table": [[{"value": c, "is_header": False, "column_span": 1} for c in cells]], "overlap_subset": rng.random() < 0.5,
                 "highlighted_cells": [[0, k] for k in range(len(cells))], "table_page_title": titles[0], "table_section_title": titles[1],
                 "table_section_text": ""}
        yield {"prediction": prediction, "references": references, "meta": {"raw_table": table}, "table": (cells, titles)}


def real_items(rng, n, refs):
    with open(REAL) as f:
        lines = [line.rstrip("\n") for line in f]
    for _ in range(n):
        prediction = rng.choice(lines)
        yield {"prediction": prediction, "references": [edited(rng, prediction, "plain") if rng.random() < 0.6 else rng.choice(lines)
                                                        for _ in range(refs or rng.randrange(1, 5))]}


def make_items(rng, metric, n, refs):
    if metric == "parent_totto":
        return list(table_items(rng, n))
    if refs < 0:
        return long_items(rng, metric)
    real = n // 2 if REAL else 0
    short = n * 15 // 16 if metric == "ter" else 0
    items = list(pairs(rng, short, refs, longest=12)) + list(pairs(rng, max(0, n - real - short), refs, longest=90))
    items += list(real_items(rng, min(real, n - short), refs)) if real else []
    rng.shuffle(items)
    for item in items if metric == "sari" else ():
        item["prompt"] = rng.choice((edited(rng, item["prediction"], "plain"), item["references"][0], text(rng, "plain", 8), ""))
    return items


# Some references score a corpus at a time, or take the square of its size: pieces of this many texts.
PIECES = {"cider": 2000, "self_bleu": 25, "diversity": 50}


def check_table():
    settings = [x for x in reference.settings() if not ONLY or x[0] in ONLY]
    for metric, args, score in settings:
        rng = random.Random(f"{SEED} {metric} {args}")
        title = metric + "".join(f" {k}={v}" for k, v in args.items())
        n = max(2, N // sum(x[0] == metric for x in settings) // 2)
        for refs in (1, 0, -1):
            items = make_items(rng, metric, n, refs)
            step = PIECES.get(metric, len(items))
            for k in range(0, len(items), step):
                piece = items[k:k + step]
                if metric == "self_bleu" and len(piece) < 2:
                    continue
                got = ours(metric, piece, args)
                for key, samples, corpus in score(piece):
                    compare(f"{title}: {key}, {('several', 'one', 'long')[refs]}", piece, got[key], samples, corpus)
                pairs_of[metric] = pairs_of.get(metric, 0) + len(piece)


def check_bootstrap():
    import numpy as np
    from rouge_score import rouge_scorer, scoring
    rng = random.Random(f"{SEED} bootstrap")
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=True)
    for n in (1, 2, 37, 256):
        items = list(pairs(rng, n, 1))
        seed = rng.randrange(2**32)
        got = ours("rouge", items, {"seed": seed})
        aggregator = scoring.BootstrapAggregator()
        for i in items:
            aggregator.add_scores(scorer.score(i["references"][0], i["prediction"]))
        np.random.seed(seed)
        for t, s in aggregator.aggregate().items():
            compare(f"{t} bootstrap of {n}", items, got[f"lexical/rouge_{t}"], None, float(s.mid.fmeasure))


def main():
    check_table()
    if not ONLY or "bootstrap" in ONLY:
        check_bootstrap()
    print("pairs: " + ", ".join(f"{k} {v}" for k, v in pairs_of.items()))
    print(f"{compared} values compared, seed {SEED}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
