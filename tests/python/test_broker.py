#!/usr/bin/env python3
"""The Python client through textgen-broker: the same transcripts as from a worker that listens, while workers and broker are killed."""
import os
import subprocess
import sys

import numpy as np

import support
from support import ROOT, BUILD, Server, same
from textgen_gym import TextGenVectorEnv


class Broker:
    """textgen-broker with two workers of the same config as `server`."""

    def __init__(self, server):
        self.folder, self.config = server.folder, server.config
        self.front, self.back = f"ipc://{self.folder}/front", f"ipc://{self.folder}/back"
        self.log = open(os.path.join(self.folder, "broker.log"), "ab")
        self.broker = self.workers = None
        self.start_broker()
        self.workers = [self.start_worker() for _ in range(2)]

    def run(self, program, *args):
        return subprocess.Popen([os.path.join(ROOT, BUILD, program), *args, "--heartbeat-ms", "200"], stdout=self.log, stderr=self.log, cwd=ROOT)

    def start_broker(self):
        self.broker = self.run("textgen-broker", "--front", self.front, "--back", self.back)

    def start_worker(self):
        return self.run("textgen-env", "--config", self.config, "--connect", self.back)

    def kill_worker(self):
        self.workers[0].kill()
        self.workers[0].wait()
        self.workers = [self.workers[1], self.start_worker()]

    def kill_broker(self):
        self.broker.kill()
        self.broker.wait()
        self.start_broker()

    def close(self):
        for p in [self.broker, *self.workers]:
            p.kill()
            p.wait()
        self.log.close()


def transcript(address, fault=None, n=4, steps=60):
    envs = TextGenVectorEnv(address, n)
    rng = np.random.default_rng(1)
    seen = [envs.reset(seed=5)]
    for t in range(steps):
        if fault and t % 20 == 7:
            fault()
        seen.append(envs.step(rng.integers(0, 265, n)))
    envs.close()
    return seen


def test_through_a_broker():
    with Server() as server:
        want = transcript(server.address)
        broker = Broker(server)
        try:
            same(want, transcript(broker.front))
            same(want, transcript(broker.front, broker.kill_worker))
            same(want, transcript(broker.front, broker.kill_broker))
        finally:
            broker.close()


if __name__ == "__main__":
    support.main(sys.modules[__name__])
