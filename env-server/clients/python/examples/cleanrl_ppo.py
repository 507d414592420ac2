#!/usr/bin/env python3
"""PPO in one file, in the manner of CleanRL, on textgen's environment server.

    textgen-env --config task.yml --bind ipc:///tmp/env.sock &
    python cleanrl_ppo.py ipc:///tmp/env.sock
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from textgen_gym import TextGenVectorEnv


class Agent(nn.Module):
    def __init__(self, space, n_actions, width=16):
        super().__init__()
        length = space["input_ids"].shape[0]
        self.embedding = nn.Embedding(n_actions, width)
        self.body = nn.Sequential(nn.Linear(length * width, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, n_actions), nn.Linear(64, 1)

    def forward(self, ids, mask, allowed):
        hidden = self.body((self.embedding(ids) * mask.unsqueeze(-1)).flatten(1))
        logits = self.actor(hidden).masked_fill(~allowed, -1e9)
        return Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def train(address, total_timesteps=50_000, num_envs=16, num_steps=48, epochs=4, minibatches=4, lr=3e-3, gamma=1.0, lam=0.95, clip=0.2, entropy=0.01,
          seed=1, quiet=False, **options):
    """Returns the mean episode return of the first and of the last rollout. options: of the environment (split, allowed_tokens, …)."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    envs = TextGenVectorEnv(address, num_envs, **options)  # SAME_STEP: no action is ever thrown away
    agent = Agent(envs.single_observation_space, int(envs.single_action_space.n))
    optimizer = torch.optim.Adam(agent.parameters(), lr=lr, eps=1e-5)
    batch = num_envs * num_steps
    returns_of_rollouts = []

    def tensors(obs):
        return torch.as_tensor(obs["input_ids"]), torch.as_tensor(obs["attention_mask"]).float(), torch.as_tensor(envs.action_masks())

    obs, _ = envs.reset(seed=seed)
    for update in range(max(1, total_timesteps // batch)):
        rollout, finished = [], []
        for _ in range(num_steps):
            ids, mask, allowed = tensors(obs)
            with torch.no_grad():
                dist, value = agent(ids, mask, allowed)
                action = dist.sample()
            obs, reward, terminated, truncated, infos = envs.step(action.numpy())
            done = terminated | truncated
            if done.any():  # what an ending episode tells is in final_info
                finished += infos["final_info"]["episode_return"][done].tolist()
            rollout.append((ids, mask, allowed, action, dist.log_prob(action).detach(), value, torch.as_tensor(reward).float(), torch.as_tensor(done).float()))
        with torch.no_grad():
            next_value = agent(*tensors(obs))[1]
        # A reply of full length has got its reward: a cut counts as an end. To go on from its value instead, look at infos["final_obs"].
        advantage, last = torch.zeros(num_steps, num_envs), torch.zeros(num_envs)
        for t in reversed(range(num_steps)):
            value, reward, done = rollout[t][5], rollout[t][6], rollout[t][7]
            after = next_value if t == num_steps - 1 else rollout[t + 1][5]
            delta = reward + gamma * after * (1 - done) - value
            last = delta + gamma * lam * (1 - done) * last
            advantage[t] = last
        flat = [torch.cat([step[k] for step in rollout]) for k in range(6)]
        advantage = advantage.flatten()
        target = advantage + flat[5]
        for _ in range(epochs):
            for index in np.array_split(rng.permutation(batch), minibatches):
                ids, mask, allowed, action, logprob, _ = (x[index] for x in flat)
                dist, value = agent(ids, mask, allowed)
                ratio = (dist.log_prob(action) - logprob).exp()
                a = advantage[index]
                a = (a - a.mean()) / (a.std() + 1e-8)
                policy_loss = -torch.min(a * ratio, a * ratio.clamp(1 - clip, 1 + clip)).mean()
                loss = policy_loss + 0.5 * (value - target[index]).pow(2).mean() - entropy * dist.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        returns_of_rollouts.append(float(np.mean(finished)))
        if not quiet:
            print(f"step {(update + 1) * batch}: return {returns_of_rollouts[-1]:.3f} over {len(finished)} episodes")
    envs.close()
    return returns_of_rollouts[0], returns_of_rollouts[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--total-timesteps", type=int, default=50_000)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    train(args.address, args.total_timesteps, args.num_envs, seed=args.seed)
