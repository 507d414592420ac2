#!/bin/bash
# The tests of the Python client, against real textgen-env processes, with gymnasium, stable-baselines3 and sb3-contrib from PyPI: runs every
# test_*.py here (or those named: tests/python/run.sh client). Where the packages cannot be had it says so and skips: exit 0.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 70
export BUILD=${BUILD:-build}
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) ||
    { echo "skipped: the Python client's tests cannot run here"; exit 0; }
tests=()
for test in "$here"/test_*.py; do
    [ $# -eq 0 ] || [[ " $* " = *" $(basename "$test" .py | sed 's/^test_//') "* ]] || continue
    tests+=("$python $test")
done
[ ${#tests[@]} -gt 0 ] || { echo "python: no such test: $*" >&2; exit 64; }
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
tests/run.sh "${tests[@]}"
