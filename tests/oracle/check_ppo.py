#!/usr/bin/env python3
"""GAE, the PPO and A2C losses with their derivatives, the conjugate gradient of TRPO and AdamW against stable-baselines3 and torch on random problems; then whole updates: recordings
made with PPO.train and A2C.train of stable-baselines3 and TRPO.train of sb3-contrib on transformers' GPT-2, replayed by replay-updates. An argument is the seed (default 1)."""
import json
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ppo_reference as ref
import update_recording

warnings.filterwarnings("ignore", "Mean of empty slice|invalid value encountered")  # no critic updates: SB3 logs their mean
BUILD = os.environ.get("BUILD", "build")
passed = failed = 0


def note(ok, text):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", text)


def difference(got, want):
    if want is None or got is None:
        return 0.0 if got is want else float("inf")
    got, want = np.array(got, np.float64), np.array(want, np.float64)
    return float(np.max(np.abs(got - want) / np.maximum(1, np.abs(want)))) if got.shape == want.shape else float("inf")


def arithmetic(seed):
    rng = np.random.default_rng(seed)
    cases = [ref.gae_case(rng, int(rng.integers(1, 400))) for _ in range(40)]
    cases += [ref.ppo_case(rng, int(rng.integers(1, 200))) for _ in range(60)]
    cases += [ref.a2c_case(rng, int(rng.integers(1, 200))) for _ in range(60)]
    cases += [ref.cg_case(rng, int(rng.integers(2, 60))) for _ in range(40)]
    cases += [ref.adamw_case(rng, int(rng.integers(1, 300)), 12, b) for b in ("ref", "cpu") for _ in range(10)]
    lines = "".join(json.dumps(ref.plain(request)) + "\n" for request, _ in cases)
    out = subprocess.run([f"{BUILD}/tests/rl-eval"], input=lines, capture_output=True, text=True).stdout.splitlines()
    note(len(out) == len(cases), f"rl-eval answered {len(out)} of {len(cases)} requests")
    worst = {}
    for (request, want), line in zip(cases, out):
        got = json.loads(line)
        for key, value in ref.plain(want).items():
            d = difference(got.get(key), value)
            name = f"{request['op']} {key}"
            worst[name] = max(worst.get(name, 0), d)
            note(d <= 1e-5, f"{name}: differs by {d:g}; {got.get('error', '')}")
    for name, d in worst.items():
        print(f"  {name:28s} {d:.2e}")


def updates(seed, n, algorithm, by):
    with tempfile.TemporaryDirectory() as folder:
        settings = {}
        for i in range(n):
            settings[f"case-{i}"] = update_recording.record(folder, f"case-{i}", 1000 * seed + 10 * i, algorithm)
        for backend in ("ref", "cpu"):
            run = subprocess.run([f"{BUILD}/tests/replay-updates", folder, "--backend", backend], capture_output=True, text=True)
            last = run.stdout.splitlines()[-1] if run.stdout else ""
            words = last.replace(",", "").split()
            ok = run.returncode == 0 and len(words) == 4 and words[2] == "0"
            note(ok, f"replay-updates --backend {backend} (exit {run.returncode}):\n{run.stdout if not ok else ''}{run.stderr}\n{json.dumps(settings) if not ok else ''}")
            print(f"  {n} updates by {by}'s {algorithm.upper()}, backend {backend}: {last}")


seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
arithmetic(seed)
updates(seed, 8, "ppo", "stable-baselines3")
updates(seed, 8, "a2c", "stable-baselines3")
updates(seed, 12, "trpo", "sb3-contrib")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
