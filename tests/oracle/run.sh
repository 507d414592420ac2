#!/bin/bash
# Compares the built binaries with the reference implementations from PyPI, on fresh random inputs: runs every check_*.py here.
# Where the packages cannot be had (no network, no Python, less than 9 GB of disk) it says so and skips: exit 0.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 70
export BUILD=${BUILD:-build}
python=$(tests/support/venv.sh oracle-py "$here/requirements.txt" 9) ||
    { echo "skipped: live comparison with the reference implementations cannot run here"; exit 0; }

checks=()
for check in "$here"/check_*.py; do
    [ $# -eq 0 ] || [[ " $* " = *" $(basename "$check" .py | sed 's/^check_//') "* ]] || continue
    checks+=("$python $check")
done
[ ${#checks[@]} -gt 0 ] || { echo "oracle: no such check: $*" >&2; exit 64; }
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
TEXTGEN_TEST_TIMEOUT=${TEXTGEN_TEST_TIMEOUT:-1200} tests/run.sh "${checks[@]}"
