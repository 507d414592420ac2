#!/bin/bash
# Other families learn too, by every algorithm: a tiny Llama and a tiny GPT-NeoX to write increasing numbers, a tiny BART, which examples have taught a
# little, to copy its source. The mean reward of the last five iterations is at least the stated one, and much more than that of the first five.
. tests/support/script.sh families
. tests/support/numbers.sh
cd "$work" || exit 70
export TEXTGEN_LOG=warn LC_ALL=C.UTF-8
unset TEXTGEN_MODELS

# learns NAME CONFIG REWARD OVERRIDE…
learns() {
    local name=$1 least=$3 first last
    [ -z "${SANITIZE:-}" ] || { set -- "$@" train_evaluation.n_iters=3; least=0; }
    timeout 300 "$textgen" train "$2" --run-dir "$name" --workers 1 "${@:4}" >out 2>&1 || { bad "$name: $(tail -n 2 out)"; return; }
    first=$(numbers_reward "$name" first) last=$(numbers_reward "$name" last)
    echo "$name: reward $first to $last, at least $least"
    if awk "BEGIN {exit !($last >= $least && ($least == 0 || $last > $first + 0.2))}"; then ok; else failed=$((failed + 1)); fi
}

# all_learn NAME CONFIG REWARD MODEL KIND
all_learn() {
    learns "$1-ppo" "$2" "$3" train_evaluation.n_iters=100
    learns "$1-nlpo" "$2" "$3" alg.id=nlpo "$(numbers_nlpo "$4" "$5")"
    learns "$1-a2c" "$2" "$3" alg.id=a2c 'alg.args={n_steps: 16, learning_rate: 0.003}' train_evaluation.n_iters=300
    learns "$1-trpo" "$2" "$3" alg.id=trpo 'alg.args={n_steps: 16, batch_size: 64, learning_rate: 0.003, target_kl: 0.05, n_critic_updates: 4}'
}

for family in llama gpt_neox; do
    numbers_model $family $family '<s>' '</s>' '<pad>'
    numbers_ppo $family causal >$family.yml
    all_learn $family $family.yml 0.6 $family causal
done

# an episode ends with the token that completes a stop string, in the rollout as in the environment
if "$textgen" train llama.yml --run-dir stops --workers 2 train_evaluation.n_iters=2 'env.args.stop_strings=["7", "12"]' >out 2>&1 &&
    awk '{ split($0, x, "\"rollout_info/ep_lens\": "); if (x[2] + 0 >= 6) bad = 1 } END { exit bad || NR != 2 }' stops/rollout_info.jsonl; then ok
else bad "stop strings: $(tail -n 1 out) $(cat stops/rollout_info.jsonl)"; fi

for split in train val test; do
    for i in {1..18}; do echo "{\"q\": \"$i\", \"a\": \"$i\"}"; done >$split.jsonl
done
numbers_model bart bart '<s>' '<pad>' '</s>'
numbers_sft bart >sft.yml
timeout 300 "$textgen" train sft.yml --run-dir taught --workers 1 alg.training_args.num_train_epochs=25 >out 2>&1 || bad "taught: $(tail -n 2 out)"
numbers_copy taught/model >copy.yml
all_learn bart copy.yml 0.75 taught/model seq2seq
finish
