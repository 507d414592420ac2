#!/usr/bin/env python3
"""The Python reward worker against real callers: its own wire, textgen-env's reward `remote` both ways round, and everything that may go wrong (R8).

Ends with `N passed, N failed`; exit 1 when something failed.
"""
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PACKAGE = os.path.join(ROOT, "env-server", "clients", "python")
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = PACKAGE

from textgen_gym import Connection, pb  # noqa: E402
from textgen_gym import errors  # noqa: E402

OK, FAILED, TIMEOUT, INVALID = 1, 3, 4, 5

JUDGE = '''
import math, os, signal, sys, time
from textgen_gym import reward

@reward("length", deterministic=True)
def length(prompt, completion, references, meta):
    return len(completion.split())

@reward("seen")
def seen(prompt, completion, references, meta):
    assert prompt == "p" and references == ["r1", "r2"] and meta == {"k": [1, None]}, (prompt, references, meta)
    return 1, {"refs": len(references), "nan": math.nan}

@reward("raises")
def raises(prompt, completion, references, meta):
    raise ValueError("no idea about " + completion)

@reward("odd")
def odd(prompt, completion, references, meta):
    return {"nan": math.nan, "inf": math.inf, "none": None, "text": "0.5", "bool": True, "list": [1], "huge": 10 ** 400, "ok": 0.25}[completion]

@reward("slow")
def slow(prompt, completion, references, meta):
    time.sleep(float(completion))
    return 7

@reward("busy")
def busy(prompt, completion, references, meta):
    end = time.monotonic() + float(completion)
    while time.monotonic() < end:
        pass
    return 8

@reward("dies")
def dies(prompt, completion, references, meta):
    os.kill(os.getpid(), signal.SIGKILL)

@reward("batch", batched=True)
def batch(items):
    return [len(items) + i for i, _ in enumerate(items)]

@reward("short", batched=True)
def short(items):
    return [1] * (len(items) - 1)

@reward("best", ranked=True)
def best(items):
    longest = max(len(i.completion) for i in items)
    return [float(len(i.completion) == longest) for i in items]

if __name__ == "__main__":
    where = {sys.argv[1]: sys.argv[2]}
    reward.serve(where.get("listen"), connect=where.get("connect"), heartbeat_ms=300, ready=lambda a: print("ready", a, flush=True))
'''


class Tally:
    passed = failed = 0

    def check(self, what, ok, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what} {detail}")


class Judge:
    """The worker as a process."""

    def __init__(self, folder, how, address, program=None, wait=True):
        path = os.path.join(folder, "judge.py")
        with open(path, "w") as f:
            f.write(JUDGE)
        self.process = subprocess.Popen(program or [sys.executable, path, how, address], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1 if program is None else 2] if wait else address

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def ask(connection, fn, texts, timeout=20, **more):
    items = [pb.ScoreItem(id=10 + i, prompt="p", completion=t, references=["r1", "r2"], meta_json='{"k": [1, null]}') for i, t in enumerate(texts)]
    reply = connection.call(pb.ScoreRequest(fn=fn, items=items, **more), timeout=timeout)
    return {r.id - 10: r for r in reply.items}


def direct(tally, folder):
    """Questions by hand: every status there is."""
    with Judge(folder, "listen", f"ipc://{folder}/judge.sock") as judge:
        c = Connection(judge.address)
        r = ask(c, "length", ["a b c", "", "x"])
        tally.check("values", [r[i].value for i in range(3)] == [3, 0, 1] and all(r[i].status == OK for i in range(3)), r)
        r = ask(c, "seen", ["t"])[0]
        parts = {p.name: p for p in r.components}
        tally.check("what a function sees, and its parts", r.status == OK and parts["refs"].value == 2 and parts["nan"].status == INVALID, r)
        r = ask(c, "raises", ["this", "that"])
        tally.check("R8 error", all(r[i].status == FAILED and math.isnan(r[i].value) for i in r) and r[1].message == "ValueError: no idea about that", r)
        r = ask(c, "odd", ["nan", "inf", "none", "text", "bool", "list", "huge", "ok"])
        tally.check("R8 NaN and what is no number", all(r[i].status == INVALID and math.isnan(r[i].value) and r[i].message for i in range(7)), r)
        tally.check("and the one that is", r[7].status == OK and r[7].value == 0.25, r[7])
        r = ask(c, "batch", ["a", "b", "c"])
        tally.check("batched", [r[i].value for i in range(3)] == [3, 4, 5], r)
        r = ask(c, "short", ["a", "b"])
        tally.check("R8 wrong length", all(r[i].status == INVALID and "1 values for 2" in r[i].message for i in r), r)
        r = ask(c, "best", ["a", "bbb", "cc"], ranked=True)
        tally.check("ranked", [r[i].value for i in range(3)] == [0, 1, 0], r)
        r = ask(c, "best", ["a", "b"])
        tally.check("ranked without a group", all(r[i].status == INVALID for i in r), r)
        try:
            ask(c, "nothing", ["a"])
            tally.check("no such function", False)
        except errors.TextGenError as e:
            tally.check("no such function", e.code == 5, e)
        # Slow is not dead: ten heartbeats long, in a function that sleeps and in one that computes.
        for fn, want in (("slow", 7), ("busy", 8)):
            for _ in range(3):  # a machine that stands still for a second looks dead from outside
                before = c.stats["connects"]
                r = ask(c, fn, ["3"], timeout=60)
                if c.stats["connects"] == before:
                    break
            tally.check(f"heartbeats while a function is {fn}", r[0].value == want and c.stats["connects"] == before, (r, c.stats))
        # SIGTERM: the call under way is answered, then the process ends.
        other = Connection(judge.address)
        ask(other, "length", ["x"])
        import threading
        got = {}
        t = threading.Thread(target=lambda: got.update(ask(c, "slow", ["1.5"])))
        t.start()
        time.sleep(0.5)
        judge.process.send_signal(signal.SIGTERM)
        t.join()
        tally.check("SIGTERM finishes what is under way", got and got[0].value == 7, got)
        tally.check("and ends", judge.process.wait(10) == 0)
        c.close()
        other.close()


def score(folder, reward, texts):
    """Values by textgen-env's reward remote; None where there is none."""
    path = os.path.join(folder, "texts.jsonl")
    with open(path, "w") as f:
        for t in texts:
            f.write(json.dumps({"prediction": t, "prompt": "p", "references": ["r1", "r2"], "meta": {"k": [1, None]}}) + "\n")
    out = subprocess.run([os.path.join(BUILD, "textgen-env"), "score", "--reward", "remote", "--jsonl", path, "--json", f"remote={reward}"],
                         capture_output=True, text=True, timeout=120)
    if out.returncode:
        return out.stderr
    found = json.loads(out.stdout)
    return found["rewards"]["remote"] if "rewards" in found else found


def through_the_environment(tally, folder):
    address = f"ipc://{folder}/env.sock"
    with Judge(folder, "listen", address):
        got = score(folder, f'{{fn: length, connect: "{address}"}}', ["a b", "", "c"])
        tally.check("remote: values", values_of(got) == [2, 0, 1], got)
        got = score(folder, f'{{fn: raises, connect: "{address}"}}', ["a b"])
        tally.check("remote: R8 error", values_of(got) == [None], got)
        got = score(folder, f'{{fn: slow, connect: "{address}", timeout_ms: 300}}', ["5"])
        tally.check("remote: R8 never", values_of(got) == [None], got)
        got = score(folder, f'{{fn: dies, connect: "{address}"}}', ["a"])
        tally.check("remote: R8 dies in the middle of a call", values_of(got) == [None], got)
    # The other way round: the environment listens, workers dial in, from the command line.
    address = f"ipc://{folder}/back.sock"
    with Judge(folder, "connect", address, [sys.executable, "-m", "textgen_gym.reward", "judge:length", "--connect", address], wait=False), \
            Judge(folder, "connect", address, wait=False):
        got = score(folder, f'{{fn: length, bind: "{address}"}}', ["a b", "", "c"])
        tally.check("remote: workers dial in", values_of(got) == [2, 0, 1], got)


def through_a_broker(tally, folder):
    """A broker between them: the environment and the reward workers dial its back, callers its front, in any order."""
    front, back = f"ipc://{folder}/front.sock", f"ipc://{folder}/back.sock2"
    config = os.path.join(folder, "c.json")
    with open(config, "w") as f:
        json.dump({"tokenizer": {"model_name": os.path.join(ROOT, "tests/golden/env/tokenizer")},
                   "reward_fn": {"id": "increasing_numbers", "args": {"min_tokens": 4}},
                   "datapool": {"id": "dummy_pool", "args": {"prompt": "Hello the", "n_samples": 10}},
                   "env": {"n_envs": 4, "args": {"max_prompt_length": 8, "max_episode_length": 20, "terminate_on_eos": True}},
                   "alg": {"id": "ppo"}, "train_evaluation": {"metrics": []}}, f)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    broker = subprocess.Popen([os.path.join(BUILD, "textgen-broker"), "--front", front, "--back", back], **quiet)
    worker = subprocess.Popen([os.path.join(BUILD, "textgen-env"), "--config", config, "--connect", back], **quiet)
    try:
        with Judge(folder, "connect", back, wait=False):
            got = score(folder, f'{{fn: length, connect: "{front}"}}', ["a b", "", "c"])
            tally.check("broker: values", values_of(got) == [2, 0, 1], got)
            got = score(folder, f'{{fn: best, connect: "{front}", ranked: true}}', ["a", "bbb", "cc"])
            tally.check("broker: a group", values_of(got) == [0, 1, 0], got)
            got = score(folder, f'{{fn: dies, connect: "{front}", timeout_ms: 3000}}', ["a"])
            tally.check("broker: R8 dies in the middle of a call", values_of(got) == [None], got)
    finally:
        for p in (worker, broker):
            p.terminate()
            p.wait(30)


def with_keys(tally, folder):
    """A worker dials with its key; a key of another role is refused."""
    def textgen(program, *args):
        return [os.path.join(BUILD, program), *args]
    for name, more in (("env", ()), ("judge", ("--role", "reward", "--allow", "allow.txt")), ("client", ("--role", "client", "--allow", "allow.txt"))):
        subprocess.run(textgen("textgen", "keygen", name, *more), cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "keys.json"), "w") as f:
        json.dump({"tokenizer": {"model_name": os.path.join(ROOT, "tests/golden/env/tokenizer")},
                   "reward_fn": {"id": "remote", "args": {"fn": "length", "bind": "tcp://127.0.0.1:7691"}},
                   "datapool": {"id": "dummy_pool", "args": {"prompt": "Hello the", "n_samples": 10}},
                   "env": {"args": {"max_prompt_length": 8, "max_episode_length": 3}}, "alg": {"id": "ppo"}, "train_evaluation": {"metrics": []}}, f)
    env = subprocess.Popen(textgen("textgen-env", "--config", "keys.json", "--bind", f"ipc://{folder}/keys.sock", "--key", "env.key", "--allow", "allow.txt"),
                           cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = [sys.executable, "-m", "textgen_gym.reward", "judge:length", "--connect", "tcp://127.0.0.1:7691", "--server-key", "env.pub", "--key-file"]
    try:
        with Judge(folder, "connect", "", command + ["judge.key"], wait=False):
            c = Connection(f"ipc://{folder}/keys.sock")
            reply = c.call(pb.ScoreRequest(items=[pb.ScoreItem(id=1, prompt="p", completion="a b c")]), timeout=60)
            tally.check("keys: a value", reply.items[0].status == OK and reply.items[0].value == 3, reply)
            c.close()
        refused = subprocess.run(command + ["client.key"], cwd=folder, capture_output=True, text=True, timeout=60)
        tally.check("keys: another role is refused", refused.returncode == 1 and "may not be a reward" in refused.stderr, refused)
    finally:
        env.terminate()
        env.wait(30)


def values_of(found):
    if not isinstance(found, dict):
        return found if isinstance(found, list) else str(found)
    return found.get("values", found.get("samples", found))


def readme(tally, folder):
    """The ten lines of env-server/reward/README.md."""
    text = open(os.path.join(ROOT, "env-server", "reward", "README.md")).read()
    example = re.search(r"<!-- example: length.py -->\n```python\n(.*?)```", text, re.S).group(1)
    config = re.search(r"<!-- example: remote.yml -->\n```yaml\n.*?args: (.*?)\n```", text, re.S).group(1)
    tally.check("a function and a decorator, ten lines", len([l for l in example.splitlines() if l.strip()]) <= 10, example)
    with open(os.path.join(folder, "length.py"), "w") as f:
        f.write(example)
    process = subprocess.Popen([sys.executable, os.path.join(folder, "length.py"), "tcp://127.0.0.1:7700"])
    try:
        got = score(folder, config, ["a b c", ""])
        tally.check("README: Python", values_of(got) == [0.3, 0], got)
    finally:
        process.terminate()
        tally.check("README: it ends", process.wait(20) == 0)


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for part in (direct, through_the_environment, through_a_broker, with_keys, readme):
            try:
                part(tally, folder)
            except Exception as e:
                import traceback
                traceback.print_exc()
                tally.check(part.__name__, False, repr(e))
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
