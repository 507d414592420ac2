#!/usr/bin/env python3
"""/metrics of a real textgen-env, read by Prometheus's own parser: counters move by exactly what this client did. Needs prometheus_client; test_install.py
runs it in a fresh virtual environment."""
import math
import re
import sys
import urllib.request

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

import support
from support import EOS, Server
from textgen_gym import TextGenEnv, TextGenVectorEnv, pb


def read(http):
    """{(sample name, labels): value}; every family has help, a type and its samples in one place."""
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=10) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), reply.headers
        text = reply.read().decode()
    found, names = {}, set()
    for family in text_string_to_metric_families(text):
        assert family.name not in names and family.documentation and family.type in ("counter", "gauge", "histogram"), family
        names.add(family.name)
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found and math.isfinite(sample.value), sample
            found[key] = sample.value
    assert len(found) == sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    return found


def http_of(server):
    return re.search(r"http://(127\.0\.0\.1:\d+)/", server.output()).group(1)


def moved(before, after):
    """What changed, by name and labels, without times, sizes and what the process does by itself."""
    own = re.compile(r"process_|textgen_loop_lag|textgen_scrapes|textgen_(bytes|messages)_|.*_(sum|bucket)$")
    return {key: after[key] - before.get(key, 0) for key in after if not own.match(key[0]) and after[key] != before.get(key, 0)}


def key(name, **labels):
    return name, frozenset(labels.items())


def test_exact_counts():
    with Server(None, "--http", "127.0.0.1:0") as server:
        http = http_of(server)
        start = read(http)
        env = next(dict(k[1])["env"] for k in start if k[0] == "textgen_env_steps_total")
        fn = next(dict(k[1])["fn"] for k in start if k[0] == "textgen_reward_duration_seconds_count")
        envs = TextGenVectorEnv(server.address, 3)
        envs.reset(seed=1)
        for _ in range(4):
            envs.step(np.array([1, 2, 3]))
        envs.step(np.array([EOS, 2, 3]))  # ends one, which is reset
        now = read(http)
        want = {
            key("textgen_requests_total", method="HELLO", code="OK"): 1,
            key("textgen_requests_total", method="OPEN_SLOTS", code="OK"): 1,
            key("textgen_requests_total", method="RESET", code="OK"): 2,
            key("textgen_requests_total", method="STEP", code="OK"): 5,
            key("textgen_request_duration_seconds_count", method="OPEN_SLOTS"): 1,
            key("textgen_request_duration_seconds_count", method="RESET"): 2,
            key("textgen_request_duration_seconds_count", method="STEP"): 5,
            key("textgen_env_steps_total", env=env): 15,
            key("textgen_env_episodes_total", outcome="terminated", env=env): 1,
            key("textgen_reward_results_total", fn=fn, status="ok"): 1,
            key("textgen_reward_duration_seconds_count", fn=fn): 1,
            key("textgen_env_slots", state="running"): 3,
            key("textgen_env_sessions"): 1,
            key("textgen_sessions_opened_total"): 1,
            key("textgen_credits_available"): 512,
        }
        assert moved(start, now) == want, sorted(set(moved(start, now).items()) ^ set(want.items()), key=str)
        # the same step again: answered from memory
        connection = envs.episodes.slots.connection
        again = pb.StepBatch(deadline_ms=1000)
        again.items.add(slot=1, episode=0, step=4, tokens=np.array([2], "<u4").tobytes())
        again.items.add(slot=99, episode=0, step=0, tokens=np.array([2], "<u4").tobytes())
        connection.call(again)
        then = read(http)
        want = {key("textgen_requests_total", method="STEP", code="NOT_FOUND"): 1, key("textgen_request_duration_seconds_count", method="STEP"): 1,
                key("textgen_replayed_requests_total"): 1}
        assert moved(now, then) == want, moved(now, then)
        envs.close()


def test_ends_and_refusals():
    with Server(None, "--http", "127.0.0.1:0", "--capacity", "2") as server:
        http = http_of(server)
        env = TextGenEnv(server.address)
        env.reset(seed=0)
        env.step(EOS)
        page = read(http)
        assert page[key("textgen_env_slots", state="done")] == 1 and page[key("textgen_env_slots", state="running")] == 0
        other = TextGenEnv(server.address, reset_timeout=1)
        other.reset(seed=0)
        third = TextGenEnv(server.address, reset_timeout=1)
        try:
            third.reset(seed=0)
            raise AssertionError("more slots than there may be")
        except Exception as e:
            assert "OVERLOADED" in str(e) or "slots" in str(e), e
        page = read(http)
        refused = page[key("textgen_backpressure_total", reason="slots")]
        assert refused > 0 and refused == page[key("textgen_requests_total", method="OPEN_SLOTS", code="OVERLOADED")], page
        server.restart()
        env.reset()
        env.step(1)
        assert read(http_of_last(server))[key("textgen_env_slots", state="running")] >= 1
        for e in (env, other, third):
            e.close()


def http_of_last(server):
    return re.findall(r"http://(127\.0\.0\.1:\d+)/", server.output())[-1]


if __name__ == "__main__":
    support.main(sys.modules[__name__])
