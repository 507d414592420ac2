"""CIDEr-D against pycocoevalcap on random corpora, also with document frequencies from a file."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pycocoevalcap.cider.cider_scorer import CiderScorer

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("TEXTGEN_CASES", "200"))


def corpus(r):
    vocab = [f"w{i}" for i in range(r.choice([3, 10, 60]))] + ["a", "the", "Ünï", "."]
    text = lambda: r.choice([" ", " ", "  ", "\n"]).join(r.choice(vocab) for _ in range(r.choice([0, 1, 2, 3, 5, 9, 15, 40])))
    out = []
    for _ in range(r.choice([1, 2, 3, 10, 30])):
        refs = [text() for _ in range(r.choice([1, 1, 2, 5]))]
        p = r.choice(refs) if r.random() < 0.3 else text()
        words = p.split()
        if words and r.random() < 0.3:
            words[r.randrange(len(words))] = r.choice(vocab)
            p = " ".join(words)
        out.append({"prediction": p, "references": refs})
    return out


def reference(cases, df=None):
    s = CiderScorer()
    for c in cases:
        s += (c["prediction"], c["references"])
    if df is None:
        if not any(t.split() for c in cases for t in c["references"]):
            return [0.0] * len(cases)
        return [float(x) for x in s.compute_score()[1]]
    t = CiderScorer()
    for refs in df:
        t += ("", refs)
    t.compute_doc_freq()
    import numpy as np
    s.document_frequency = t.document_frequency
    real = np.log
    np.log = lambda x: real(float(len(df))) if x == float(len(s.crefs)) and not done.append(1) and len(done) == 1 else real(x)
    done = []
    try:
        return [float(x) for x in s.compute_cider()]
    finally:
        np.log = real


def ours(cases, *args):
    run = subprocess.run([BUILD + "/textgen-env", "score", "--metric", "cider", "--json", *args], input="".join(json.dumps(c) + "\n" for c in cases),
                         capture_output=True, text=True, check=True)
    v = json.loads(run.stdout)["metrics"]["lexical/cider"]
    return v["samples"], v["corpus"]


def main():
    seed = int.from_bytes(os.urandom(4), "little")
    r = random.Random(seed)
    passed = failed = 0
    for i in range(N):
        cases = corpus(r)
        args, df = (), None
        with tempfile.TemporaryDirectory() as d:
            if i % 3 == 2:
                df = [c["references"] for _ in range(3) for c in corpus(r)]
                with open(d + "/df.jsonl", "w") as f:
                    f.writelines(json.dumps(x) + "\n" for x in df)
                args = (f"cider.df={d}/df.jsonl",)
            got, mean = ours(cases, *args)
        want = reference(cases, df)
        for c, a, b in list(zip(cases, want, got)) + [("mean", sum(want) / len(want), mean)]:
            if abs(a - b) <= 1e-9:
                passed += 1
            else:
                failed += 1
                if failed < 6:
                    print(f"not ok seed {seed} corpus {i} (df {df is not None}): pycocoevalcap {a}, ours {b}: {c}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
