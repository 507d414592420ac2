#!/usr/bin/env python3
"""Lexical metrics on random and real-like texts, against rouge-score, sacrebleu, nltk and py-rouge.

`textgen-env score` must give the reference's numbers: 1e-9, most of them to the bit. N is the number of pairs per setting, SEED
makes a run again."""
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
N = int(os.environ.get("N", "300"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
ONLY = sys.argv[1:]
passed = failed = compared = 0


def ours(metric, items, options):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        for item in items:
            f.write(json.dumps(item) + "\n")
        f.flush()
        command = [f"{BUILD}/textgen-env", "score", "--metric", metric, "--json", "--jsonl", f.name]
        command += [f"{metric}.{k}={json.dumps(v) if not isinstance(v, str) else v}" for k, v in options.items()]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout)["metrics"]


def near(a, b):
    if a is None or b is None:
        return a is None and b is None
    return abs(a - b) <= 1e-9 * max(1.0, abs(b))


def verdict(title, ok, text):
    global passed, failed
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
    words = {"rouge": 800, "rouge_l_max": 800, "ter": 300}.get(metric, 10000)
    first = text(rng, "plain", words)
    return [{"prediction": first, "references": [edited(rng, first, "plain")]},
            {"prediction": text(rng, "mixed", words), "references": [text(rng, "mixed", words), "short"]}]


def check_table():
    for metric, args, score in reference.settings():
        if ONLY and metric not in ONLY:
            continue
        rng = random.Random(f"{SEED} {metric} {args}")
        title = metric + "".join(f" {k}={v}" for k, v in args.items())
        n = N // 16 if metric == "ter" else N // 2  # sacrebleu's TER takes 40 ms for a pair with many shifts
        for refs in (1, 0, -1):
            items = long_items(rng, metric) if refs < 0 else list(pairs(rng, n, refs, longest=90))
            got = ours(metric, items, args)
            for key, samples, corpus in score(items):
                compare(f"{title}: {key}, {('several', 'one', 'long')[refs]}", items, got[key], samples, corpus)


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
    print(f"{compared} values compared, seed {SEED}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
