#!/usr/bin/env python3
"""Writes tests/golden/optim/cases.jsonl: small optimizer problems with the answers of torch.optim and of the numpy 8-bit Adam."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optim_reference as ref
from ppo_reference import plain

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/optim/cases.jsonl")
os.makedirs(os.path.dirname(out), exist_ok=True)
rng = np.random.default_rng(20261116)
with open(out, "w") as f:
    for kind, n, cases in (("adam", 9, 3), ("adamw", 9, 2), ("sgd", 9, 8), ("rmsprop", 9, 8), ("adamw_8bit", 300, 3)):
        for _ in range(cases):
            request, want = ref.case(rng, kind, n, 5)
            f.write(json.dumps(plain({"request": request, "want": want})) + "\n")
print("wrote", os.path.normpath(out))
