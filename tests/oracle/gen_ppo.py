#!/usr/bin/env python3
"""Writes tests/golden/ppo/cases.jsonl: small GAE, PPO-loss and AdamW problems with the answers of stable-baselines3 and torch."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ppo_reference as ref

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/ppo/cases.jsonl")
rng = np.random.default_rng(20260116)
with open(out, "w") as f:
    for make, sizes in ((ref.gae_case, (1, 7, 40)), (ref.ppo_case, (1, 2, 9, 24, 24, 24)), (lambda r, n: ref.adamw_case(r, n, 6), (5, 33))):
        for n in sizes:
            request, want = make(rng, n)
            f.write(json.dumps(ref.plain({"request": request, "want": want})) + "\n")
print("wrote", os.path.normpath(out))
