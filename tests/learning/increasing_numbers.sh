#!/bin/bash
# The whole product must learn: workers, sockets, engine, PPO. On the built-in model the mean reward of the last five of 24 iterations
# is at least three times that of the first (it starts near 0.1; 60 iterations reach 0.9), with the task's own config; so with products
# in bf16.
. tests/support/script.sh increasing_numbers
iterations=24
[ -z "${SANITIZE:-}" ] || iterations=14
for seed in 1 2 3; do
    log=$work/$seed.log dtype=f32
    [ $seed -lt 3 ] || dtype=bf16
    if ! "$BUILD/textgen" train configs/increasing_numbers.yml --run-dir "$work/$seed" --workers 2 --seed $seed \
        train_evaluation.n_iters=$iterations train_evaluation.eval_every=100 train_evaluation.save_every=100 \
        alg.policy.args.compute_dtype=$dtype >"$log" 2>&1; then
        echo "  seed $seed: the run failed:"; tail -n 15 "$log" | sed 's/^/    | /'
        failed=$((failed + 1)); continue
    fi
    verdict=$(sed 's/.*"rollout_info\/ep_rew": \([-0-9.e]*\).*/\1/' "$work/$seed/rollout_info.jsonl" |
        awk '{ r[NR] = $1 } END { for (i = NR - 4; i <= NR; i++) s += r[i] / 5
              printf "%.3f to %.3f", r[1], s; exit !(r[1] > 0.02 && s >= 3 * r[1]) }') && ok || failed=$((failed + 1))
    echo "seed $seed, $dtype: reward $verdict"
    [ -z "${SANITIZE:-}" ] || break
done
finish
