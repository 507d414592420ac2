#!/bin/bash
# `textgen eval`: the metrics of a model without training, by real processes. The same as those of a run before training, and after it when
# texts are not drawn; for any number of workers; of on-policy and supervised configs, causal and encoder-decoder; with perplexity. What is
# wrong is said before a folder is made; the memory plan of larger models holds.
. tests/support/script.sh eval
. tests/support/numbers.sh
tokenizer=$PWD/tests/golden/tokenizer/gpt2-a
cd "$work" || exit 70
export TEXTGEN_QUIET=1
config=$root/configs/increasing_numbers.yml
check() { if "${@:2}" >out 2>err; then ok; else bad "$1" err; fi; }
same() { if cmp -s "$2" "$3"; then ok; else bad "$1: $2 and $3 differ"; fi; }
refused() { # refused WHAT CODE PATTERN ARGUMENTS…
    "$textgen" eval "${@:4}" >out 2>err
    is "$1: exit code" "$2" $?
    if grep -qE -- "$3" err && [ ! -s out ]; then ok; else bad "$1: \"$3\" is not said, or there is a result" err; fi
}

# Before training; the files are a run's.
check "a run" "$textgen" train "$config" --run-dir run --workers 1 train_evaluation.n_iters=1
check "its config" "$textgen" eval "$config" --run-dir before --workers 1
cp out table
for split in val test; do
    head -n 1 "run/${split}_split_metrics.jsonl" >first
    same "$split before training" first "before/${split}_split_metrics.jsonl"
done
check "three workers" "$textgen" eval "$config" --run-dir three --workers 3
same "three workers: the table" out table
for file in val_split_metrics.jsonl epoch_0_val_split_predictions.json epoch_0_test_split_predictions.json; do
    same "three workers" before/$file three/$file
done
if [ ! -e before/model ] && [ ! -e before/checkpoints ]; then ok; else bad "an evaluation leaves a model or checkpoints"; fi
check "JSON" "$textgen" eval "$config" --run-dir json --split test --json
is "JSON: splits" '["test"]' "$(jq -c keys out)"
is "JSON: as many values as texts" true "$(jq '.test | .n == (.metrics[].samples | length)' out)"
is "JSON: the value of all" true "$(jq '[.test.metrics[]] | all(((.samples | add / length) - .corpus) | . < 1e-9 and . > -1e-9)' out)"
is "JSON and table" "$(awk '/^test/ {t = 1} t && /^synthetic/ {print $2}' table)" "$(jq '.test.metrics[].corpus' out | xargs printf %.6f)"

# After training: a run folder stands for its config and its model. Greedy, so that no draw differs.
check "a greedy run" "$textgen" train "$config" --run-dir greedy --workers 1 train_evaluation.n_iters=1 \
    'train_evaluation.generation_kwargs={do_sample: false, max_new_tokens: 12}'
check "its folder" "$textgen" eval greedy --run-dir after --split val
tail -n 1 greedy/val_split_metrics.jsonl >last
same "after training" last after/val_split_metrics.jsonl
check "a model by name" "$textgen" eval "$config" --model textgen/tiny --run-dir named --split val
same "a model by name" before/val_split_metrics.jsonl named/val_split_metrics.jsonl
(cd greedy && TMPDIR=$work "$textgen" eval . --split val >../out 2>../err)
is "a run folder given as a dot" 0 $?
case $(cd greedy && echo runs/*) in runs/greedy-eval-*) ok ;; *) bad "its folder: $(cd greedy && echo runs/*)" ;; esac

# Supervised, an encoder-decoder, BLEU; a causal one with perplexity.
numbers_model t5 t5 '<pad>' '</s>' '<unk>'
for i in 1 2 3; do echo "{\"q\": \"$i $((i + 1))\", \"a\": \"$i\"}"; done | tee train.jsonl val.jsonl >test.jsonl
numbers_sft "$PWD/t5" >sft.yml
check "a supervised run" "$textgen" train sft.yml --run-dir sft --workers 1 alg.training_args.num_train_epochs=1
check "a supervised run's folder" "$textgen" eval sft --run-dir sft-after
for split in val test; do
    tail -n 1 sft/${split}_split_metrics.jsonl | sed 's/"epoch": [0-9.]*/"epoch": 0/' >last
    same "$split after supervised training" last sft-after/${split}_split_metrics.jsonl
done
numbers_texts 8 8 0 >texts.jsonl
check "perplexity" "$textgen" eval "$config" --run-dir perplexity --split val --json \
    "datapool={id: jsonl, args: {train: texts.jsonl, val: texts.jsonl}}" \
    "train_evaluation.metrics=[{id: causal_perplexity, args: {tokenizer_id: textgen/tiny, stride: 32, model_type: causal}}]"
is "perplexity is a number" true "$(jq '[.val.metrics[].corpus] | length == 1 and .[0] > 1' out)"

# What is wrong.
refused "no config" 64 'CONFIG\|RUN'
refused "no such config" 66 'nothing.yml: no such file' nothing.yml
refused "no such split" 64 '--split: expected train, val or test.*"valid"' "$config" --split valid
refused "a split twice" 64 'each once' "$config" --split val,val
refused "a folder without a config" 66 'it has no config.json' .
refused "a folder without a model" 66 'behind --model' before
refused "a model that is not there" 66 'model "nosuch" was not found' "$config" --model nosuch
refused "a folder that is in use" 64 'already holds a run' "$config" --run-dir before
refused "an unknown key" 78 'alg.argz' "$config" alg.argz.n_steps=1
: >empty.jsonl
refused "a split that is not there" 66 'no test split' sft.yml --run-dir nosplit "datapool.args={train: train.jsonl, val: val.jsonl, template: '{q}', references: a}" 
if [ ! -e nosplit ]; then ok; else bad "a refused evaluation leaves its folder"; fi

# A metric that cannot be computed is named, the others are there, and the exit code says it.
"$textgen" eval "$config" --run-dir partly --split val \
    'train_evaluation.metrics=[{id: increasing_numbers, args: {min_tokens: 10}}, {id: bert_score, args: {language: en}}]' >out 2>err
code=$?
if [ $code -ne 0 ] && grep -q bert_score err; then ok; else bad "bert_score without its model: exit code $code" err; fi

# Memory: the plan of a model of 25 M parameters.
if [ -z "${SANITIZE:-}" ]; then
    numbers_texts 20 8 0 >texts.jsonl
    head -n 8 texts.jsonl >few.jsonl
    numbers_scratch 'n_layer: 8, n_head: 8, n_embd: 512, n_positions: 128' 'per_device_train_batch_size: 4, max_steps: 1' >large.yml
    check "a larger model" "$textgen" train large.yml --run-dir large --workers 1
    for beams in 1 4; do
        check "its evaluation" "$textgen" eval large --run-dir "large$beams" "alg.generation_kwargs={num_beams: $beams, max_new_tokens: 60, post_processing_fn: null}"
        line=$(sed -n 's/.*memory: peak \([0-9.]*\) MiB, planned \([0-9.]*\) MiB/\1 \2/p' "large$beams/log.txt")
        echo "  beams $beams: peak and plan, MiB: $line"
        if awk '{d = $2 - $1; if (d < 0) d = -d; exit !($1 > 90 && (d <= 0.05 * $1 || d <= 8))}' <<<"$line"; then ok; else bad "the plan is not within 5 % of the peak: $line"; fi
    done
fi
finish
