#!/usr/bin/env python3
"""Replays recorded episodes of RL4LMs's environment through a real server and the Python client.

    tests/python/replay_env.py GOLDEN_DIR TOKENIZER_DIR

GOLDEN_DIR holds env.json, TOKENIZER_DIR the folders gpt2 and t5-small (or t5). The server runs with compat: rl4lms; spaces, types, all six arrays of
every observation, rewards, done flags and texts must equal the recording. Ends with `N passed, N failed`.
"""
import json
import os
import sys
import tempfile

import numpy as np

import support
from textgen_gym import TextGenEnv, TextGenVectorEnv

FIELDS = ("prompt_or_input_encoded_pt", "prompt_or_input_attention_mask_pt", "context_encoded_pt", "context_attention_mask_pt", "input_encoded_pt",
          "input_attention_mask_pt")


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, ok, detail=""):
        if ok:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {what} {detail}")


def number(value):
    """A recorded float; non-finite ones are texts."""
    return float(value) if isinstance(value, str) else value


def tokenizer_folder(root, name):
    for folder in ({"t5": ["t5-small", "t5"]}.get(name, [name])):
        if os.path.isdir(os.path.join(root, folder)):
            return os.path.join(root, folder)
    sys.exit(f"{root}: no folder for the tokenizer {name}")


def server_config(folder, tokenizer, episodes, reward, **env):
    path = os.path.join(folder, "samples.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        for i, e in enumerate(episodes):
            f.write(json.dumps({"id": str(i), "prompt": e["prompt"], "references": e.get("references", []), "meta": e.get("meta_data")}) + "\n")
    return support.config(compat="rl4lms", tokenizer={"model_name": tokenizer}, reward_fn=reward, alg=None, train_evaluation=None,
                          datapool={"id": "jsonl", "args": {"train": path, "val": path, "test": path}},
                          env={"args": {k: v for k, v in env.items() if v is not None}})


def check_obs(t, what, obs, recorded, dtypes):
    for field in FIELDS:
        t.check(f"{what} {field}", obs[field].tolist() == recorded[field], f"found {obs[field].tolist()}, recorded {recorded[field]}")
        if dtypes:
            t.check(f"{what} {field} type", str(obs[field].dtype) in dtypes[field], f"found {obs[field].dtype}, recorded {dtypes[field]}")


def replay(t, what, env, k, reset, steps, dtypes=None):
    """Episode of sample k."""
    obs, info = env.reset(seed=k, options={"sample": k})
    check_obs(t, f"{what} reset", obs, reset, dtypes)
    before = ""
    for n, step in enumerate(steps):
        name = f"{what} step {n}"
        obs, reward, terminated, truncated, info = env.step(step["action"])
        check_obs(t, name, obs, step["obs"], dtypes)
        t.check(f"{name} reward", reward == number(step["reward"]), f"found {reward}, recorded {step['reward']}")
        t.check(f"{name} done", (terminated or truncated) == step["done"], f"found {terminated or truncated}, recorded {step['done']}")
        t.check(f"{name} output", info["output"] == step["output"], f"found {info['output']!r}, recorded {step['output']!r}")
        t.check(f"{name} prev_output", info["prev_output"] == step["prev_output"] == before, f"found {info['prev_output']!r}")
        before = step["output"]


def check_spaces(t, what, env, c):
    t.check(f"{what} actions", env.action_space.n == c["action_space_n"], f"found {env.action_space.n}, recorded {c['action_space_n']}")
    for field, s in c["observation_space"].items():
        box = env.observation_space[field]
        t.check(f"{what} space {field}", list(box.shape) == s["shape"] and float(box.low.min()) == s["low"] and float(box.high.max()) == s["high"],
                f"found {box}, recorded {s}")


def replay_config(t, index, c, tokenizers):
    what = f"config {index} ({c['tokenizer']})"
    with tempfile.TemporaryDirectory() as folder:
        config = server_config(folder, tokenizer_folder(tokenizers, c["tokenizer"]), c["episodes"], c["reward"],
                               max_prompt_length=c["max_prompt_length"], max_episode_length=c["max_episode_length"],
                               terminate_on_eos=c["terminate_on_eos"], prompt_truncation_side=c["prompt_truncation_side"],
                               context_start_token=c["context_start_token"])
        with support.Server(config) as server:
            # As in the recording, "right" was set after the environment had forced its tokenizer to left.
            side = None if c["padding_side"] == "left" else c["padding_side"]
            env = TextGenEnv(server.address, observation="rl4lms", padding_side=side)
            check_spaces(t, what, env, c)
            for k, e in enumerate(c["episodes"]):
                replay(t, f"{what} episode {k}", env, k, e["reset"], e["steps"], c["dtypes"])
            env.close()
            replay_together(t, what, server.address, side, c)


def replay_together(t, what, address, side, c):
    """All episodes of a configuration at once, through the vector environment: the last observation of each must equal the recording too."""
    episodes = c["episodes"]
    env = TextGenVectorEnv(address, len(episodes), observation="rl4lms", padding_side=side, autoreset_mode="SameStep")
    env.reset(seed=0, options={"sample": list(range(len(episodes)))})
    over = [False] * len(episodes)
    for n in range(max(len(e["steps"]) for e in episodes)):
        actions = np.array([e["steps"][n]["action"] if n < len(e["steps"]) else 0 for e in episodes])
        obs, rewards, terminated, truncated, infos = env.step(actions)
        for k, e in enumerate(episodes):
            if over[k]:
                continue
            step, name = e["steps"][n], f"{what} together {k} step {n}"
            over[k] = bool(terminated[k] or truncated[k])
            t.check(f"{name} done", over[k] == step["done"])
            t.check(f"{name} reward", rewards[k] == number(step["reward"]), f"found {rewards[k]}, recorded {step['reward']}")
            one = infos["final_obs"][k] if over[k] else {field: value[k] for field, value in obs.items()}
            check_obs(t, name, one, step["obs"], c["dtypes"])
    env.close()


def replay_extra(t, x, tokenizers):
    what = x["what"].split(":")[0]
    gpt2 = tokenizer_folder(tokenizers, "gpt2")
    with tempfile.TemporaryDirectory() as folder:
        if "prompt_or_input_shape" in x:
            length = x["input_shape"][0] - x["prompt_or_input_shape"][0]
            config = server_config(folder, gpt2, [{"prompt": "x"}], None, max_episode_length=length)
            config["tokenizer"]["max_length"] = x["tokenizer_model_max_length"]  # which this folder does not tell
            with support.Server(config) as server:
                env = TextGenEnv(server.address, observation="rl4lms")
                obs, _ = env.reset(seed=0)
                t.check(f"{what} prompt", list(obs["prompt_or_input_encoded_pt"].shape) == x["prompt_or_input_shape"], str(obs["prompt_or_input_encoded_pt"].shape))
                t.check(f"{what} input", list(obs["input_encoded_pt"].shape) == x["input_shape"])
                env.close()
            return
        batched = any(step["reward"] == "-inf" for step in x["trace"]["steps"])
        reward = {"id": "common_gen_repeat_penalty_batched"} if batched else None
        config = server_config(folder, gpt2, [{"prompt": x["prompt"]}], reward, max_prompt_length=x["max_prompt_length"],
                               max_episode_length=x["max_episode_length"], terminate_on_eos=x.get("terminate_on_eos"))
        with support.Server(config) as server:
            env = TextGenEnv(server.address, observation="rl4lms", on_reward_failure="truncate")
            replay(t, what, env, 0, x["trace"]["reset"], x["trace"]["steps"])
            env.close()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    golden, tokenizers = sys.argv[1:]
    with open(os.path.join(golden, "env.json"), encoding="utf-8") as f:
        recorded = json.load(f)
    t = Tally()
    for index, c in enumerate(recorded["configs"]):
        before = t.failed
        replay_config(t, index, c, tokenizers)
        print(f"{'ok' if t.failed == before else 'FAILED'} config {index}: {c['tokenizer']}, padding {c['padding_side']}, truncation "
              f"{c['prompt_truncation_side']}, start {c['context_start_token']}, eos {c['terminate_on_eos']}, {len(c['episodes'])} episodes", flush=True)
    for x in recorded["extra"]:
        before = t.failed
        replay_extra(t, x, tokenizers)
        print(f"{'ok' if t.failed == before else 'FAILED'} {x['what']}", flush=True)
    print(f"{t.passed} passed, {t.failed} failed")
    sys.exit(1 if t.failed else 0)


if __name__ == "__main__":
    main()
