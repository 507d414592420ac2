#!/usr/bin/env python3
"""Lexical metrics on random and real-like texts, against rouge-score, sacrebleu, nltk and py-rouge.

`textgen-env score` must give the reference's numbers: 1e-9, most of them to the bit. N is the number of pairs per setting, SEED
makes a run again."""
import collections
import json
import math
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from metric_texts import pairs  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("N", "4000"))
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


def near(a, b, tolerance):
    return a is not None and b is not None and abs(a - b) <= tolerance * max(1.0, abs(b))


def compare(title, items, value, want, corpus=None, tolerance=1e-9):
    """value: our {"corpus", "samples"}; want: the reference's number of each item."""
    global passed, failed, compared
    bad = [i for i, (a, b) in enumerate(zip(value["samples"], want)) if not near(a, b, tolerance)]
    ok = not bad and len(value["samples"]) == len(want)
    if corpus is not None and not near(value["corpus"], corpus, tolerance):
        ok = False
        print(f"  {title}: corpus {value['corpus']} != {corpus} (seed {SEED})")
    for i in bad[:3]:
        print(f"  {title}: {value['samples'][i]} != {want[i]} for {json.dumps(items[i])} (seed {SEED})")
    exact = sum(a == b for a, b in zip(value["samples"], want))
    print(f"{'ok  ' if ok else 'FAIL'} {title}: {len(want)} pairs, {len(bad)} differ, {exact} to the bit")
    compared += len(want)
    passed, failed = passed + ok, failed + (not ok)


def check_rouge(rng):
    from rouge_score import rouge_scorer
    types = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    scorer = rouge_scorer.RougeScorer(types, use_stemmer=True)
    for title, refs, options in (("single", 1, {}), ("multi", 0, {"use_single_ref": False})):
        items = list(pairs(rng, N, refs, longest=90))
        got = ours("rouge", items, options)
        want = [scorer.score_multi(i["references"], i["prediction"]) for i in items]
        for t in types:
            f = [w[t].fmeasure for w in want]
            compare(f"{t} {title}", items, got[f"lexical/rouge_{t}"], f)
            compare(f"{t} {title} mean", items[:1], {"samples": [got[f"lexical/rouge_{t}_mean"]["corpus"]]}, [sum(f) / len(f)])
    check_bootstrap(rng, scorer)


def check_bootstrap(rng, scorer):
    import numpy as np
    from rouge_score import scoring
    for n in (1, 2, 37, 256):
        items = list(pairs(rng, n, 1))
        seed = rng.randrange(2**32)
        got = ours("rouge", items, {"seed": seed})
        aggregator = scoring.BootstrapAggregator()
        for i in items:
            aggregator.add_scores(scorer.score(i["references"][0], i["prediction"]))
        np.random.seed(seed)
        for t, s in aggregator.aggregate().items():
            compare(f"{t} bootstrap of {n}", items[:1], {"samples": [got[f"lexical/rouge_{t}"]["corpus"]]}, [s.mid.fmeasure])


CHECKS = {"rouge": check_rouge}


def main():
    for name, check in CHECKS.items():
        if not ONLY or name in ONLY:
            check(random.Random(f"{SEED} {name}"))
    print(f"{compared} comparisons, seed {SEED}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
