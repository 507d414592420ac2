"""What the tests of the Python client share: real textgen-env processes, and a tiny runner that prints `N passed, N failed`."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", "build")
PACKAGE = os.path.join(ROOT, "env-server", "clients", "python")
if not os.environ.get("TEXTGEN_GYM_INSTALLED"):
    sys.path.insert(0, PACKAGE)

EOS = 264  # of tests/golden/env/tokenizer
CONFIG = {
    "tokenizer": {"model_name": os.path.join(ROOT, "tests/golden/env/tokenizer")},
    "reward_fn": {"id": "increasing_numbers", "args": {"min_tokens": 4}},
    "datapool": {"id": "dummy_pool", "args": {"prompt": "Hello the", "n_samples": 10}},
    "env": {"n_envs": 4, "args": {"max_prompt_length": 8, "max_episode_length": 20, "terminate_on_eos": True}},
    "alg": {"id": "ppo"},
    "train_evaluation": {"metrics": [{"id": "increasing_numbers", "args": {"min_tokens": 4}}]},
}


def config(**changes):
    """CONFIG with top-level sections replaced (None: removed); env_args are merged into env.args."""
    c = json.loads(json.dumps(CONFIG))
    c["env"]["args"].update(changes.pop("env_args", {}))
    for key, value in changes.items():
        if value is None:
            c.pop(key)
        else:
            c[key] = value
    return c


class Server:
    """A textgen-env process that listens; killed and started again at the same address at will."""

    def __init__(self, config=None, *args, tcp=False):
        self.folder = tempfile.mkdtemp(prefix="textgen-py-")
        self.config = os.path.join(self.folder, "config.yml")
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config or CONFIG, f)  # JSON is YAML
        self.bind = "tcp://127.0.0.1:*" if tcp else f"ipc://{self.folder}/env.sock"
        self.args = list(args)
        self.process = None
        self.start()

    def start(self):
        self.log = open(os.path.join(self.folder, "log"), "ab")
        binary = os.environ.get("TEXTGEN_ENV") or os.path.join(ROOT, BUILD, "textgen-env")
        self.process = subprocess.Popen([binary, "--config", self.config, "--bind", self.bind, *self.args], stdout=subprocess.PIPE,
                                        stderr=self.log, cwd=ROOT)
        line = self.process.stdout.readline().decode()
        if not line.startswith("textgen-env ready"):
            self.process.wait()
            raise RuntimeError("textgen-env did not start: " + self.output())
        self.address = self.bind = line.split()[3]

    def output(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]

    def kill(self):
        """kill -9."""
        self.process.kill()
        self._reap()

    def restart(self):
        self.kill()
        self.start()

    def signal(self, number):
        self.process.send_signal(number)

    def _reap(self):
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        if not self.log.closed:
            self._reap()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def run(tests, names=None):
    """Runs the functions; exit code 0 when all pass. Those that return the text "skip: …" count as passed."""
    passed = failed = 0
    for test in tests:
        if names and test.__name__ not in names:
            continue
        started = time.monotonic()
        try:
            result = test()
            passed += 1
            print(f"ok {test.__name__} ({time.monotonic() - started:.1f} s){' ' + result if isinstance(result, str) else ''}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__}", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


def main(module):
    """The tests of a module: its functions test_*, or those named as arguments."""
    tests = [value for name, value in list(vars(module).items()) if name.startswith("test_") and callable(value)]
    sys.exit(run(tests, sys.argv[1:]))


def same(a, b, path=""):
    """Equal values, types and shapes, through dicts and object arrays."""
    import numpy as np
    if isinstance(a, dict) and isinstance(b, dict):
        assert set(a) == set(b), f"{path}: keys {set(a) ^ set(b)}"
        for key in a:
            same(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape, f"{path}: {a!r} and {b!r}"
        if a.dtype == object:
            for i, (x, y) in enumerate(zip(a.flat, b.flat)):
                same(x, y, f"{path}[{i}]")
        else:
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{path}: {a} and {b}"
    elif isinstance(a, (tuple, list)):
        assert type(a) is type(b) and len(a) == len(b), f"{path}: {a!r} and {b!r}"
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{i}]")
    else:
        assert type(a) is type(b) and (a == b or (a != a and b != b)), f"{path}: {a!r} and {b!r}"


def transcript(server, fault=None, n=4, steps=120, **options):
    """All that an agent sees; fault(t, envs) is called before step t."""
    import numpy as np
    from textgen_gym import TextGenVectorEnv
    envs = TextGenVectorEnv(server.address, n, **options)
    rng = np.random.default_rng(1)
    seen = [envs.reset(seed=5)]
    for t in range(steps):
        if fault:
            fault(t, envs)
        seen.append(envs.step(rng.integers(0, 265, n)))
    stats = dict(envs.episodes.slots.connection.stats)
    envs.close()
    return seen, stats
