#!/usr/bin/env python3
"""Optimizers of both backends against torch.optim, and 8-bit Adam against a numpy program and against f32 Adam, on random problems.
An argument, or SEED, is the seed (default 1); N is the number of problems of each kind."""
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import optim_reference as ref
from ppo_reference import plain

BUILD = os.environ.get("BUILD", "build")
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ.get("SEED", 1))
N = int(os.environ.get("N", 12))
passed = failed = 0


def note(ok, text):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", text)


def answers(requests):
    lines = "".join(json.dumps(plain(r)) + "\n" for r in requests)
    out = subprocess.run([f"{BUILD}/tests/rl-eval"], input=lines, capture_output=True, text=True).stdout.splitlines()
    note(len(out) == len(requests), f"rl-eval answered {len(out)} of {len(requests)} requests")
    return [json.loads(line) for line in out]


def against_torch(rng):
    cases = [ref.case(rng, kind, int(rng.integers(1, 700)), 10, backend)
             for kind in ("adam", "adamw", "sgd", "rmsprop") for backend in ("ref", "cpu") for _ in range(N)]
    worst = {}
    for (request, want), got in zip(cases, answers([r for r, _ in cases])):
        kind = request["kind"]
        note(len(got["state"]) == len(want["state"]), f"{kind}: {len(got['state'])} moments, torch has {len(want['state'])}")
        for name, g, w in [("param", got["param"], want["param"])] + [(f"state {i}", *s) for i, s in enumerate(zip(got["state"], want["state"]))]:
            g, w = np.array(g), np.array(w, np.float64)
            # centered: the root of a difference of nearly equal numbers
            tol = 2e-3 if kind == "rmsprop" and request["centered"] and name != "state 0" else 2e-5
            d = float(np.max(np.abs(g - w) / np.maximum(1, np.abs(w))))
            worst[f"{kind} {name}"] = max(worst.get(f"{kind} {name}", 0), d)
            note(d <= tol, f"{kind} {request['backend']} {name}: differs by {d:g}")
    for name, d in sorted(worst.items()):
        print(f"  {name:20s} {d:.2e}")


def eight_bits(rng):
    """Against numpy: a number on the edge between two codes may get the other one, so a few elements may differ by one code."""
    cases = [ref.case(rng, "adamw_8bit", int(rng.integers(1, 3000)), 6, backend) for backend in ("ref", "cpu") for _ in range(N)]
    for (request, want), got in zip(cases, answers([r for r, _ in cases])):
        for i in range(2):
            g, w = np.array(got["state"][i]), np.array(want["state"][i], np.float64)
            near = np.abs(g - w) <= 1e-5 * np.maximum(np.abs(w), 1e-30)
            note(np.mean(~near) <= 0.002, f"8 bit {request['backend']} moment {i}: {np.mean(~near):.2%} of the codes differ")
        p, w = np.array(got["param"]), np.array(want["param"], np.float64)
        note(np.mean(np.abs(p - w) > 2e-5 * np.maximum(1, np.abs(w))) <= 0.005, f"8 bit {request['backend']} param: {np.max(np.abs(p - w)):g}")


def close_to_f32(rng):
    """40 steps on a least-squares problem: 8-bit Adam stays within 6 % of where f32 Adam goes, and its loss falls as far to within 1 %
    of the first one."""
    n, steps, lr = 1024, 40, 0.05
    target, scale = rng.standard_normal(n), 10.0 ** rng.uniform(-0.5, 0.5, n)
    results = {}
    for kind in ("adamw", "adamw_8bit"):
        param, grads = np.zeros(n, np.float32), []
        for _ in range(steps):  # gradients depend on the path: ask step by step
            p = param if not grads else np.array(answers([{**request, "grads": grads}])[0]["param"])
            grads.append((scale * (p - target)).astype(np.float32))
            request = {"op": "optim", "kind": kind, "backend": "cpu", "param": param, "lr": lr, "betas": [0.9, 0.999], "eps": 1e-8}
        results[kind] = np.array(answers([{**request, "grads": grads}])[0]["param"])
    loss = {k: float(np.mean((p - target) ** 2)) for k, p in results.items()}
    apart = float(np.sqrt(np.mean((results["adamw"] - results["adamw_8bit"]) ** 2)) / np.sqrt(np.mean(results["adamw"] ** 2)))
    print(f"  8 bit after {steps} steps: {apart:.2%} from f32 (root mean square), loss {loss['adamw_8bit']:.4f} against {loss['adamw']:.4f}")
    note(apart <= 0.06, f"8-bit Adam is {apart:.2%} from f32 Adam, at most 6 % expected")
    note(abs(loss["adamw_8bit"] - loss["adamw"]) <= 0.01 * float(np.mean(target ** 2)), f"losses {loss}")


if __name__ == "__main__":
    generator = np.random.default_rng(SEED)
    against_torch(generator)
    eight_bits(generator)
    close_to_f32(generator)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
