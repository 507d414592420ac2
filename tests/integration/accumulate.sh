#!/bin/bash
# Gradient accumulation of supervised training: 2 batches of 8 summed are one batch of 16, byte by byte, also with activations made again;
# and every optimizer that training_args.optim names trains and saves.
. tests/support/script.sh accumulate
. tests/support/numbers.sh
cd "$work" || exit 70
export TEXTGEN_QUIET=1

numbers_texts 64 2 9 >texts.jsonl
head -n 2 texts.jsonl >few.jsonl
numbers_scratch 'n_layer: 2, n_head: 2, n_embd: 32, n_positions: 48' \
    'per_device_train_batch_size: 16, num_train_epochs: 2, learning_rate: 0.003, weight_decay: 0.1, logging_steps: 50, save_steps: 30' >sft.yml
train() { "$textgen" train sft.yml --run-dir "$1" --workers 1 "${@:2}" >"$1.log" 2>&1 || bad "$1: textgen train ends with $?" "$1.log"; }
same() { if cmp -s "$1/model/model.safetensors" "$2/model/model.safetensors"; then ok; else bad "$1 and $2 end in different weights"; fi; }
differ() { if cmp -s "$1/model/model.safetensors" "$2/model/model.safetensors"; then bad "$1 and $2 end in the same weights"; else ok; fi; }

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
finish
