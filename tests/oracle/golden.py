"""Writes files of tests/golden/metrics (read by tests/unit/test_metric_goldens.c)."""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def clean(v):
    if isinstance(v, dict):
        return {k: clean(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [clean(x) for x in v]
    if isinstance(v, float) and not math.isfinite(v):
        return None
    return v


def write(name, cases):
    folder = os.path.join(HERE, "../golden/metrics")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".jsonl"), "w") as f:
        for c in cases:
            f.write(json.dumps(clean(c), ensure_ascii=False) + "\n")
