#!/usr/bin/env python3
"""Random settings, prompts and tokens: the server and the client beside an environment of RL4LMs's shape, in torch and transformers (rl4lms_env.py).

SEED and N in the environment choose others and more. The tokenizers are the small ones of tests/golden.
"""
import json
import os
import shutil
import sys
import tempfile

import numpy as np
from transformers import PreTrainedTokenizerFast

import support
from rl4lms_env import KEYS, ShapedEnv, increasing_numbers
from support import Server, config
from textgen_gym import TextGenEnv

SEED, N = int(os.environ.get("SEED", 1)), int(os.environ.get("N", 12))
WORDS = ["the", "quick", " 1", " 2", "3", ",", "don't", " 's", "é", "漢", "\n", "  ", "0", "x", "Hello"]
GOLDEN = os.path.join(support.ROOT, "tests", "golden")


def tokenizer(name, folder):
    """A tokenizer's folder, and transformers' reading of it."""
    special = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"} if name == "t5" else {"eos_token": "<|endoftext|>"}
    source = os.path.join(GOLDEN, "tokenizer", "t5") if name == "t5" else os.path.join(GOLDEN, "env", "tokenizer")
    shutil.copy(os.path.join(source, "tokenizer.json"), folder)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(special, f)
    return PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"), **special)


def one(rng, index):
    with tempfile.TemporaryDirectory() as folder:
        compare_all(rng, index, folder, tokenizer("t5" if index % 2 else "gpt2", folder))


def compare_all(rng, index, folder, theirs):
    prompt, new = int(rng.integers(3, 24)), int(rng.integers(1, 12))
    eos, side, pad = bool(rng.integers(2)), ["left", "right"][rng.integers(2)], ["left", "right"][rng.integers(2)]
    start = [None, int(rng.integers(len(theirs)))][rng.integers(2)]
    texts = ["".join(rng.choice(WORDS, rng.integers(0, 40))) for _ in range(6)]
    reference = ShapedEnv(theirs, [(t, [""], None) for t in texts], increasing_numbers(4), prompt, new, eos, side, pad, start)
    args = {"max_prompt_length": prompt, "max_episode_length": new, "terminate_on_eos": eos, "prompt_truncation_side": side}
    if start is not None:
        args["context_start_token"] = start
    data = config(compat="rl4lms", tokenizer={"model_name": folder}, reward_fn={"id": "increasing_numbers", "args": {"min_tokens": 4}}, alg=None,
                  train_evaluation=None, env={"args": args})
    path = os.path.join(folder, "texts.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"prompt": t, "references": [""]}) + "\n" for t in texts)
    data["datapool"] = {"id": "jsonl", "args": {"train": path, "val": path, "test": path}}
    with Server(data) as server:
        env = TextGenEnv(server.address, observation="rl4lms", padding_side=pad)
        for k in range(len(texts)):
            compare(reference.reset(options={"sample": k})[0], env.reset(seed=k, options={"sample": k})[0], (index, k, "reset"))
            done = False
            while not done:
                token = int(rng.integers(len(theirs)))
                x, y = reference.step(token), env.step(token)
                compare(x[0], y[0], (index, k, token))
                assert x[1:4] == y[1:4], (x[1:4], y[1:4], x[4]["output"], y[4]["output"])
                text = x[4]["output"].replace("\0", "\ufffd")  # strings of the wire hold no NUL
                assert text == y[4]["output"], (text, y[4]["output"])
                done = x[2] or x[3]
        env.close()


def compare(a, b, where):
    for key in KEYS:
        assert a[key].tolist() == b[key].tolist(), (where, key, a[key], b[key])
        assert a[key].dtype == b[key].dtype, (where, key, a[key].dtype, b[key].dtype)


def test_shapes():
    rng = np.random.default_rng(SEED)
    for index in range(N):
        one(rng, index)
    return f"seed {SEED}, {N} settings"


if __name__ == "__main__":
    support.main(sys.modules[__name__])
