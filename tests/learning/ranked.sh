#!/bin/bash
# Rewards that compare the samples of a prompt must teach as well: of four samples each, PPO hears only the places. The mean place is always
# 0, so the task's own measure on held-out prompts tells: it at least doubles within a few iterations.
set -u
BUILD=${BUILD:-build}
work=$(mktemp -d /tmp/textgen-ranked.XXXXXX)
trap 'rm -rf "$work"' EXIT
iterations=16
[ -z "${SANITIZE:-}" ] || iterations=8
reward='{id: ranked, args: {mode: rank, reward: {id: increasing_numbers, args: {min_tokens: 20}}}}'
if ! "$BUILD/textgen" train configs/increasing_numbers.yml --run-dir "$work/run" --workers 2 "reward_fn=$reward" train_evaluation.compare_sample=4 \
    train_evaluation.n_iters=$iterations train_evaluation.eval_every=$iterations train_evaluation.save_every=100 >"$work/log" 2>&1; then
    echo "  the run failed:"; tail -n 15 "$work/log" | sed 's/^/    | /'
    echo "0 passed, 1 failed"
    exit 1
fi
if sed -n 's/.*"synthetic\/increasing_numbers_in_text": \([-0-9.e]*\).*/\1/p' "$work/run/val_split_metrics.jsonl" |
    awk '{ r[NR] = $1 } END { printf "held-out measure %.3f to %.3f\n", r[1], r[NR]; exit !(NR > 1 && r[NR] >= 2 * r[1]) }'; then
    echo "1 passed, 0 failed"
else
    tail -n 5 "$work/log"
    echo "0 passed, 1 failed"
    exit 1
fi
