#!/bin/bash
# textgen export: formats, types and shards convert to the same model; runs and checkpoints become folders; wrong requests are refused.
. tests/support/script.sh export
eval=$bin/tests/tensor-eval
cd "$work" || exit 70
export TEXTGEN_QUIET=1 TEXTGEN_LOG=warn
check() { if "${@:2}" >out 2>err; then ok; else bad "$1" err; fi; }
said() { if grep -qE -- "$2" out; then ok; else bad "$1" out; fi; }
refused() { # refused WHAT CODE PATTERN COMMAND…
    "${@:4}" >out 2>err
    local code=$?
    if [ $code -eq "$2" ] && grep -qE -- "$3" err; then ok; else bad "$1: exit $code" err; fi
}

opt=$root/tests/golden/families/opt
check "old pickle to safetensors" "$textgen" export "$root/tests/golden/torch/opt_bin" one
check "shards of transposed tensors to one file" "$textgen" export "$root/tests/golden/torch/opt_shards" two
check "safetensors again" "$textgen" export "$opt" three
check "the same numbers from both" cmp one/model.safetensors two/model.safetensors
check "and from safetensors" cmp one/model.safetensors three/model.safetensors
"$eval" "$opt/value_head.safetensors" theirs && "$eval" three/value_head.safetensors ours
check "a value head comes along" cmp ours theirs
check "shards" "$textgen" export "$opt" shards --shard-size 4KB
check "an index" test -e shards/model.safetensors.index.json
check "no whole file beside shards" test ! -e shards/model.safetensors
for f in shards/model-*.safetensors; do check "$f within the size" test "$(stat -c %s "$f")" -lt 8000; done
check "shards merged" "$textgen" export shards merged
check "to what they were" cmp merged/model.safetensors one/model.safetensors
check "bf16" "$textgen" export "$opt" half --dtype bf16
check "bf16 is half as large" test "$(stat -c %s half/model.safetensors)" -lt "$(($(stat -c %s one/model.safetensors) - 5000))"
check "bf16 kept" "$textgen" export half half2
check "the same bf16" cmp half/model.safetensors half2/model.safetensors
check "bf16 in config.json" grep -q bfloat16 half/config.json
check "bf16 widened" "$textgen" export half wide --dtype f32
check "narrowed again it is the same" "$textgen" export wide half3 --dtype bf16
check "bit for bit" cmp half3/model.safetensors half/model.safetensors
check "summary" "$textgen" export --summary half
said "what it is" 'family +opt'
said "its type" 'stored as +BF16, .* in 2 files'
check "dry run" "$textgen" export "$opt" nothing --dry-run --shard-size 4000
said "what it would do" 'would write nothing: F32, [0-9]+ weight files'
check "writes nothing" test ! -e nothing

check "a judge" "$textgen" export "$root/tests/golden/encoders/gpt2-labels" judge
check "what it says of the head it had stays" grep -q '"tie_word_embeddings": true' judge/config.json
sed '/tie_word_embeddings/d' judge/config.json >silent.json && mv silent.json judge/config.json
check "a judge that says nothing of it" "$textgen" export judge silent
check "nor does its copy" test "$(grep -c tie_word_embeddings silent/config.json)" -eq 0

cat >ppo.yml <<YML
tokenizer: {model_name: textgen/tiny}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 6, prompt: '<|endoftext|>'}}
env: {n_envs: 4, args: {max_prompt_length: 4, max_episode_length: 6, terminate_on_eos: true}}
alg:
  id: ppo
  args: {n_steps: 8, batch_size: 16, learning_rate: 0.003, n_epochs: 1}
  kl_div: {coeff: 0.05, target_kl: 0.2}
  policy:
    id: causal_lm_actor_critic_policy
    args: {model_name: textgen/tiny, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 6}}
train_evaluation: {eval_batch_size: 4, n_iters: 2, eval_every: 5, save_every: 1, metrics: []}
seed: 5
YML
if "$textgen" train ppo.yml --run-dir run --workers 1 >log 2>&1; then ok; else bad "a run" log; fi
last=run/checkpoints/$(cd run/checkpoints && ls -d checkpoint_* | sort -V | tail -n 1)
check "a run's model" "$textgen" export run from-run
check "is that model" cmp from-run/model.safetensors run/model/model.safetensors
check "with its tokenizer" cmp from-run/tokenizer.json run/model/tokenizer.json
check "a checkpoint" "$textgen" export "$last" from-checkpoint
check "of the last iteration is the run's model" cmp from-checkpoint/model.safetensors run/model/model.safetensors
check "with its critic" test -e from-checkpoint/value/value_head.safetensors
check "an export of it" "$textgen" export from-checkpoint again
check "has the critic too" diff -r from-checkpoint again
check "in another type" "$textgen" export from-checkpoint again-half --dtype bf16
check "that is the critic's too" grep -q bfloat16 again-half/value/config.json
cp -r from-checkpoint lame && chmod -R u+w lame && rm lame/value/model.safetensors
refused "a folder whose critic has no weights" 66 'lame/value: no weights' "$textgen" export lame x
check "leaves nothing" test ! -e x
cp -r from-checkpoint over && check "a model over a checkpoint" "$textgen" export "$opt" over --overwrite
check "leaves no critic of another" test ! -e over/value
cp -r "$last" spoilt && printf x >spoilt/value.safetensors && cp -r from-checkpoint half-over
refused "a critic that cannot be read" 65 'value.safetensors' "$textgen" export spoilt half-over --overwrite --base textgen/tiny
check "leaves the old model and its critic as they were" diff -r from-checkpoint half-over
refused "where there was no model" 65 'value.safetensors' "$textgen" export spoilt half-new --base textgen/tiny
check "none is begun" test ! -e half-new
mkdir -p over/value && touch over/value/notes.txt
check "but what is no critic" "$textgen" export "$opt" over --overwrite
check "stays" test -e over/value/notes.txt
mv run/model gone
check "a run without a model" "$textgen" export run from-newest
check "is its newest checkpoint" cmp from-newest/model.safetensors from-checkpoint/model.safetensors
check "with the tokenizer it began with" test -e from-newest/tokenizer.json
check "and settings by name" "$textgen" export "$last" with-base --base textgen/tiny
check "it generates" sh -c "echo '{\"prompt\": \"1\"}' | '$textgen' generate --model from-newest --jsonl max_new_tokens=2"

refused "a model in the way" 64 'already holds a model; give --overwrite' "$textgen" export "$opt" one
check "overwritten" "$textgen" export "$opt" one --overwrite --shard-size 4KB
cp -r one sharded && touch sharded/model-1-of-2.safetensors
check "shards overwritten by one file" "$textgen" export "$opt" sharded --overwrite
check "no old shards" sh -c '! ls sharded/model-0*'
check "other files stay" test -e sharded/model-1-of-2.safetensors
# What a killed export leaves must not be the new config.json beside weights of the old model.
cp -r "$root/tests/golden/torch/opt_bin" pickle && cp -r "$root/tests/golden/torch/opt_shards" pickles && cp -r pickle bare && rm bare/config.json
for f in pickle pickles; do
    check "over the weights of torch in $f" "$textgen" export "$opt" $f --overwrite
    check "none of them stay in $f" sh -c "! ls $f/pytorch_model*"
done
refused "weights without settings in the way" 64 'already holds a model; give --overwrite' "$textgen" export "$opt" bare
check "whole file gone" test ! -e one/model.safetensors
"$textgen" export "$opt" old --shard-size 4KB >/dev/null && cp -r old before
short() { (trap '' XFSZ; ulimit -f 3; exec "$textgen" export "$opt" old --overwrite --dtype bf16); }
refused "overwriting without room" 74 'old/incoming.tmp[.0-9]*/.*File too large' short
check "leaves the old model as it was" diff -r before old
killed() { (ulimit -c 0 -f 3; exec "$textgen" export "$opt" old --overwrite --dtype bf16); }
if { killed >out; } 2>/dev/null; then bad "overwriting was not killed" out; else ok; fi
rm -rf old/incoming.tmp.*
check "so does being killed" diff -r before old
rm -f "$work"/old/value_head.safetensors && cp -r old plain && cp "$opt/value_head.safetensors" old
check "overwritten by a model without a value head" "$textgen" export plain old --overwrite --dtype bf16
check "which has none then" test ! -e old/value_head.safetensors -a -z "$(ls old | grep incoming)" -a ! -e old/model.safetensors.index.json
cp -r "$opt" large && printf '\0\120\303\107' | dd of=large/model.safetensors bs=1 seek=$(($(stat -c %s large/model.safetensors) - 4)) conv=notrunc 2>/dev/null # 100000
check "a number too large for f16 is said" sh -c "'$textgen' export large small --dtype f16 2>&1 >/dev/null | grep -q '1 weights are infinite as f16'"
cp -r large nan && printf '\0\0\300\177' | dd of=nan/model.safetensors bs=1 seek=$(($(stat -c %s nan/model.safetensors) - 4)) conv=notrunc 2>/dev/null
check "a number that is none is said" sh -c "'$textgen' export nan nan2 2>&1 >/dev/null | grep -q 'nan/model.safetensors: tensor .* is NaN; expected finite numbers'"
check "and kept" sh -c '! cmp -s nan/model.safetensors large/model.safetensors && test -e nan2/model.safetensors'
check "not where it fits" sh -c "'$textgen' export large wide --dtype bf16 2>&1 >/dev/null | grep -c infinite | grep -qx 0"
mkdir -p over/model.safetensors.index.json occupied/vocab.json && cp -r over over-before
refused "a folder in the place of an index" 74 'over/model.safetensors.index.json: is a folder in the place of a file' "$textgen" export large over --overwrite --shard-size 4KB
check "leaves the old model whole" diff -r over-before over
refused "a folder in the place of a tokenizer's file" 74 'occupied/vocab.json: is a folder in the place of a file' "$textgen" export run occupied
check "leaves what was there" test "$(find occupied)" = "$(printf 'occupied\noccupied/vocab.json')"
echo '{}' >wide/tokenizer.json && : >wide/merges.txt && echo kept >wide/notes.txt
check "over a folder with a tokenizer" "$textgen" export "$opt" wide --overwrite
check "which goes, and nothing else" test ! -e wide/tokenizer.json -a ! -e wide/merges.txt -a -e wide/notes.txt
cp -r "$root/tests/golden/families/gpt_neox" legacy && rm -f legacy/generation_config.json
sed -i '1s/{/{"num_beams": 3, "eos_token_id": [5, 6], "length_penalty": 0.6666666666666666, "bad_words_ids": [[7]],/; s/"eos_token_id": [0-9]*,//' legacy/config.json
check "generation keys of an old folder" "$textgen" export legacy renewed
for key in '"num_beams": 3' '"length_penalty": 0.6666666666666666' '"bad_words_ids"' '5,$' '6$'; do
    check "$key is where it is looked for" grep -q "$key" renewed/generation_config.json
done
check "and the numbers of config.json have their digits" grep -q '"length_penalty": 0.6666666666666666' renewed/config.json
# what lies beside, or inside, is not ours
mkdir -p mine.tmp/sub wide/incoming.tmp && echo kept | tee mine.tmp/sub/file >wide/incoming.tmp/file && echo kept >file.tmp
check "beside a folder with the name of a temporary one" "$textgen" export "$opt" mine
check "which stays as it was" test "$(cat mine.tmp/sub/file)" = kept -a -e mine/model.safetensors
check "beside a file with such a name" "$textgen" export "$opt" file
check "which stays too" test "$(cat file.tmp)" = kept -a -e file/model.safetensors
check "into a folder with such a folder" "$textgen" export "$opt" wide --overwrite
check "which stays as well" test "$(cat wide/incoming.tmp/file)" = kept
(cd "$work" && exec "$textgen" export "$opt" deep/er/model >out 2>err) && ok || bad "parents of a new folder" err
check "nothing else is left" test "$(ls deep/er)" = model -a -z "$(ls | grep '[.]tmp[.]')"
# a signal at any moment: all of it is there, or nothing
"$root/$BUILD/tests/make-model" heavy '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 256, "n_head": 2, "n_layer": 1,
  "n_positions": 32, "vocab_size": 100000, "activation_function": "gelu_new"}' "$root/tests/golden/env/tokenizer" 2>err || bad "a heavy model" err
for wait in 0.01 0.02 0.03 0.04 0.06 0.08; do
    timeout -s TERM $wait "$textgen" export heavy stopped --dtype bf16 >out 2>err
    case "$(ls -d stopped* 2>/dev/null)" in
    '') ok ;;
    stopped) check "stopped after $wait s, and whole" "$textgen" export --summary stopped ;;
    *) bad "stopped after $wait s: $(ls -d stopped*)" err ;;
    esac
    rm -rf stopped*
done
cp -r "$opt" shared && chmod u+w shared/* # while another process writes there
exec 9<shared && flock -n 9 || bad "cannot lock a folder"
refused "a folder that another process writes into" 69 'shared: another process is writing' "$textgen" export heavy shared --overwrite 9<&-
exec 9<&-
check "which stays as it was" cmp shared/model.safetensors "$opt/model.safetensors"
check "afterwards" "$textgen" export heavy shared --overwrite
# a model that appears in OUT while an export looks at its own: here it waits for room in a pipe that is full
mkfifo full && exec 8<>full && head -c 65536 /dev/zero >&8
"$textgen" export "$opt" faster >&8 2>err 9<&- &
export_pid=$!
sleep 0.5
cp -r judge faster && head -c 65536 <&8 >/dev/null
wait $export_pid
is "a model that came in the meantime" "64 1" "$? $(grep -c 'faster: already holds a model; give --overwrite' err)"
exec 8<&-
check "stays" diff -r judge faster
refused "onto itself" 64 'is the source' "$textgen" export one one/ --overwrite
refused "onto a file" 64 'is a file; name a folder' "$textgen" export one one/config.json
refused "settings of another model" 64 '--base is for checkpoints: one is a model' "$textgen" export one x --base textgen/tiny
refused "a folder of something else" 66 'expected a model .*, a run or a checkpoint, found none' "$textgen" export deep x
refused "no target" 64 'folder to write is missing' "$textgen" export one
refused "an empty target" 64 'folder to write is missing' "$textgen" export one ''
refused "a wrong type" 64 'expected f32, bf16, f16 or keep' "$textgen" export one x --dtype int3
refused "a wrong size" 64 'expected a size' "$textgen" export one x --shard-size big
refused "nothing there" 66 'nowhere' "$textgen" export nowhere x
cp -r "$opt" broken && rm -f broken/generation_config.json && mkfifo broken/generation_config.json
refused "a pipe in place of settings" 66 'generation_config.json: is not a file' timeout 20 "$textgen" export broken x
refused "a pipe, when generating" 66 'generation_config.json: is not a file' timeout 20 "$textgen" generate --model broken --jsonl
rm broken/generation_config.json && echo '{"top_k": ' >broken/generation_config.json
refused "broken settings" 65 'broken/generation_config.json:[0-9]+: bad JSON' "$textgen" export broken x
check "leave nothing" test ! -e x -a -z "$(ls | grep '^x')"
cp -r "$root/tests/golden/torch/opt_shards" damaged && chmod u+w damaged/*
shard=damaged/pytorch_model-00002-of-00002.bin && at=$(grep -abo '/data/2' $shard | head -n 1 | cut -d: -f1) # in its own header; what it stores begins behind
printf '\252' | dd of=$shard bs=1 seek=$((at + 90)) conv=notrunc 2>/dev/null
check "a shard with a damaged byte" sh -c "! cmp -s $shard '$root/tests/golden/torch/opt_shards/${shard#*/}'"
refused "a damaged byte in an archive" 65 "$shard: tensor .*: the file is damaged, take another copy" "$textgen" export damaged x
check "leaves nothing" test ! -e x -a -z "$(ls | grep '^x')"
refused "neither is it used" 65 "$shard: tensor .*: the file is damaged, take another copy" sh -c "echo '{\"ids\": [1, 2]}' | '$textgen' logprob --model damaged --jsonl"
mkdir evil && cp "$opt/config.json" evil && cp "$root/tests/golden/torch/hostile_runs.bin" evil/pytorch_model.bin
refused "a pickle that runs something" 65 'posix.system' "$textgen" export evil x
check "leaves nothing" test ! -e x -a -z "$(ls | grep '^x')"
finish
