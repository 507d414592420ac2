#!/usr/bin/env python3
"""The Python client's interfaces against real textgen-env processes: check_env, vector modes, seeds, masks, SB3's VecEnv, keys, asyncio."""
import asyncio
import os
import signal
import subprocess
import sys
import time
import warnings

import gymnasium
import numpy as np
import zmq
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import support
from support import EOS, Server, config, same, transcript
from textgen_gym import (AsyncClient, InvalidRequest, TextGenAuthError, TextGenEnv, TextGenTimeout, TextGenUnavailable, TextGenVectorEnv, WrongState,
                         pb)
from textgen_gym.keys import Keys


# ---- interfaces --------------------------------------------------------------------------------

def test_check_env():
    """gymnasium's and SB3's checkers, with every warning an error."""
    from gymnasium.utils.env_checker import check_env
    from stable_baselines3.common.env_checker import check_env as sb3_check_env
    with Server() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({}, {"observation": "rl4lms"}, {"padding_side": "right"}, {"mask_in_info": True, "min_new_tokens": 2}):
            env = gymnasium.make("textgen_gym:TextGen-v0", address=server.address, **options)
            check_env(env.unwrapped)
            sb3_check_env(env.unwrapped)
            env.close()
            env.close()


def test_make_and_make_vec():
    with Server() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        envs = gymnasium.make_vec("textgen_gym:TextGen-v0", num_envs=3, address=server.address)
        assert isinstance(envs.unwrapped, TextGenVectorEnv) and envs.num_envs == 3
        assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        obs, infos = envs.reset(seed=1)
        assert envs.observation_space.contains(obs) and infos["_sample_id"].all()
        envs.close()
        envs = gymnasium.make_vec("textgen_gym:TextGen-v0", num_envs=2, vectorization_mode="sync", address=server.address)
        envs.reset(seed=1)
        envs.close()
        env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("textgen_gym:TextGen-v0", address=server.address))
        env.reset(seed=0)
        info = env.step(EOS)[4]
        assert info["episode"]["l"] == 1 and info["stop_reason"] == "eos" and info["reward_valid"] is True
        env.close()


def test_vector_equals_sync_vector():
    """Every mode: observations, rewards, flags and infos of TextGenVectorEnv are those of gymnasium's SyncVectorEnv over single environments."""
    with Server() as server:
        for mode in AutoresetMode:
            for options in ({}, {"observation": "rl4lms"}, {"mask_in_info": True, "min_new_tokens": 2}, {"padding_side": "right", "step_text": True}):
                n = 5
                one = SyncVectorEnv([lambda: TextGenEnv(server.address, **options)] * n, autoreset_mode=mode)
                ours = TextGenVectorEnv(server.address, n, autoreset_mode=mode, **options)
                rng = np.random.default_rng(0)
                same(one.reset(seed=3), ours.reset(seed=3))
                ended = np.zeros(n, bool)
                for t in range(80):
                    if mode == AutoresetMode.DISABLED and ended.any():
                        same(one.reset(options={"reset_mask": ended.copy()}), ours.reset(options={"reset_mask": ended.copy()}))
                    actions = rng.integers(0, 265, n)
                    actions[rng.random(n) < 0.1] = EOS
                    a, b = one.step(actions), ours.step(actions)
                    same(a, b, f"{mode} {options} {t}")
                    assert ours.observation_space.contains(b[0])
                    ended = a[2] | a[3]
                one.close()
                ours.close()


def test_vector_arguments():
    with Server() as server:
        envs = TextGenVectorEnv(server.address, 3, autoreset_mode=AutoresetMode.DISABLED)
        envs.reset(seed=[5, 6, 7])
        first = envs.episodes.slots.sample[:]
        envs.reset(seed=5)
        assert envs.episodes.slots.sample == first
        for bad, error in (({"reset_mask": [True, False, False]}, TypeError), ({"reset_mask": np.zeros(3, bool)}, ValueError), ({"what": 1}, ValueError)):
            try:
                envs.reset(options=bad)
                raise AssertionError(bad)
            except error:
                pass
        envs.step(np.array([EOS, 1, 1]))
        try:
            envs.step(np.array([1, 1, 1]))
            raise AssertionError("stepped an ended environment")
        except WrongState:
            pass
        before = envs.episodes.slots.digest[1]
        envs.reset(options={"reset_mask": np.array([True, False, False])})
        assert envs.episodes.slots.digest[1] == before
        envs.step(np.array([1, 1, 1]))
        try:
            envs.step(np.array([1, 1, 265]))
            raise AssertionError("a token outside the vocabulary")
        except InvalidRequest as e:
            assert "265" in str(e)
        envs.step(np.array([1, 1, 264]))
        envs.close()


def test_seeds_and_streams():
    with Server(config(datapool={"id": "dummy_pool", "args": {"prompt": "x", "n_samples": 1000}})) as server:
        env = TextGenEnv(server.address)

        def stream(seed, n=5):
            samples = [env.reset(seed=seed)[1]["sample"]]
            return samples + [env.reset()[1]["sample"] for _ in range(n)]
        assert stream(7) == stream(7) != stream(8)
        env.step(3)
        assert stream(2**100) == stream(2**100) != stream(2**100 + 1)
        assert env.reset(seed=1, options={"sample": 17, "split": "val"})[1]["sample"] == 17
        other = TextGenEnv(server.address)
        assert len({other.reset()[1]["sample"] for _ in range(20)}) == 20  # entropy, then a permutation
        env.close()
        other.close()


def test_action_masks():
    with Server() as server:
        env = TextGenEnv(server.address, min_new_tokens=2, bad_words_ids=[5, [7, 8]], allowed_tokens=list(range(10)) + [EOS])
        env.reset(seed=0)
        mask = env.action_masks()
        assert mask.shape == (265,) and mask.dtype == bool and not mask[EOS] and not mask[5] and mask[8] and not mask[20]
        env.step(7)
        assert not env.action_masks()[8] and not env.action_masks()[EOS]
        env.step(3)
        assert env.action_masks()[8] and env.action_masks()[EOS]
        env.close()
        try:
            TextGenEnv(server.address, allowed_tokens=[3], bad_words_ids=[3])
            raise AssertionError("everything is forbidden")
        except ValueError:
            pass


def test_sb3_vec_env():
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
    from textgen_gym.sb3 import TextGenVecEnv
    with Server() as server:
        theirs = DummyVecEnv([lambda: TextGenEnv(server.address, observation="rl4lms")] * 4)
        ours = TextGenVecEnv(server.address, 4, observation="rl4lms")
        theirs.seed(3)
        ours.seed(3)
        same(dict(theirs.reset()), ours.reset())
        rng = np.random.default_rng(0)
        for t in range(80):
            actions = rng.integers(0, 265, 4)
            actions[rng.random(4) < 0.1] = EOS
            a, b = theirs.step(actions), ours.step(actions)
            same(dict(a[0]), b[0])
            same(a[1], b[1])
            same(a[2], b[2])
            for x, y, done in zip(a[3], b[3], a[2]):
                if done:
                    same(dict(x["terminal_observation"]), y["terminal_observation"])
                    assert x["TimeLimit.truncated"] is y["TimeLimit.truncated"] and x["text"] == y["text"]
                    assert y["episode"]["l"] == y["episode_length"]
        ours.step_async(rng.integers(0, 265, 4))
        ours.reset()  # the step is not made
        assert (ours.episodes.slots.length == 0).all()
        assert ours.get_attr("render_mode") == [None] * 4 and ours.env_is_wrapped(VecMonitor) == [False] * 4
        assert np.stack(ours.env_method("action_masks")).shape == (4, 265)
        theirs.close()
        ours.close()
        VecMonitor(TextGenVecEnv(server.address, 2)).close()


# ---- keys --------------------------------------------------------------------------------------

def test_any_key_is_a_key():
    """A slash may begin a key, as it may begin the name of a file."""
    pair = next(p for p in iter(zmq.curve_keypair, None) if p[0].startswith(b"/"))
    keys = Keys(server_key=pair[0].decode(), public_key=pair[0].decode(), secret_key=pair[1].decode())
    assert keys.server == keys.public == pair[0].decode()


def test_curve():
    textgen = os.path.join(support.ROOT, support.BUILD, "textgen")
    with Server() as plain:
        folder = plain.folder
        subprocess.run([textgen, "keygen", f"{folder}/server"], check=True, capture_output=True)
        subprocess.run([textgen, "keygen", f"{folder}/gym", "--role", "client", "--tenant", "a", "--allow", f"{folder}/allow.txt"], check=True,
                       capture_output=True)
        subprocess.run([textgen, "keygen", f"{folder}/other"], check=True, capture_output=True)
        with Server(None, "--key", f"{folder}/server.key", "--allow", f"{folder}/allow.txt", tcp=True) as server:
            pub = f"{folder}/server.pub"
            want, _ = transcript(plain, steps=30)
            got, _ = transcript(server, steps=30, server_key=pub, key_file=f"{folder}/gym.key")
            same(want, got)

            def restart(t, envs):
                if t == 11:
                    server.restart()
            got, _ = transcript(server, restart, steps=30, server_key=pub, key_file=f"{folder}/gym.key")
            same(want, got)
            for options in ({}, {"server_key": pub, "key_file": f"{folder}/other.key"}, {"server_key": pub}):
                started = time.monotonic()
                try:
                    TextGenEnv(server.address, connect_timeout=2, **options)
                    raise AssertionError(f"accepted: {options}")
                except (TextGenUnavailable, TextGenAuthError):
                    assert time.monotonic() - started < 3
            os.chmod(f"{folder}/gym.key", 0o644)
            try:
                TextGenEnv(server.address, server_key=pub, key_file=f"{folder}/gym.key")
                raise AssertionError("an open key file")
            except ValueError as e:
                assert "chmod 600" in str(e)


# ---- asyncio -----------------------------------------------------------------------------------

def test_async_client():
    async def use(server, kill):
        async with AsyncClient(server.address) as client:
            slots = await client.open(4)
            prompts = await client.reset(slots, seeds=[1, 2, 3, 4])
            seen = [(p.sample, p.text, p.tokens.tolist()) for p in prompts]
            for tokens in ([[256, 257]] * 4, [[258]] * 4, [[3, EOS, 7]] * 4):
                if kill:
                    server.restart()
                results = await client.step(slots, tokens)
                seen += [(r.n_applied, r.rewards.tolist(), r.terminated, r.text) for r in results]
            assert results[0].n_applied == 2 and results[0].stop_reason == "eos"
            await client.reset(slots[:2])
            scores = await client.score(["p"] * 2, ["1 2 3 4 5", "x"])
            seen.append([s.value for s in scores])
            samples = await client.samples("val", 2, 3)
            assert [s.index for s in samples] == [2, 3, 4]
            metrics = await client.metrics("val", [0, 1], texts=["1 2 3 4", "x"])
            assert len(metrics) == 1 and next(iter(metrics.values()))[1].shape == (2,)
            several = await asyncio.gather(*(client.samples("train", k, 1) for k in range(10)))
            assert [s[0].index for s in several] == list(range(10))
            await client.close_slots(slots)
            return seen, dict(client.stats)

    with Server() as server:
        want, _ = asyncio.run(use(server, False))
        got, stats = asyncio.run(use(server, True))
        same(want, got)
        assert stats["rebuilds"] == 12, stats

        async def stopped():
            async with AsyncClient(server.address) as client:
                server.signal(signal.SIGSTOP)
                started = time.monotonic()
                try:
                    await client.call(pb.SampleRange(split=1, n=1), timeout=1.5)
                    raise AssertionError("no exception")
                except TextGenTimeout:
                    assert time.monotonic() - started < 2.5
                finally:
                    server.signal(signal.SIGCONT)
                assert len(await client.samples("train", 0, 2)) == 2
        asyncio.run(stopped())


if __name__ == "__main__":
    support.main(sys.modules[__name__])
