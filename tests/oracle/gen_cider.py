"""Writes tests/golden/metrics/cider.jsonl: pycocoevalcap's CIDEr-D of fixed random corpora."""
import random

import check_cider
import golden

r = random.Random(5)
out = []
for _ in range(25):
    cases = check_cider.corpus(r)
    v = check_cider.reference(cases)
    out.append({"metric": "cider", "items": cases, "values": {"lexical/cider": {"corpus": sum(v) / len(v), "samples": v}}})
golden.write("cider", out)
