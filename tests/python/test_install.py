#!/usr/bin/env python3
"""The package as its users get it: pip install into a fresh virtual environment, without this repository on the path; then the tests that need no more than
gymnasium, and the page of /metrics by Prometheus's parser."""
import os
import subprocess
import sys
import tempfile

import support

TESTS = {
    "test_client.py": ["test_make_and_make_vec", "test_vector_equals_sync_vector", "test_vector_arguments", "test_seeds_and_streams", "test_action_masks",
                       "test_curve", "test_async_client"],
    "test_faults.py": ["test_killed_server_single_env", "test_nobody_there", "test_failing_reward"],
    "test_processes.py": ["test_fork", "test_pickle", "test_threads", "test_many_environments_in_one_process"],
    "metrics_page.py": [],
}


def test_fresh_environment():
    with tempfile.TemporaryDirectory(prefix="textgen-venv-") as folder:
        python = os.path.join(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", support.PACKAGE, "prometheus_client"],
                             capture_output=True, text=True, cwd=folder)
        if pip.returncode:
            return "skip: pip cannot install here: " + pip.stderr.strip().splitlines()[-1]
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TEXTGEN_GYM_INSTALLED": "1"}
        where = subprocess.run([python, "-c", "import textgen_gym; print(textgen_gym.__file__)"], capture_output=True, text=True, cwd=folder, env=env)
        assert where.stdout.startswith(folder), where
        for test, names in TESTS.items():
            done = subprocess.run([python, os.path.join(support.ROOT, "tests", "python", test), *names], capture_output=True, text=True, env=env,
                                  cwd=support.ROOT)
            assert done.returncode == 0, done.stdout + done.stderr
            assert not names or done.stdout.splitlines()[-1] == f"{len(names)} passed, 0 failed", done.stdout


if __name__ == "__main__":
    support.main(sys.modules[__name__])
