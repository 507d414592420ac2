#!/bin/bash
# Training on texts longer than a model was trained with: where positions are computed, and the config says how long prompts may be. What the config
# leaves open stays within the positions, and a model that turns a long text otherwise when it is read as a whole cannot learn from it.
. tests/support/script.sh long_prompts
. tests/support/numbers.sh
cd "$work" || exit 70
export TEXTGEN_QUIET=1
prompt=$(seq -s ' ' 1 20)
prompt="$prompt $prompt $prompt"

# model FAMILY ROPE_PARAMETERS: trained with 24 positions
model() {
    numbers_model "$1" "$1" '<pad>' '</s>' '<unk>'
    sed -i 's/"model_max_length": 24/"model_max_length": 1000/' "$1/tokenizer_config.json"
    jq ".max_position_embeddings = 24 | .rope_parameters = $2" "$1/config.json" >config.json && mv config.json "$1/config.json"
}
train() { # train FAMILY [key=value…]
    numbers_ppo "$1" causal >c.yml
    rm -rf run
    "$textgen" train c.yml --run-dir run --workers 1 train_evaluation.n_iters=2 train_evaluation.eval_every=1 "datapool.args.prompt=$prompt" "${@:2}" >log 2>&1
}
refused() { # refused WHAT PATTERN FAMILY [key=value…]
    train "${@:3}"
    is "$1: exit code" 78 $?
    if grep -qE "$2" log; then ok; else bad "$1" log; fi
}
first() { sed -n "1s|.*\"rollout_info/$1\": \([-0-9.e]*\).*|\1|p" run/rollout_info.jsonl; }

# What is generated with a cache has the log-probs that the reference, which reads it as a whole, gives it.
learns() { # learns FAMILY ROPE_PARAMETERS
    model "$1" "$2"
    train "$1" env.args.max_prompt_length=60
    is "$1: exit code" 0 $?
    is "$1: warnings" 1 "$(grep -c 'WARN.*texts of up to 68 tokens: the model was trained with 24 positions' log)"
    is "$1: updates" 2 "$(wc -l <run/training_info.jsonl)"
    if awk -v a="$(first log_prob)" -v b="$(first ref_log_prob)" 'BEGIN { d = a - b; exit !(a < 0 && d < 1e-5 && d > -1e-5) }'; then ok
    else bad "$1: log-probs of $(first log_prob) and $(first ref_log_prob)"; fi
}
learns llama '{rope_type: "default", rope_theta: 10000}'
learns gpt_neox '{rope_type: "linear", rope_theta: 10000, factor: 2, partial_rotary_factor: 1}'

refused "nothing said of prompts" 'env.args.max_prompt_length: prompts of up to 24 tokens .* and 8 new ones do not fit the model.s 24 positions: set it to at most 16' \
    llama env.args.max_prompt_length=null
model llama '{rope_type: "dynamic", rope_theta: 10000, factor: 2}'
refused "angles that depend on the length" 'prompts of up to .* do not fit the model.s 24 positions: lower it' llama env.args.max_prompt_length=60
model opt null
refused "positions that are looked up" 'prompts of up to .* do not fit the model.s 24 positions: lower it' opt env.args.max_prompt_length=60
finish
