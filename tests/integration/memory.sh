#!/bin/bash
# The memory plan and the real peak of runs of a model of 25 M parameters: f32 with a shared critic, with a critic of its own, with 8-bit
# Adam and recomputation, with frozen layers; TRPO with its vectors, also of a share of the rows; NLPO, where generating with two caches needs most, or its masks; supervised
# runs; answers that end early, or might; a model of 7 M parameters, most of which are its vocabulary; and a BLOOM with prompts of many lengths; the metric
# perplexity with its windows and its tokenizer; products in bf16. Bound: the peak is within 5 % of the plan, or 8 MB.
. tests/support/script.sh memory
case ${SANITIZE:-} in ?*) echo "0 passed, 0 failed"; exit 0 ;; esac # sanitizers have memory of their own
make=$bin/tests/make-model
. tests/support/numbers.sh
tokenizer=$PWD/tests/golden/tokenizer/gpt2-a
cd "$work" || exit 70
export TEXTGEN_QUIET=1

numbers_texts 200 60 0 >texts.jsonl
head -n 2 texts.jsonl >few.jsonl

numbers_scratch 'n_layer: 8, n_head: 8, n_embd: 512, n_positions: 128' \
    'per_device_train_batch_size: 40, max_steps: 1, learning_rate: 0.001, logging_steps: 50, save_steps: 30' >sft.yml
cat >ppo.yml <<YML
tokenizer: {model_name: $work/f32-supervised/model}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 2, prompt: '<|endoftext|>'}}
env: {n_envs: 8, args: {max_prompt_length: 4, max_episode_length: 60, terminate_on_eos: false}}
alg:
  id: ppo
  args: {n_steps: 60, batch_size: 480, learning_rate: 0.0001, n_epochs: 1}
  kl_div: {coeff: 0.05}
  policy:
    id: causal_lm_actor_critic_policy
    args: {model_name: $work/f32-supervised/model, critic: shared, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 60}}
train_evaluation: {eval_batch_size: 2, n_iters: 2, eval_every: 10, save_every: 10, metrics: [{id: increasing_numbers, args: {min_tokens: 8}}]}
learner: {threads: 2}
seed: 5
YML

# within NAME CONFIG [key=value…]: a run whose peak is near its plan; leaves the peak in $peak.
within() {
    local name=$1 line
    "$textgen" train "$2" --run-dir "$name" --workers 1 "${@:3}" >"$name.log" 2>&1 || { bad "$name: textgen train ends with $?" "$name.log"; return; }
    line=$(sed -n 's/.*memory: peak \([0-9.]*\) MiB, planned \([0-9.]*\) MiB/\1 \2/p' "$name/log.txt")
    peak=$(awk '{print int($1)}' <<<"$line")
    printf '  %-24s peak and plan, MiB: %s (%s)\n' "$name" "$line" "$(awk '{printf "%+.1f %%", 100 * ($2 / $1 - 1)}' <<<"$line")"
    if awk '{d = $2 - $1; if (d < 0) d = -d; exit !($1 > 0 && (d <= 0.05 * $1 || d <= 8))}' <<<"$line"; then ok
    else bad "$name: the plan is not within 5 % of the peak"; fi
}
less() { if [ "$2" -lt "$3" ]; then ok; else bad "$1: $2 MiB is not less than $3 MiB"; fi; }

within f32-supervised sft.yml
within f32-shared ppo.yml; shared=$peak
within f32-separate ppo.yml alg.policy.args.critic=separate train_evaluation.n_iters=1; separate=$peak
within 8bit-recompute ppo.yml 'alg.policy.args.optimizer={id: adamw_8bit}' alg.policy.args.recompute=true; small=$peak
within ends ppo.yml env.args.terminate_on_eos=true alg.args.batch_size=120 train_evaluation.n_iters=1 # episodes may end early, in small minibatches
# answers that hardly begin: many more prompts than the plan counts on, in as much memory; and those that might end but do not
within short-answers ppo.yml env.args.terminate_on_eos=true train_evaluation.n_iters=1 env.args.max_prompt_length=60 "datapool.args.prompt=$(seq -s ' ' 10 90)" \
    alg.args.microbatch_tokens=4096 'alg.policy.args.generation_kwargs={do_sample: true, top_k: 0, max_new_tokens: 60, exponential_decay_length_penalty: [2, 1.6]}'
within whole-answers ppo.yml env.args.terminate_on_eos=true train_evaluation.n_iters=1 env.args.max_prompt_length=60 "datapool.args.prompt=$(seq -s ' ' 10 90)" \
    alg.args.microbatch_tokens=4096 'alg.policy.args.generation_kwargs={do_sample: true, top_k: 0, min_length: 59, max_new_tokens: 60}'
within frozen ppo.yml alg.policy.args.num_layers_unfrozen=2 train_evaluation.n_iters=1; frozen=$peak
within trpo ppo.yml alg.id=trpo 'alg.args={n_steps: 60, batch_size: 480, cg_max_steps: 2, n_critic_updates: 1, line_search_max_iter: 2}' \
    alg.policy.args.critic=separate train_evaluation.n_iters=1
within trpo-share ppo.yml alg.id=trpo 'alg.args={n_steps: 60, batch_size: 60, sub_sampling_factor: 8, cg_max_steps: 2, n_critic_updates: 1, line_search_max_iter: 2}' \
    alg.policy.args.critic=separate train_evaluation.n_iters=1
# most of it is the rollout's: its caches and packed weights twice; prompts are as long as they may be
within nlpo-rollout ppo.yml alg.id=nlpo alg.policy.id=maskable_causal_lm_actor_critic_policy train_evaluation.n_iters=1 \
    env.n_envs=32 env.args.max_prompt_length=32 env.args.max_episode_length=24 alg.policy.args.generation_kwargs.max_new_tokens=24 \
    alg.args.n_steps=24 "datapool.args.prompt=$(seq -s ' ' 10 60)" \
    'alg.policy.args.optimizer={id: adamw_8bit}' alg.policy.args.recompute=true alg.policy.args.num_layers_unfrozen=1 alg.args.microbatch_tokens=64

# A small model with a large vocabulary, where what a step does not use is a large part: few and short texts, small minibatches, long prompts
# (which have no logits), an evaluation of fewer samples than it has places for, and of more.
model=$work/vocabulary
"$make" "$model" '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_embd": 128, "n_head": 4, "n_positions": 256,
    "vocab_size": 50000, "bos_token_id": 0, "eos_token_id": 0}' "$tokenizer" || bad "make-model ends with $?"
sed "s|model_config:.*|model_name: $model|" sft.yml >vocabulary.yml
within vocabulary-supervised vocabulary.yml "tokenizer.model_name=$model" alg.training_args.per_device_train_batch_size=4
vocabulary() { # NAME MAX-PROMPT MAX-NEW [key=value…]
    within "vocabulary-$1" ppo.yml "tokenizer.model_name=$model" "alg.policy.args.model_name=$model" "datapool.args.prompt=$(seq -s ' ' 10 400)" \
        "env.args.max_prompt_length=$2" "env.args.max_episode_length=$3" "alg.policy.args.generation_kwargs.max_new_tokens=$3" \
        "alg.args.n_steps=$3" alg.args.batch_size=64 train_evaluation.n_iters=1 "${@:4}"
}
vocabulary shared 64 48
vocabulary recompute 64 48 alg.policy.args.recompute=true
vocabulary frozen 64 48 alg.policy.args.num_layers_unfrozen=1
vocabulary prompts 200 8
vocabulary trpo 64 16 alg.id=trpo 'alg.args={n_steps: 16, batch_size: 64, cg_max_steps: 2, n_critic_updates: 1, line_search_max_iter: 2}' \
    alg.policy.args.critic=separate
# a bit for every token of the vocabulary, for every transition
vocabulary masks 16 8 alg.id=nlpo alg.policy.id=maskable_causal_lm_actor_critic_policy 'alg.args={n_steps: 512, batch_size: 512, n_epochs: 1}'
vocabulary places 64 16 train_evaluation.eval_batch_size=256
vocabulary evaluation 64 16 train_evaluation.eval_batch_size=256 datapool.args.n_samples=100

# Prompts of many lengths and episodes that are as long as they may be: not more episodes than there are. And passes below 4 MB, which the heap
# gives: it must not keep them for the next phase.
for split in train val test; do
    awk 'BEGIN { srand(2); for (i = 0; i < 40; i++) { t = ""; n = 40 + int(rand() * 80); for (k = 0; k < n; k++) t = t (k ? " " : "") int(rand() * 60);
        printf "{\"prompt\": \"%s\", \"references\": [\"1\"]}\n", t } }' >prompts-$split.jsonl
done
bloom=$work/bloom
"$make" "$bloom" '{"model_type": "bloom", "architectures": ["BloomForCausalLM"], "hidden_size": 320, "n_layer": 4, "n_head": 4, "vocab_size": 8000,
    "bos_token_id": 0, "eos_token_id": 0}' "$tokenizer" || bad "make-model ends with $?"
uneven() { # NAME MAX-NEW [key=value…]
    within "uneven-$1" ppo.yml "tokenizer.model_name=$bloom" "alg.policy.args.model_name=$bloom" alg.policy.args.critic=separate \
        "datapool={id: jsonl, args: {train: $work/prompts-train.jsonl, val: $work/prompts-val.jsonl, test: $work/prompts-test.jsonl}}" \
        env.args.max_prompt_length=180 "env.args.max_episode_length=$2" "alg.policy.args.generation_kwargs.max_new_tokens=$2" \
        "alg.args.n_steps=$(($2 + 1))" alg.policy.args.recompute=true "${@:3}"
}
uneven prompts 60 alg.args.batch_size=240 alg.args.microbatch_tokens=4096 alg.args.minibatch=transition
uneven heap 8 alg.id=a2c 'alg.args={n_steps: 9, microbatch_tokens: 1}'
# products in bf16 and decoding by weights of bf16: half the workspace
llama=$work/llama
"$make" "$llama" '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "vocab_size": 8000, "bos_token_id": 0, "eos_token_id": 0}' \
    "$tokenizer" || bad "make-model ends with $?"
within half ppo.yml "tokenizer.model_name=$llama" "alg.policy.args.model_name=$llama" train_evaluation.n_iters=1 env.n_envs=16 \
    "datapool={id: jsonl, args: {train: $work/prompts-train.jsonl, val: $work/few.jsonl, test: $work/few.jsonl}}" env.args.max_prompt_length=64 \
    env.args.max_episode_length=40 env.args.terminate_on_eos=true alg.args.n_steps=40 alg.args.batch_size=40 alg.policy.args.recompute=true \
    alg.policy.args.generation_kwargs.max_new_tokens=40 alg.policy.args.compute_dtype=bf16 alg.policy.args.decode_dtype=bf16
# few short texts to train on, and windows of thousands of tokens to evaluate
head -n 40 texts.jsonl >windows.jsonl
sed "s|model_config:.*|model_name: $bloom|" sft.yml >windows.yml
within perplexity windows.yml "tokenizer.model_name=$bloom" datapool.args.train="$work/few.jsonl" datapool.args.test="$work/windows.jsonl" \
    alg.training_args.per_device_train_batch_size=1 alg.training_args.optim=sgd \
    "train_evaluation.metrics=[{id: causal_perplexity, args: {tokenizer_id: $bloom, stride: 512, model_type: causal}}]"
# its tokenizer, if it is another than the run's: one of so many words takes as much as this model
mkdir words
awk 'BEGIN { printf "{\"version\": \"1.0\", \"added_tokens\": [], \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"0\", \"vocab\": {"
    for (i = 0; i < 200000; i++) printf "%s\"%d\": %d", i ? ", " : "", i, i
    print "}}}" }' >words/tokenizer.json
within perplexity-words vocabulary.yml "tokenizer.model_name=$model" datapool.args.train="$work/few.jsonl" alg.training_args.optim=sgd \
    alg.training_args.per_device_train_batch_size=1 \
    "train_evaluation.metrics=[{id: causal_perplexity, args: {tokenizer_id: $work/words, stride: 64, model_type: causal}}]"
within few-texts sft.yml alg.training_args.per_device_train_batch_size=2
less "a shared critic" "$shared" "$separate"
less "8-bit Adam and recomputation" "$small" "$shared"
less "frozen layers" "$frozen" "$shared"
finish
