#!/bin/bash
# The commands that read lines and print results, with streams that are closed, full or cut off, and with lines and options that are wrong:
# results go to stdout, everything else to stderr, and what could not be read or written is never a success.
. tests/support/script.sh streams
learner=$bin/textgen-learner env=$bin/textgen-env
tiny=$PWD/configs/models/tiny golden=$PWD/tests/golden config=$PWD/configs/increasing_numbers.yml
cd "$work" || exit 70
export TEXTGEN_LOG=warn LC_ALL=C.UTF-8
# said NAME CODE WANTED-CODE PATTERN: what the command before wrote to err, one line; no pattern: nothing.
said() {
    local why=
    [ "$2" = "$3" ] || why="exit code $2, expected $3"
    if [ -n "$4" ]; then
        [ "$(wc -l <err)" -eq 1 ] || why="$why; $(wc -l <err) lines on stderr, expected 1"
        grep -qE -- "$4" err || why="$why; stderr does not match: $4"
    elif [ -s err ]; then
        why="$why; stderr is not empty"
    fi
    if [ -z "$why" ]; then ok; return; fi
    failed=$((failed + 1))
    echo "  $1: $why"
    head -n 3 err | sed 's/^/    | /'
}

same() { if [ "$2" = "$3" ]; then ok; else failed=$((failed + 1)); echo "  $1: \"$2\" is not \"$3\""; fi; }

echo '{"ids": [5, 6]}' >ids
for closed in "generate --model $tiny" "generate --jsonl --model $tiny" "logprob --model $tiny" "classify --model $golden/encoders/bert" \
    "classify --jsonl --model $golden/encoders/bert"; do
    # shellcheck disable=SC2086
    timeout 20 "$textgen" $closed <&- >out 2>err
    said "no stdin: ${closed%% --model*}" $? 74 'cannot read line 1 of the input: Bad file descriptor'
done

for full in "$textgen list" "$textgen --help" "$textgen --version" "$textgen help train" "$textgen check --schema-only $config" "$textgen check --schema-only $config $config" \
    "$textgen generate --jsonl --model $tiny max_new_tokens=2" "$textgen generate --help" "$textgen logprob --model $tiny" "$textgen export --summary $tiny" \
    "$textgen classify --jsonl --model $golden/encoders/bert" "$learner --help" "$learner --version" "$learner list" "$env --version" "$env list"; do
    timeout 20 $full <ids >/dev/full 2>err
    said "a full disk: $full" $? 74 'cannot write to standard output: No space left on device'
done
"$textgen" list >&- 2>err
said "no stdout" $? 74 'cannot write to standard output: Bad file descriptor'
for cut in "list" "--help" "generate --model $tiny max_new_tokens=2"; do
    # shellcheck disable=SC2086
    { yes 'The box' | head -n 300 | "$textgen" $cut 2>err; echo "${PIPESTATUS[2]}" >code; } | true
    code=$(cat code)
    [ "$code" = 0 ] && code=141 # all of it was written before the reader went
    said "a reader that is gone: $cut" "$code" 141 ''
done

# A file that is written must not get the number of a closed stream, and with it the lines meant for that.
"$textgen" export "$tiny" whole >out 2>err
said "all streams are open" $? 0 ''
"$textgen" export "$tiny" quiet <&- 2>&- >out
said "only stdout is open" $? 0 ''
diff -r whole quiet >out 2>&1
said "the files are the same" $? 0 ''
cat >c.yml <<YML
tokenizer: {model_name: $tiny}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 6, prompt: '<|endoftext|>'}}
env: {n_envs: 4, args: {max_prompt_length: 4, max_episode_length: 6, terminate_on_eos: true}}
alg:
  id: ppo
  args: {n_steps: 8, batch_size: 16, n_epochs: 1}
  kl_div: {coeff: 0.05}
  policy: {id: causal_lm_actor_critic_policy, args: {model_name: $tiny, generation_kwargs: {do_sample: true, max_new_tokens: 6}}}
train_evaluation: {eval_batch_size: 4, n_iters: 1, eval_every: 5, metrics: []}
YML
"$textgen" train c.yml --run-dir open >out 2>err </dev/null
code=$?
: >err
said "a run" $code 0 ''
"$textgen" train c.yml --run-dir closed <&- >&- 2>&-
said "a run without streams" $? 0 ''
for f in model/model.safetensors rollout_info.jsonl training_info.jsonl; do cmp open/$f closed/$f >out 2>&1; said "$f of a run without streams" $? 0 ''; done

printf '{"ids": [5]}\n\n{"ids": "x"}\n' >lines
"$textgen" generate --jsonl --model "$tiny" max_new_tokens=2 <lines >out 2>err
said "generate: bad lines" $? 65 '^textgen generate: 2 of 3 lines have no result: see "error"'
"$textgen" logprob --model "$tiny" <lines >out 2>err
said "logprob: bad lines" $? 65 '^textgen logprob: 2 of 3 lines'
same "an empty line is called so" "$(grep -c 'line 2: expected a JSON value, found an empty line' out)" 1
"$textgen" classify --jsonl --model "$golden/encoders/bert" <lines >out 2>err
said "classify: bad lines" $? 65 '^textgen classify: 2 of 3 lines'
same "every line has an answer" "$(wc -l <out)" 3
printf 'The box\r\n' | "$textgen" generate --jsonl --model "$tiny" >out 2>err
said "text for JSON" $? 65 '1 of 1 lines'
same "line ends of Windows" "$(printf 'The box\r\n' | "$textgen" generate --model "$tiny" max_new_tokens=5)" \
    "$(printf 'The box\n' | "$textgen" generate --model "$tiny" max_new_tokens=5)"

for threads in -1 1025 4294967297; do
    for command in generate logprob classify; do
        "$textgen" $command --model "$tiny" --threads "$threads" <ids >out 2>err
        said "$command: $threads threads" $? 64 "--threads: expected a whole number from 0 .* to 1024, found $threads"
    done
done
"$textgen" classify --jsonl --normalize --model "$golden/encoders/bert" <ids >out 2>err
said "lengths of no vectors" $? 64 '--normalize is for vectors: give --embed'
"$textgen" generate --model "$work/ids" </dev/null >out 2>err
said "a file for a model" $? 66 'looked in: .*/ids \(is a file\)'
cp -r "$golden/families/mbart" m && : >m/sentencepiece.bpe.model
"$textgen" generate --model m </dev/null >out 2>err
said "any tokenizer of the folder is opened" $? 65 'sentencepiece.bpe.model'
"$OLDPWD/$BUILD/tests/make-model" narrow '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 32,
  "vocab_size": 100, "activation_function": "gelu_new"}' "$tiny"
echo 'The box' | "$textgen" generate --model narrow >out 2>err
said "a tokenizer of another model" $? 65 'line 1: token id 265 of the text is outside the model.s vocabulary of 100: the folder has the tokenizer of another model'
# what a message tells to run does run
for hint in $(grep -rhoE 'textgen list [a-z]+' "$OLDPWD"/learner "$OLDPWD"/env-server --include='*.c' | awk '{print $3}' | sort -u); do
    "$textgen" list "$hint" >out 2>err
    said "textgen list $hint" $? 0 ''
done
finish
