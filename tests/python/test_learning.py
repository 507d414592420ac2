#!/usr/bin/env python3
"""Agents learn through the server: SB3's PPO, sb3-contrib's MaskablePPO, and the CleanRL-style example. Fixed seeds; each about half a minute."""
import os
import sys

import numpy as np
import torch

import support
from support import Server, config
from textgen_gym.sb3 import TextGenVecEnv

# Six tokens, of which the reward wants rising numbers; the prompt says nothing.
NUMBERS = [256, 257, 258]  # " 1", " 2", " 3" of tests/golden/env/tokenizer
TASK = dict(reward_fn={"id": "increasing_numbers", "args": {"min_tokens": 3}}, datapool={"id": "dummy_pool", "args": {"prompt": "Hello", "n_samples": 4}},
            env_args={"max_prompt_length": 4, "max_episode_length": 3}, alg=None, train_evaluation=None)


def extractor():
    """Token ids are names, not quantities: they are embedded."""
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Tokens(BaseFeaturesExtractor):
        def __init__(self, space, width=16):
            length = space["input_ids"].shape[0]
            super().__init__(space, length * width)
            self.embedding = torch.nn.Embedding(int(space["input_ids"].high.max()) + 1, width)

        def forward(self, obs):
            return (self.embedding(obs["input_ids"].long()) * obs["attention_mask"].unsqueeze(-1)).flatten(1)
    return Tokens


def mean_reward(model, env, masked=False, episodes=100):
    obs, total, n = env.reset(), 0.0, 0
    while n < episodes:
        kwargs = {"action_masks": env.action_masks()} if masked else {}
        actions, _ = model.predict(obs, deterministic=False, **kwargs)
        obs, rewards, dones, _ = env.step(actions)
        total, n = total + float(rewards.sum()), n + int(dones.sum())
    return total / n


def train(cls, policy, masked, steps, **options):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with Server(config(**TASK)) as server:
        env = TextGenVecEnv(server.address, 16, length_is_end=True, **options)
        env.seed(1)
        model = cls(policy, env, n_steps=48, batch_size=256, n_epochs=6, learning_rate=2e-3, ent_coef=0.005, gamma=1.0, seed=1, device="cpu",
                    policy_kwargs={"features_extractor_class": extractor(), "net_arch": [32]})
        before = mean_reward(model, env, masked)
        model.learn(steps)
        after = mean_reward(model, env, masked)
        env.close()
    return before, after


def test_ppo():
    from stable_baselines3 import PPO
    before, after = train(PPO, "MultiInputPolicy", False, 40_000)
    assert after > before + 0.4, (before, after)
    return f"reward {before:.2f} -> {after:.2f}"


def test_maskable_ppo():
    from sb3_contrib import MaskablePPO
    before, after = train(MaskablePPO, "MultiInputPolicy", True, 12_000, allowed_tokens=NUMBERS + [1, 2, 3, 264], min_new_tokens=3)
    assert after > before + 0.3 and after > 0.8, (before, after)
    return f"reward {before:.2f} -> {after:.2f}"


def test_cleanrl_example():
    sys.path.insert(0, os.path.join(support.PACKAGE, "examples"))
    import cleanrl_ppo
    with Server(config(**TASK)) as server:
        first, last = cleanrl_ppo.train(server.address, total_timesteps=12_000, allowed_tokens=NUMBERS + [1, 2, 3, 264], quiet=True)
    assert last > first + 0.3, (first, last)
    return f"reward {first:.2f} -> {last:.2f}"


if __name__ == "__main__":
    support.main(sys.modules[__name__])
