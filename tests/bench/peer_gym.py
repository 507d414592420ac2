"""Environment steps per second with full dict observations: our clients beside an environment of RL4LMs's shape under SB3's SubprocVecEnv.

    peer_gym.py [SECONDS]

The same prompts (512 places), tokenizer, 128 new tokens, rule reward and random actions on both sides. Every case runs in turn, two rounds; the better round
of each counts. Prints a table and JSON lines.
"""
import json
import os
import sys
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import numpy as np
import torch  # before the forks, which then share it
from transformers import AutoTokenizer

import support
from rl4lms_env import KEYS, ShapedEnv, increasing_numbers

PROMPT, NEW, ROUNDS = 512, 128, 2
MODEL = os.path.join(support.ROOT, "configs", "models", "tiny")
TEXTS = [" ".join(f"word{(i * 7 + j * 13) % 97} and {j}" for j in range(200)) for i in range(16)]


class MakeShaped:
    def __call__(self):
        torch.set_num_threads(1)
        tokenizer = AutoTokenizer.from_pretrained(MODEL)
        return ShapedEnv(tokenizer, [(text, [""], None) for text in TEXTS], increasing_numbers(20), PROMPT, NEW)


class MakeOurs:
    def __init__(self, address):
        self.address = address

    def __call__(self):
        from textgen_gym import TextGenEnv
        return TextGenEnv(self.address, observation="rl4lms")


def shaped(address, n):
    from stable_baselines3.common.vec_env import SubprocVecEnv
    return SubprocVecEnv([MakeShaped()] * n, start_method="fork")


def ours_sb3(address, n):
    from textgen_gym.sb3 import TextGenVecEnv
    return TextGenVecEnv(address, n, observation="rl4lms")


def ours_vector(address, n):
    from textgen_gym import TextGenVectorEnv
    return TextGenVectorEnv(address, n, observation="rl4lms")


def ours_async(address, n):
    from gymnasium.vector import AsyncVectorEnv
    return AsyncVectorEnv([MakeOurs(address)] * n, context="fork")


def ours_subproc(address, n):
    from stable_baselines3.common.vec_env import SubprocVecEnv
    return SubprocVecEnv([MakeOurs(address)] * n, start_method="fork")


CASES = [(who, make, n) for n in (2, 10) for who, make in (
    ("RL4LMs shape, SB3 SubprocVecEnv", shaped), ("textgen sb3.TextGenVecEnv", ours_sb3), ("textgen TextGenVectorEnv", ours_vector),
    ("textgen TextGenEnv, gymnasium AsyncVectorEnv", ours_async), ("textgen TextGenEnv, SB3 SubprocVecEnv", ours_subproc))]
CASES += [("textgen sb3.TextGenVecEnv", ours_sb3, 64)]


def measure(env, n, seconds):
    env.reset()
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 700, (512, n))
    for k in range(20):
        env.step(actions[k])
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for k in range(32):
            obs = env.step(actions[k % 512])[0]
            done += n
    assert set(obs) == set(KEYS), "all six arrays"
    return done / (time.perf_counter() - started)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    from stable_baselines3.common.vec_env import SubprocVecEnv  # noqa: F401  (before the clock runs)
    warnings.simplefilter("ignore")
    data = support.config(tokenizer={"model_name": MODEL}, alg=None, train_evaluation=None, reward_fn={"id": "increasing_numbers", "args": {"min_tokens": 20}},
                          env={"args": {"max_prompt_length": PROMPT, "max_episode_length": NEW}})
    best = {}
    with support.Server(data) as server:
        path = os.path.join(server.folder, "texts.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"prompt": text, "references": [""]}) + "\n" for text in TEXTS)
        data["datapool"] = {"id": "jsonl", "args": {"train": path, "val": path, "test": path}}
        with open(server.config, "w", encoding="utf-8") as f:
            json.dump(data, f)
        server.restart()
        for _ in range(ROUNDS):
            for who, make, n in CASES:
                env = make(server.address, n)
                rate = measure(env, n, seconds)
                env.close()
                best[who, n] = max(best.get((who, n), 0.0), rate)
    print(f"environment steps/s, prompt {PROMPT}, {NEW} new tokens, six arrays and the text at every step")
    for who, _, n in CASES:
        peer = best.get((CASES[0][0], n))
        beside = f"{best[who, n] / peer:6.1f}x" if peer else "       "
        print(f"  {n:4d} envs  {who:48s} {best[who, n]:10.0f} {beside}")
        print(json.dumps({"bench": f"gym env x{n} (1000 steps)", "who": who, "seconds": 1000 / best[who, n], "steps_per_s": round(best[who, n])}))


if __name__ == "__main__":
    main()
