#!/usr/bin/env python3
"""Groups of samples of one prompt, whose reward compares them: TextGenVectorEnv and TextGenVecEnv with group_size, against real textgen-env processes."""
import asyncio
import pickle
import sys

import numpy as np
from gymnasium.vector import AutoresetMode

import support
from support import EOS, Server, config, same
from textgen_gym import AsyncClient, RewardUnavailable, TextGenEnv, TextGenVectorEnv
from textgen_gym.sb3 import TextGenVecEnv

INNER = {"id": "increasing_numbers", "args": {"min_tokens": 4}}
RANKED = {"id": "ranked", "args": {"mode": "rank", "reward": INNER}}
POOL = {"id": "dummy_pool", "args": {"prompt": "Hello the", "n_samples": 1000}}


def ranked(**changes):
    return config(reward_fn=RANKED, datapool=POOL, alg=None, train_evaluation=None, **changes)


def random_actions(rng, n):
    actions = rng.integers(0, 264, n)
    actions[rng.random(n) < 0.15] = EOS
    return actions


def play(envs, steps, fault=None, seed=5):
    """All that an agent sees."""
    rng = np.random.default_rng(1)
    seen = [envs.reset(seed=seed)]
    for t in range(steps):
        if fault:
            fault(t)
        seen.append(envs.step(random_actions(rng, envs.num_envs)))
    return seen


def test_groups_end_together_with_their_places():
    """Every group: one prompt, one end, rewards as the server ranks its texts; ended members wait."""
    async def places(address, prompt, texts):
        async with AsyncClient(address) as client:
            return [s.value for s in await client.score([prompt] * len(texts), texts, ranked=True)]
    with Server(ranked()) as server:
        n, size = 8, 4
        envs = TextGenVectorEnv(server.address, n, group_size=size)
        rng = np.random.default_rng(0)
        _, infos = envs.reset(seed=7)
        prompts = infos["sample"].copy()
        checked = waited = 0
        waiting = np.zeros(n, bool)
        for _ in range(200):
            before = {k: v.copy() for k, v in envs.episodes.observations.get(envs.episodes.rows).items()}
            obs, rewards, terminated, truncated, infos = envs.step(random_actions(rng, n))
            ended = (terminated | truncated).reshape(-1, size)
            assert (ended.all(1) == ended.any(1)).all()
            running = ~ended.reshape(-1)
            still = infos.get("waiting", np.zeros(n, bool)) & running
            assert (still | ~waiting)[running].all()  # who waited goes on waiting until the end
            for key in obs:
                assert np.array_equal(obs[key][still], before[key][still])
            assert (rewards[running] == 0).all()
            waited += int(still.sum())
            waiting = still
            for g in np.flatnonzero(ended.all(1)):
                rows = slice(g * size, (g + 1) * size)
                final = [infos["final_info"]["text"][i] for i in range(n)][rows]
                want = asyncio.run(places(server.address, "Hello the", final)) if checked < 12 else rewards[rows]
                assert np.allclose(rewards[rows], want), (rewards[rows], want, final)
                assert len(set(infos["sample"][rows].tolist())) == 1 and infos["final_info"]["reward_valid"][rows].all()
                assert np.array_equal(infos["final_info"]["episode_return"][rows], rewards[rows])
                checked += 1
        assert len(set(prompts[:size].tolist())) == 1 and len(set(prompts.tolist())) == 2 and checked > 12 and waited > 50, (prompts, checked, waited)
        assert abs(rewards).max() <= 1
        envs.close()


def test_every_mode_gives_the_same_groups():
    """Rewards and texts of a group do not depend on how its environments are reset."""
    def ends(envs, mode):
        found, rng = [], np.random.default_rng(3)
        envs.reset(seed=2)
        plan = random_actions(rng, 21 * 6).reshape(21, 6)  # of each environment, by its own step
        at, ended = np.zeros(6, int), np.zeros(6, bool)
        while len(found) < 4:
            if mode == AutoresetMode.DISABLED and ended.any():
                envs.reset(options={"reset_mask": ended.copy()})
            if mode != AutoresetMode.SAME_STEP:
                at[ended] = 0
            skip = ended if mode == AutoresetMode.NEXT_STEP else np.zeros(6, bool)
            _, rewards, terminated, truncated, infos = envs.step(plan[np.minimum(at, 20), np.arange(6)])
            at[~skip] += 1
            ended = terminated | truncated
            if ended.any():
                final = infos["final_info"] if mode == AutoresetMode.SAME_STEP else infos
                found += [(int(g), [float(r) for r in rewards[3 * g:3 * g + 3]], [final["text"][i] for i in range(3 * g, 3 * g + 3)])
                          for g in (0, 1) if ended[3 * g]]
                if mode == AutoresetMode.SAME_STEP:
                    at[ended] = 0
        envs.close()
        return sorted(found)[:4]
    with Server(ranked()) as server:
        all_of = [ends(TextGenVectorEnv(server.address, 6, group_size=3, autoreset_mode=mode), mode) for mode in AutoresetMode]
        assert all_of[0] == all_of[1] == all_of[2], all_of


def test_killed_server():
    """kill -9 and a restart, with members that wait: the same results."""
    with Server(ranked()) as server:
        want = play(TextGenVectorEnv(server.address, 8, group_size=4), 60)
        envs = TextGenVectorEnv(server.address, 8, group_size=4)
        got = play(envs, 60, lambda t: server.restart() if t % 9 == 4 else None)
        same(want, got)
        assert envs.episodes.slots.connection.stats["rebuilds"] > 20
        copy = pickle.loads(pickle.dumps(envs))
        rng = np.random.default_rng(9)
        for _ in range(30):
            actions = random_actions(rng, 8)
            same(envs.step(actions), copy.step(actions))
        envs.close()
        copy.close()


def test_sb3():
    with Server(ranked()) as server:
        ours, theirs = TextGenVecEnv(server.address, 8, group_size=4), TextGenVectorEnv(server.address, 8, group_size=4)
        ours.seed(5)
        same(ours.reset(), theirs.reset(seed=5)[0])
        rng = np.random.default_rng(1)
        ended = 0
        for _ in range(60):
            actions = random_actions(rng, 8)
            obs, rewards, dones, infos = ours.step(actions)
            obs2, rewards2, terminated, truncated, infos2 = theirs.step(actions)
            same(obs, obs2)
            assert np.array_equal(rewards, rewards2.astype(np.float32)) and np.array_equal(dones, terminated | truncated)
            assert all(("terminal_observation" in info) == bool(done) for info, done in zip(infos, dones))
            ended += int(dones.sum())
        assert ended >= 16
        ours.close()
        theirs.close()


def test_ordinary_rewards_in_groups():
    """A reward that compares nothing is given at each member's own end; the group still ends together."""
    with Server(config(datapool=POOL)) as server:
        envs = TextGenVectorEnv(server.address, 2, group_size=2)
        envs.reset(seed=1)
        rewards = [envs.step(np.array(a))[1] for a in ([EOS, 3], [4, EOS])]
        alone = TextGenVectorEnv(server.address, 2, autoreset_mode=AutoresetMode.DISABLED)
        alone.reset(seed=1)
        first = alone.step(np.array([EOS, 3]))[1]
        assert rewards[0][0] == first[0] and rewards[1][0] == 0.0, (rewards, first)
        envs.close()
        alone.close()


def test_failures():
    """Too few members that can be ranked, a judge that fails: said, by slot, never a number."""
    broken = {"id": "ranked", "args": {"mode": "rank", "reward": {"id": "process", "args": {"command": ["/bin/false"]}}}}
    with Server(ranked()) as server:
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        try:
            env.step(EOS)
            raise AssertionError("a single sample was ranked")
        except RewardUnavailable as e:
            assert "group_size" in str(e)
        env.close()
        for bad in ({"group_size": 3}, {"group_size": 1}, {"group_size": 2, "min_valid": 3}):
            try:
                TextGenVectorEnv(server.address, 4, **bad)
                raise AssertionError(bad)
            except ValueError:
                pass
        envs = TextGenVectorEnv(server.address, 4, group_size=2, autoreset_mode=AutoresetMode.DISABLED)
        envs.reset(seed=0)
        try:
            envs.reset(options={"reset_mask": np.array([True, False, False, False])})
            raise AssertionError("half a group was reset")
        except ValueError as e:
            assert "one group" in str(e)
        envs.close()
    with Server(ranked() | {"reward_fn": broken}) as server:
        envs = TextGenVectorEnv(server.address, 4, group_size=2)
        envs.reset(seed=0)
        envs.step(np.array([EOS, 1, 1, 1]))
        try:
            envs.step(np.array([1, EOS, 1, 1]))
            raise AssertionError("no exception")
        except RewardUnavailable as e:
            assert e.slots == (0, 1), e.slots
        envs.close()
        envs = TextGenVectorEnv(server.address, 4, group_size=2, on_reward_failure="truncate")
        envs.reset(seed=0)
        _, rewards, terminated, truncated, infos = envs.step(np.array([EOS, EOS, 1, 1]))
        assert not infos["final_info"]["reward_valid"][:2].any() and (rewards == 0).all() and (terminated | truncated).tolist() == [True, True, False, False]
        envs.close()


if __name__ == "__main__":
    support.main(sys.modules[__name__])
