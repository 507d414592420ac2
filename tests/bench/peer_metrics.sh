#!/bin/bash
# Python's metrics on the pairs of bench_metrics, in the environment of tests/oracle; exit 77 without it.
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 77
pairs=${BUILD:-build}/tests/bench/bench_metrics
[ -x "$pairs" ] || exit 77
"$pairs" pairs | PYTHONDONTWRITEBYTECODE=1 "$python" tests/bench/peer_metrics.py "$@"
