#!/bin/bash
# Every algorithm beside PPO must learn, with workers, sockets and checkpoints: on the built-in model the mean reward of the last five
# iterations is at least the stated one (it starts near 0.1).
. tests/support/script.sh algorithms

# learn ALGORITHM ITERATIONS REWARD OVERRIDE…
learn() {
    local name=$1 iterations=$2 least=$3 verdict; shift 3
    [ -z "${SANITIZE:-}" ] || { iterations=3 least=0; }
    if ! "$BUILD/textgen" train configs/increasing_numbers.yml --run-dir "$work/$name" --workers 2 --seed 1 alg.id="$name" \
        train_evaluation.n_iters=$iterations train_evaluation.eval_every=100 train_evaluation.save_every=100 "$@" >"$work/$name.log" 2>&1; then
        echo "  $name: the run failed:"; tail -n 15 "$work/$name.log" | sed 's/^/    | /'
        failed=$((failed + 1)); return
    fi
    verdict=$(sed 's/.*"rollout_info\/ep_rew": \([-0-9.e]*\).*/\1/' "$work/$name/rollout_info.jsonl" |
        awk -v least="$least" '{ r[NR] = $1 } END { n = NR < 5 ? NR : 5; for (i = NR - n + 1; i <= NR; i++) s += r[i] / n
              printf "%.3f to %.3f, at least %s", r[1], s, least; exit !(s >= least) }') && ok || failed=$((failed + 1))
    echo "$name: reward $verdict"
}

learn a2c 40 0.3 'alg.args={n_steps: 20, learning_rate: 0.0005, ent_coef: 0.001}'
learn nlpo 16 0.35 'alg.policy={id: maskable_causal_lm_actor_critic_policy, args: {model_name: textgen/tiny, mask_type: learned_top_p, top_mask: 0.9, min_tokens_to_keep: 20, target_update_iterations: 5, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 20}}}'
learn trpo 12 0.2 'alg.args={n_steps: 20, batch_size: 256, learning_rate: 0.0005, target_kl: 0.02, n_critic_updates: 3}'
finish
