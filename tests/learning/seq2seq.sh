#!/bin/bash
# Encoder-decoder models train: a tiny T5 learns to write increasing numbers by every algorithm, to copy its source, and to count on
# by examples; runs do not depend on the number of workers, go on after they were stopped, and a model of the other kind is refused.
. tests/support/script.sh seq2seq
. tests/support/numbers.sh
cd "$work" || exit 70
export TEXTGEN_LOG=warn LC_ALL=C.UTF-8
unset TEXTGEN_MODELS

numbers_model t5 t5 '<pad>' '</s>' '<unk>'
numbers_ppo t5 seq2seq >c.yml

learns() {
    local name=$1 first last
    shift
    timeout 300 "$textgen" train c.yml --run-dir "$name" "$@" >out 2>&1 || { bad "$name: $(tail -n 2 out)"; return; }
    first=$(numbers_reward "$name" first) last=$(numbers_reward "$name" last)
    if awk "BEGIN {exit !($first < 0.4 && $last > 0.55)}"; then ok; else bad "$name: reward from $first to $last, expected below 0.4 to above 0.55"; fi
}
learns separate --workers 2
learns shared alg.policy.args.critic=shared
learns a2c alg.id=a2c 'alg.args={n_steps: 16, learning_rate: 0.003}' train_evaluation.n_iters=300
learns nlpo alg.id=nlpo "$(numbers_nlpo t5 seq2seq)"
learns trpo alg.id=trpo 'alg.args={n_steps: 16, batch_size: 64, learning_rate: 0.003, target_kl: 0.05, n_critic_updates: 4}'

# what comes out writes numbers again, greedily
text=$(echo '3 4 5' | "$textgen" generate --model separate/model 2>&1)
if awk -v t="$text" 'BEGIN {n = split(t, x, " "); for (i = 2; i <= n; i++) if (x[i] + 0 <= x[i - 1] + 0) exit 1; exit !(n > 1)}'; then ok; else
    bad "the trained model writes \"$text\""; fi

same() { for f in rollout_info.jsonl model/model.safetensors; do cmp -s "$1/$f" "$2/$f" || { bad "$1 and $2 differ in $f"; return; }; done; ok; }
short=(train_evaluation.n_iters=6 train_evaluation.save_every=2 train_evaluation.eval_every=3)
"$textgen" train c.yml --run-dir one --workers 1 "${short[@]}" >out 2>&1 || bad "$(tail -n 2 out)"
"$textgen" train c.yml --run-dir three --workers 3 "${short[@]}" >out 2>&1 || bad "$(tail -n 2 out)"
same one three
"$textgen" train c.yml --run-dir cut --workers 1 "${short[@]}" >out 2>&1 || bad "$(tail -n 2 out)"
rm -rf cut/model
newest=$(ls cut/checkpoints | sort -V | tail -n 1) && rm -rf "cut/checkpoints/$newest"
"$textgen" train c.yml --run-dir cut --resume --workers 2 "${short[@]}" >out 2>&1 || bad "resumed: $(tail -n 2 out)"
same one cut

# supervised: the source is a number, the answer the next two
for split in train val test; do
    for i in {1..18}; do echo "{\"q\": \"$i\", \"a\": \"$((i + 1)) $((i + 2))\"}"; done >$split.jsonl
done
numbers_sft t5 >s.yml
if timeout 300 "$textgen" train s.yml --run-dir sft --workers 1 >out 2>&1; then
    right=0
    for i in {1..18}; do
        [ "$(echo "$i" | "$textgen" generate --model sft/model do_sample=false max_new_tokens=6 2>/dev/null)" = "$((i + 1)) $((i + 2))" ] && right=$((right + 1))
    done
    if [ $right -ge 15 ]; then ok; else bad "supervised: $right of 18 answers are right"; fi
else bad "supervised: $(tail -n 2 out)"; fi

# copying: a model that examples have taught a little writes its source again, by every algorithm; the reward is ROUGE-1 with the source
for split in train val test; do
    for i in {1..18}; do echo "{\"q\": \"$i\", \"a\": \"$i\"}"; done >$split.jsonl
done
if ! timeout 300 "$textgen" train s.yml --run-dir taught --workers 1 alg.training_args.num_train_epochs=50 >out 2>&1; then bad "taught: $(tail -n 2 out)"; fi
numbers_copy taught/model >copy.yml
copies() { # NAME OVERRIDE…
    local name=copy-$1 first last
    shift
    timeout 300 "$textgen" train copy.yml --run-dir "$name" "$@" >out 2>&1 || { bad "$name: $(tail -n 2 out)"; return; }
    first=$(numbers_reward "$name" first) last=$(numbers_reward "$name" last)
    if awk "BEGIN {exit !($last > 0.75 && $last > $first + 0.2)}"; then ok; else bad "$name: reward from $first to $last, expected above 0.75"; fi
}
copies ppo
copies a2c alg.id=a2c 'alg.args={n_steps: 16, learning_rate: 0.003}' train_evaluation.n_iters=500
copies nlpo alg.id=nlpo "$(numbers_nlpo taught/model seq2seq)"
copies trpo alg.id=trpo 'alg.args={n_steps: 16, batch_size: 64, learning_rate: 0.003, target_kl: 0.05, n_critic_updates: 4}'

refused() { # NAME PATTERN OVERRIDE…
    local name=$1 pattern=$2 code
    shift 2
    "$textgen" train c.yml --run-dir refused "$@" >out 2>&1
    code=$?
    if [ $code = 78 ] && grep -qE -- "$pattern" out; then ok; else bad "$name: exit $code: $(tail -n 1 out)"; fi
}
refused 'a causal policy with T5' 'needs a causal model, but .* is an encoder-decoder one \(t5\)' alg.policy.id=causal_lm_actor_critic_policy
cp "$root"/configs/models/tiny/* t5/ 2>/dev/null
refused 'a seq2seq policy with GPT-2' 'needs an encoder-decoder model, but .* is a causal one \(gpt2\)'

# mBART's decoder reads the last token of an answer first, which names its language, whatever config.json says that generation starts with
numbers_model mbart mbart '<s>' '<pad>' '</s>'
mkdir other && cp mbart/* other && sed -i 's/"decoder_start_token_id": 2/"decoder_start_token_id": 0/' other/config.json
for split in train val test; do echo '{"q": "1 2", "a": "3 4"}' >$split.jsonl; done
for model in mbart other; do
    numbers_sft $model >$model.yml
    "$textgen" train $model.yml --run-dir lid-$model --workers 1 alg.training_args.max_steps=2 alg.training_args.logging_steps=1 >out 2>&1 || bad "$(tail -n 2 out)"
done
cmp -s mbart/config.json other/config.json && bad "mbart's config.json has another start" || ok
if cmp -s lid-mbart/training_info.jsonl lid-other/training_info.jsonl; then ok; else bad "mBART's answers begin with config.json's token"; fi
finish
