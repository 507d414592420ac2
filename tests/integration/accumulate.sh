#!/bin/bash
# Gradient accumulation of supervised training: 2 batches of 8 summed are one batch of 16, byte by byte, also with activations made again;
# and every optimizer that training_args.optim names trains and saves.
set -u
BUILD=${BUILD:-build}
textgen=$PWD/$BUILD/textgen
. tests/support/numbers.sh
tokenizer=$PWD/tests/golden/tokenizer/gpt2-a
work=$(mktemp -d /tmp/textgen-accumulate.XXXXXX)
trap 'wait; rm -rf "$work"' EXIT
cd "$work" || exit 70
export TEXTGEN_QUIET=1
passed=0 failed=0
bad() { failed=$((failed + 1)); echo "  $1"; [ -z "${2:-}" ] || tail -n 15 "$2" | sed 's/^/    | /'; }

numbers_texts 64 2 9 >texts.jsonl
head -n 2 texts.jsonl >few.jsonl
cat >sft.yml <<YML
tokenizer: {model_name: $tokenizer}
datapool: {id: jsonl, args: {train: $work/texts.jsonl, val: $work/few.jsonl, test: $work/few.jsonl}}
alg:
  id: supervised
  model_type: causal
  model_config: {n_layer: 2, n_head: 2, n_embd: 32, n_positions: 48}
  generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 4, post_processing_fn: null}
  training_args: {per_device_train_batch_size: 16, num_train_epochs: 2, learning_rate: 0.003, weight_decay: 0.1, logging_steps: 50, save_steps: 30}
train_evaluation: {eval_batch_size: 2, metrics: [{id: increasing_numbers, args: {min_tokens: 8}}]}
learner: {threads: 2}
seed: 3
YML
train() { "$textgen" train sft.yml --run-dir "$1" --workers 1 "${@:2}" >"$1.log" 2>&1 || bad "$1: textgen train ends with $?" "$1.log"; }
same() { if cmp -s "$1/model/model.safetensors" "$2/model/model.safetensors"; then passed=$((passed + 1)); else bad "$1 and $2 end in different weights"; fi; }
differ() { if cmp -s "$1/model/model.safetensors" "$2/model/model.safetensors"; then bad "$1 and $2 end in the same weights"; else passed=$((passed + 1)); fi; }

args=alg.training_args
train whole
train halves $args.per_device_train_batch_size=8 $args.gradient_accumulation_steps=2
train again $args.gradient_checkpointing=true
same whole halves
same whole again
train eight $args.optim=adamw_8bit
train rmsprop $args.optim=rmsprop
train sgd $args.optim=sgd
differ whole eight
differ whole rmsprop
differ whole sgd
train frozen alg.num_layers_unfrozen=1
differ whole frozen
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
