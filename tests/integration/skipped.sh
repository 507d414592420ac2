#!/bin/bash
# Steps that are not finite (here by a learning rate and a decay that blow the weights up): a supervised run leaves them out, counts and reports them, and
# can be resumed from a checkpoint that was taken among them. An update of PPO does the same.
. tests/support/script.sh skipped
. tests/support/numbers.sh
cd "$work" || exit 70
export TEXTGEN_QUIET=1
check() { if "${@:2}" >out 2>&1; then ok; else bad "$1" out; fi; }
said() { if grep -qE -- "$2" "$3"; then ok; else bad "$1" "$3"; fi; }

numbers_texts 64 2 9 >texts.jsonl
head -n 2 texts.jsonl >few.jsonl
numbers_scratch 'n_layer: 2, n_head: 2, n_embd: 32, n_positions: 48' \
    'per_device_train_batch_size: 16, max_steps: 12, learning_rate: 1000, weight_decay: 0.1, lr_scheduler_type: constant, logging_steps: 100, save_steps: 1, save_total_limit: 50' >sft.yml
check "a supervised run goes on" "$textgen" train sft.yml --run-dir run --workers 1
first=$(sed -n 's/.*step \([0-9]*\): the \(loss\|gradient\) is not finite.*/\1/p' run/log.txt | head -n 1)
count=$(grep -c 'is not finite; the step is left out' run/log.txt)
check "some of its steps are left out" test "${first:-0}" -gt 1
said "it says how many at its end" "$count steps of this run were not finite" run/log.txt
before=run/checkpoints/checkpoint_$((${first:-2} - 1)) after=run/checkpoints/checkpoint_${first:-2}
for f in policy policy.moment0 policy.moment1; do check "a step left out changes no $f" cmp $before/$f.safetensors $after/$f.safetensors; done
for ((k = first + 1; k <= 12; k++)); do rm -rf "run/checkpoints/checkpoint_$k"; done
cp run/model/model.safetensors whole.safetensors
check "it can be resumed from there" "$textgen" train sft.yml --run-dir run --workers 1 --resume
said "from there and from nowhere else" "checkpoint_$first" run/log.txt
said "the count goes on" "$count steps of this run were not finite" <(tail -n 5 run/log.txt)
check "and ends in the same weights" cmp run/model/model.safetensors whole.safetensors

check "logged steps" "$textgen" train sft.yml --run-dir logged --workers 1 alg.training_args.logging_steps=12
said "are counted in training_info.jsonl" "\"supervised/skipped_steps\": $count\\.0" logged/training_info.jsonl
said "their loss is in no mean" '"supervised/loss": [0-9]' logged/training_info.jsonl

check "a model" "$textgen" train sft.yml --run-dir small --workers 1 alg.training_args.learning_rate=0.001 alg.training_args.max_steps=1
cat >ppo.yml <<YML
tokenizer: {model_name: $work/small/model}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 6, prompt: '<|endoftext|>'}}
env: {n_envs: 4, args: {max_prompt_length: 4, max_episode_length: 6, terminate_on_eos: true}}
alg:
  id: ppo
  args: {n_steps: 8, batch_size: 8, learning_rate: 900, n_epochs: 8}
  kl_div: {coeff: 0.05, target_kl: 0.2}
  policy:
    id: causal_lm_actor_critic_policy
    args: {model_name: $work/small/model, weight_decay: 0.1, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 6}}
train_evaluation: {eval_batch_size: 4, n_iters: 1, eval_every: 5, save_every: 1, metrics: []}
seed: 5
YML
check "updates of PPO" "$textgen" train ppo.yml --run-dir ppo --workers 1
count=$(grep -c 'nothing of it is applied' ppo/log.txt)
check "some are left out" test "$count" -gt 0
said "and counted at the end" "$count updates of this run were not finite" ppo/log.txt
finish
