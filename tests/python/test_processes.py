#!/usr/bin/env python3
"""The Python client in forked children, pickled copies, SubprocVecEnv, AsyncVectorEnv and threads."""
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
from gymnasium.vector import SyncVectorEnv

import support
from support import EOS, Server, same
from textgen_gym import RewardUnavailable, TextGenEnv, TextGenVectorEnv, pb


def _in_child(env, queue):
    try:
        seen = [env.step(257)[0]["input_ids"].tolist(), env.step(EOS)[4]["text"]]
        queue.put(seen)
    except BaseException as e:
        queue.put(repr(e))


def test_fork():
    """An environment with a running episode goes on in a forked child with a session of its own, and in the parent as if nothing had been."""
    with Server() as server:
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        env.step(256)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=_in_child, args=(env, queue))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
            child.start()
        found = queue.get(timeout=60)
        child.join()
        assert found == [env.step(257)[0]["input_ids"].tolist(), env.step(EOS)[4]["text"]], found
        assert env.last_call["connects"] == 1
        env.close()


def test_pickle():
    """A copy goes on where the original was."""
    with Server() as server:
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        env.step(256)
        copy = pickle.loads(pickle.dumps(env))
        same(env.step(257), copy.step(257))
        same(env.step(EOS), copy.step(EOS))
        same(env.reset(), copy.reset())
        copy.close()
        env.close()
        envs = TextGenVectorEnv(server.address, 3)
        envs.reset(seed=0)
        copy = pickle.loads(pickle.dumps(envs))
        same(envs.step(np.array([1, 2, EOS])), copy.step(np.array([1, 2, EOS])))
        envs.close()
        copy.close()
        error = pickle.loads(pickle.dumps(RewardUnavailable("x", 16, (3,))))
        assert error.code == 16 and error.slots == (3,)


class _Maker:
    def __init__(self, address):
        self.address = address

    def __call__(self):
        return TextGenEnv(self.address)


def test_subproc_vec_env():
    """SB3's SubprocVecEnv, forked and spawned, and gymnasium's AsyncVectorEnv."""
    from gymnasium.vector import AsyncVectorEnv
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv
    with Server() as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = None
        env = TextGenEnv(server.address)  # the parent has a session of its own before it forks
        env.reset(seed=9)
        for make in (lambda fns: DummyVecEnv(fns), lambda fns: SubprocVecEnv(fns, start_method="fork"), lambda fns: SubprocVecEnv(fns, start_method="forkserver")):
            envs = make([_Maker(server.address)] * 2)
            envs.seed(1)
            seen = [envs.reset()["input_ids"]]
            rng = np.random.default_rng(0)
            for _ in range(25):
                obs, rewards, dones, _ = envs.step(rng.integers(0, 265, 2))
                seen.append((obs["input_ids"], rewards.astype(np.float32), dones))
            envs.close()
            want = want or seen
            same(want, seen)
        envs = AsyncVectorEnv([_Maker(server.address)] * 2, context="fork")
        obs, _ = envs.reset(seed=1)
        same(want[0], obs["input_ids"])
        envs.close()
        env.step(1)
        env.close()


def test_threads():
    """Calls from several threads, each with its own environment and all with one."""
    with Server() as server:
        shared = TextGenVectorEnv(server.address, 1)
        failures = []

        def work(k):
            try:
                env = TextGenEnv(server.address)
                for episode in range(5):
                    env.reset(seed=k)
                    for _ in range(19):
                        env.step(1)
                        shared.episodes.slots.connection.call(pb.SampleRange(split=1, n=1))
                env.close()
            except Exception as e:
                failures.append(e)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        shared.close()
        assert not failures, failures


def test_many_environments_in_one_process():
    with Server() as server:
        envs = SyncVectorEnv([lambda: TextGenEnv(server.address)] * 40)
        envs.reset(seed=0)
        envs.step(np.full(40, 3))
        assert len([t for t in threading.enumerate() if t.name == "textgen_gym-keeper"]) == 1
        envs.close()


def test_exit_without_close():
    """A program that forgets close() ends, at once and without noise."""
    with Server() as server:
        code = (f"import sys; sys.path.insert(0, {support.PACKAGE!r}); import textgen_gym as t\n"
                f"e = t.TextGenEnv({server.address!r}); e.reset(seed=0); e.step(1)")
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert time.monotonic() - started < 30


if __name__ == "__main__":
    support.main(sys.modules[__name__])
