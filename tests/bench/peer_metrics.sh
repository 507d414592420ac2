#!/bin/bash
# Python's metrics on the pairs of bench_metrics, in the environment of tests/oracle; exit 77 without it.
#   peer_metrics.sh [ROW…]      rows of bench_metrics (default: all); WORDS: lengths of texts (default: "60 10 300")
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 77
pairs=${BUILD:-build}/tests/bench/bench_metrics
[ -x "$pairs" ] || exit 77
for words in ${WORDS:-60 10 300}; do
    "$pairs" pairs "$words" | WORDS=$words PYTHONDONTWRITEBYTECODE=1 "$python" tests/bench/peer_metrics.py "$@" || exit
done
