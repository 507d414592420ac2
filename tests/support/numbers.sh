# For scripts that teach tiny models to write numbers. Sourced at the root of the tree.
numbers_root=$PWD

# numbers_texts COUNT LEAST MORE: that many lines for the pool jsonl, each of LEAST to LEAST + MORE - 1 numbers below 50 (MORE 0: of LEAST).
numbers_texts() {
    awk -v count="$1" -v least="$2" -v more="$3" 'BEGIN { srand(1); for (i = 0; i < count; i++) { t = ""; n = least; if (more) n += int(rand() * more);
        for (k = 0; k < n; k++) t = t (k ? " " : "") int(rand() * 50);
        printf "{\"prompt\": \"<|endoftext|>\", \"references\": [\"%s\"]}\n", t } }'
}

# numbers_scratch MODEL_CONFIG TRAINING_ARGS: a config of supervised training of a new model on texts.jsonl of the current folder, evaluated on few.jsonl.
numbers_scratch() {
    cat <<YAML
tokenizer: {model_name: $numbers_root/tests/golden/tokenizer/gpt2-a}
datapool: {id: jsonl, args: {train: $PWD/texts.jsonl, val: $PWD/few.jsonl, test: $PWD/few.jsonl}}
alg:
  id: supervised
  model_type: causal
  model_config: {$1}
  generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 4, post_processing_fn: null}
  training_args: {$2}
train_evaluation: {eval_batch_size: 2, metrics: [{id: increasing_numbers, args: {min_tokens: 8}}]}
learner: {threads: 2}
seed: 3
YAML
}

# ---- words that are the numbers 1 to 20; the functions write into the current folder ----

# numbers_model FOLDER FAMILY WORD0 WORD1 WORD2: the golden model of a family, with a tokenizer of these three words and the numbers. Sources of a model
# that has an encoder end with </s>.
numbers_model() {
    local words=("${@:3}") vocab='' added='' end='' eos=1 i
    mkdir -p "$1" && cp "$numbers_root/tests/golden/families/$2/"{config.json,model.safetensors} "$1" || return
    for i in 0 1 2; do
        vocab="$vocab${vocab:+, }\"${words[i]}\": $i"
        added="$added${added:+, }{\"id\": $i, \"content\": \"${words[i]}\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false,
            \"normalized\": false, \"special\": true}"
        [ "${words[i]}" != '</s>' ] || eos=$i
    done
    for i in {1..20}; do vocab="$vocab, \"$i\": $((i + 2))"; done
    ! grep -q '"is_encoder_decoder": true' "$1/config.json" || end=', {"SpecialToken": {"id": "</s>", "type_id": 0}}'
    cat >"$1/tokenizer.json" <<JSON
{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [$added], "normalizer": null,
 "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
 "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}$end],
   "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
   "special_tokens": {"</s>": {"id": "</s>", "ids": [$eos], "tokens": ["</s>"]}}},
 "model": {"type": "WordLevel", "vocab": {$vocab}, "unk_token": "${words[0]}"}}
JSON
    echo "{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"eos_token\": \"</s>\", \"pad_token\": \"<pad>\", \"unk_token\": \"${words[0]}\",
        \"model_max_length\": 24}" >"$1/tokenizer_config.json"
}

# numbers_ppo MODEL KIND: a config of PPO on increasing numbers; KIND is causal or seq2seq.
numbers_ppo() {
    cat <<YAML
tokenizer: {model_name: $1, padding_side: left, truncation_side: left, pad_token_as_eos_token: False}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 20, prompt: '3 4 5'}}
env: {n_envs: 16, args: {max_prompt_length: 5, max_episode_length: 8, terminate_on_eos: True}}
alg:
  id: ppo
  args: {n_steps: 16, batch_size: 64, learning_rate: 0.003, n_epochs: 4}
  kl_div: {coeff: 0.001, target_kl: 5}
  policy:
    id: $2_lm_actor_critic_policy
    args: {model_name: $1, generation_kwargs: {do_sample: True, top_k: 0, max_new_tokens: 8}}
train_evaluation:
  eval_batch_size: 8
  n_iters: 60
  eval_every: 30
  save_every: 30
  metrics: [{id: increasing_numbers, args: {min_tokens: 8}}]
seed: 1
YAML
}

# numbers_nlpo MODEL KIND: the overrides that make it NLPO.
numbers_nlpo() {
    echo "alg.policy={id: maskable_$2_lm_actor_critic_policy, args: {model_name: $1, mask_type: learned_top_p, top_mask: 0.95, min_tokens_to_keep: 8,
        target_update_iterations: 5, generation_kwargs: {do_sample: True, top_k: 0, max_new_tokens: 8}}}"
}

# numbers_sft MODEL: a config of supervised training on the pairs q, a of {train,val,test}.jsonl.
numbers_sft() {
    cat <<YAML
tokenizer: {model_name: $1, padding_side: left, truncation_side: left, pad_token_as_eos_token: False}
datapool: {id: jsonl, args: {train: train.jsonl, val: val.jsonl, test: test.jsonl, template: '{q}', references: a}}
env: {args: {max_prompt_length: 5, max_episode_length: 8}}
alg:
  id: supervised
  model_type: seq2seq
  model_name: $1
  generation_kwargs: {do_sample: False, max_new_tokens: 6, post_processing_fn: null}
  training_args: {per_device_train_batch_size: 6, num_train_epochs: 150, learning_rate: 0.01, logging_steps: 450, weight_decay: 0.0}
train_evaluation: {eval_batch_size: 18, metrics: [{id: bleu, args: {}}]}
seed: 1
YAML
}

# numbers_copy MODEL: PPO whose reward is ROUGE-1 with the source, on the same pairs.
numbers_copy() {
    numbers_ppo "$1" seq2seq | sed -e 's|^reward_fn:.*|reward_fn: {id: rouge, args: {rouge_type: rouge1}}|' \
        -e "s|^datapool:.*|datapool: {id: jsonl, args: {train: train.jsonl, val: val.jsonl, test: test.jsonl, template: '{q}', references: a}}|" \
        -e 's|metrics: .*|metrics: [{id: bleu, args: {}}]|'
}

# numbers_reward FOLDER FIRST-OR-LAST: the run's mean reward over five iterations.
numbers_reward() {
    local end=head
    [ "$2" = last ] && end=tail
    grep -o '"rollout_info/ep_rew": [-0-9.e]*' "$1/rollout_info.jsonl" | $end -n 5 | awk '{s += $2} END {print s / NR}'
}
