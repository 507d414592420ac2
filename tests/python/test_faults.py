#!/usr/bin/env python3
"""What the Python client does when something fails: servers that are killed, stopped or replaced, connections that are cut, rewards that fail."""
import signal
import sys
import threading
import time

import numpy as np

import support
from support import EOS, Server, config, same, transcript
import textgen_gym
from textgen_gym import RewardUnavailable, TextGenEnv, TextGenTimeout, TextGenUnavailable


def test_killed_server():
    """kill -9 and a restart at the same address: the same results to the last bit; over ipc and tcp, at rest and under way."""
    for tcp in (False, True):
        with Server(tcp=tcp) as server:
            want, _ = transcript(server)

            def kill(t, envs):
                if t % 20 == 7:
                    server.restart()
            got, stats = transcript(server, kill)
            same(want, got)
            assert stats["rebuilds"] >= 20, stats

            def kill_later(t, envs):
                if t % 30 == 10:
                    server.kill()
                    threading.Timer(0.3, server.start).start()
            got, stats = transcript(server, kill_later)
            same(want, got)


def test_killed_server_single_env():
    with Server() as server:
        def episode(kill):
            env = TextGenEnv(server.address)
            seen = [env.reset(seed=2)]
            for token in (256, 257, 258, 3, 4, EOS):
                if kill:
                    server.restart()
                seen.append(env.step(token))
            env.close()
            return seen
        same(episode(False), episode(True))


def test_killed_server_sb3():
    """The same through SB3's VecEnv."""
    from textgen_gym.sb3 import TextGenVecEnv
    with Server() as server:
        def play(kill):
            envs = TextGenVecEnv(server.address, 4, observation="rl4lms")
            envs.seed(5)
            rng = np.random.default_rng(1)
            seen = [envs.reset()]
            for t in range(60):
                if kill and t % 10 == 7:
                    server.restart()
                envs.step_async(rng.integers(0, 265, 4))
                if kill and t % 10 == 2:
                    server.restart()  # between the two halves of a step
                obs, rewards, dones, infos = envs.step_wait()
                for info in infos:
                    info.get("episode", {}).pop("t", None)  # a time
                seen.append((obs, rewards, dones, infos))
            stats = dict(envs.episodes.slots.connection.stats)
            envs.close()
            return seen, stats
        want, _ = play(False)
        got, stats = play(True)
        same(want, got)
        assert stats["rebuilds"] >= 40, stats


def test_lost_connection():
    """The connection goes, the server stays: the session is resumed, nothing is made twice."""
    with Server() as server:
        want, _ = transcript(server)

        def cut(t, envs):
            if t % 10 == 3:
                envs.episodes.slots.connection._down("cut by the test")
        got, stats = transcript(server, cut)
        same(want, got)
        return f"resumes {stats['resumes']}, rebuilds {stats['rebuilds']}"


def test_stopped_server():
    """SIGSTOP: every call ends by its deadline and a second; after SIGCONT the same step goes on."""
    with Server() as server:
        env = TextGenEnv(server.address, step_timeout=2, reset_timeout=2)
        env.reset(seed=0)
        env.step(256)
        server.signal(signal.SIGSTOP)
        for call in (lambda: env.step(257), lambda: env.step(257)):
            started = time.monotonic()
            try:
                call()
                raise AssertionError("no exception")
            except TextGenTimeout:
                assert time.monotonic() - started < 3, time.monotonic() - started
        server.signal(signal.SIGCONT)
        obs = env.step(257)[0]
        assert obs["step"][0] == 2
        text = env.step(EOS)[4]["text"]
        assert text == " 1 2", text
        env.close()


def test_nobody_there():
    for address in ("ipc:///tmp/textgen-nobody-is-there.sock", "tcp://127.0.0.1:9"):
        started = time.monotonic()
        try:
            TextGenEnv(address, connect_timeout=1)
            raise AssertionError("no exception")
        except TextGenUnavailable as e:
            assert address in str(e)
        assert time.monotonic() - started < 2
    try:
        TextGenEnv("http://localhost")
        raise AssertionError("no exception")
    except ValueError:
        pass


def test_other_config_comes_back():
    with Server() as server:
        env = TextGenEnv(server.address, step_timeout=5)
        env.reset(seed=0)
        server.args = ["env.args.max_episode_length=7"]
        server.restart()
        try:
            env.step(1)
            raise AssertionError("no exception")
        except textgen_gym.ConfigMismatch:
            pass
        env.close()


def test_heartbeats_while_idle():
    """Longer silence of the user than three heartbeats: still the same session."""
    with Server(None, "--heartbeat-ms", "200") as server:
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        time.sleep(1.5)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            sum(range(1000))
        env.step(1)
        assert env.last_call["connects"] == 1 and env.last_call["retries"] == 0, env.last_call
        env.close()


def test_failing_reward():
    """A reward that fails is never a number: raised, or a truncated episode that says so."""
    broken = {"id": "common_gen_repeat_penalty"}  # fails on prompts without its instruction
    with Server(config(reward_fn=broken, alg=None, train_evaluation=None)) as server:
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        env.step(256)
        try:
            env.step(EOS)
            raise AssertionError("no exception")
        except RewardUnavailable as e:
            assert e.slots == (0,)
        env.reset()
        env.step(1)
        env.close()
        env = TextGenEnv(server.address, on_reward_failure="truncate")
        env.reset(seed=0)
        _, reward, terminated, truncated, info = env.step(EOS)
        assert reward == 0.0 and (terminated or truncated) and info["reward_valid"] is False
        env.close()


if __name__ == "__main__":
    support.main(sys.modules[__name__])
