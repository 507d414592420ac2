#!/bin/bash
# textgen-env as a process: both ways to connect, real sockets, bad peers, deaths on both sides, bad configs.
set -u
BUILD=${BUILD:-build}
env=$BUILD/textgen-env client=$BUILD/tests/env-client
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $1"; [ $# -lt 2 ] || sed 's/^/    /' "$2" | tail -n 20; }
check() { if eval "$2"; then ok; else bad "$1 ($2)" "${3:-/dev/null}"; fi; }

# wait_for FILE TEXT: until the text is in the file, at most 20 s.
wait_for() { for _ in $(seq 400); do grep -q -- "$2" "$1" 2>/dev/null && return 0; sleep 0.05; done; return 1; }
# gone PID: until the process is gone, at most 20 s.
gone() { for _ in $(seq 400); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.05; done; return 1; }

config=$tmp/c.yml
cat >"$config" <<YAML
tokenizer: {model_name: tests/golden/env/tokenizer}
reward_fn: {id: increasing_numbers, args: {min_tokens: 4}}
datapool: {id: dummy_pool, args: {prompt: "Hello the", n_samples: 10}}
env: {n_envs: 4, args: {max_prompt_length: 8, max_episode_length: 20, terminate_on_eos: true}}
alg: {id: ppo}
train_evaluation: {metrics: [{id: dates}, {id: increasing_numbers, args: {min_tokens: 4}}]}
YAML

# start NAME ARGS…: a worker; its pid in $pid, output in $tmp/NAME.out and .err.
start() {
    local name=$1; shift
    "$env" --config "$config" "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" &
    pid=$!
    pids+=("$pid")
    wait_for "$tmp/$name.out" '^textgen-env ready' || bad "$name did not become ready" "$tmp/$name.err"
}
address() { sed -n 's/^textgen-env ready [a-z]* \([^ ]*\) .*/\1/p' "$tmp/$1.out"; }

# ---- listening on ipc and on tcp: the same episodes, token by token or in runs ---------------------
start a --bind "ipc://$tmp/a.sock"
first=$pid
check 'one ready line' '[ "$(wc -l <"$tmp/a.out")" = 1 ]' "$tmp/a.out"
start b --bind 'tcp://127.0.0.1:*'
second=$pid
timeout 60 "$client" "ipc://$tmp/a.sock" episodes 25 5 1 >"$tmp/one.txt" 2>"$tmp/one.err"; check 'episodes over ipc' "[ $? = 0 ]" "$tmp/one.err"
timeout 60 "$client" "$(address b)" episodes 25 5 7 >"$tmp/two.txt" 2>"$tmp/two.err"; check 'episodes over tcp' "[ $? = 0 ]" "$tmp/two.err"
check '25 episodes' '[ "$(wc -l <"$tmp/one.txt")" = 25 ]'
check 'two workers, runs of 1 and of 7: the same transcript' 'cmp -s "$tmp/one.txt" "$tmp/two.txt"' "$tmp/two.txt"
timeout 60 "$client" "ipc://$tmp/a.sock" episodes 25 6 1 >"$tmp/three.txt" 2>/dev/null
check 'another seed: another transcript' '! cmp -s "$tmp/one.txt" "$tmp/three.txt"'
for scenario in identity questions "garbage ipc://$tmp/a.sock"; do
    # shellcheck disable=SC2086
    timeout 60 "$client" "ipc://$tmp/a.sock" $scenario >"$tmp/s.txt" 2>"$tmp/s.err"; check "$scenario" "[ $? = 0 ]" "$tmp/s.txt"
done
check 'alive after garbage' "kill -0 $first"

# ---- dialling out: the same again ------------------------------------------------------------------
timeout 60 "$client" --listen "ipc://$tmp/l.sock" episodes 25 5 3 >"$tmp/four.txt" 2>"$tmp/four.err" &
listener=$!
start d --connect "ipc://$tmp/l.sock"
third=$pid
wait $listener; check 'a worker that dials out' "[ $? = 0 ]" "$tmp/four.err"
check 'and gives the same transcript' 'cmp -s "$tmp/one.txt" "$tmp/four.txt"' "$tmp/four.txt"
timeout 60 "$client" --listen "ipc://$tmp/l.sock" episodes 25 5 3 >"$tmp/five.txt" 2>"$tmp/five.err"
check 'it dials again when the learner is back' 'cmp -s "$tmp/one.txt" "$tmp/five.txt"' "$tmp/five.err"
kill $third; wait $third; check 'SIGTERM of a dialling worker' "[ $? = 0 ]" "$tmp/d.err"

# ---- a client dies, and comes back ---------------------------------------------------------------------
timeout 60 "$client" "ipc://$tmp/a.sock" restore >"$tmp/restore.txt" 2>"$tmp/restore.err"; check 'episodes from a log' "[ $? = 0 ]" "$tmp/restore.err"
check 'restored: the same end' '[ "$(sort -u "$tmp/restore.txt" | wc -l)" = 1 ] && [ "$(wc -l <"$tmp/restore.txt")" = 2 ]' "$tmp/restore.txt"
start k --bind "ipc://$tmp/k.sock" --lease-ms 60000
fifth=$pid
"$client" "ipc://$tmp/k.sock" hold >"$tmp/hold.txt" 2>/dev/null &
holder=$!
pids+=($holder)
wait_for "$tmp/hold.txt" connected
kill -9 $holder
wait_for "$tmp/k.err" 'kept for its lease'; check 'the session of a killed client is kept' "[ $? = 0 ]" "$tmp/k.err"
read -r _ _ session _ token <"$tmp/hold.txt"
timeout 60 "$client" "ipc://$tmp/k.sock" resume "ipc://$tmp/k.sock" "$session" "$(printf %032d 0)" >"$tmp/no.txt" 2>&1; check 'not with another token' "[ $? != 0 ]" "$tmp/no.txt"
timeout 60 "$client" "ipc://$tmp/k.sock" resume "ipc://$tmp/k.sock" "$session" "$token" >"$tmp/resume.txt" 2>"$tmp/resume.err"; check 'it is resumed' "[ $? = 0 ]" "$tmp/resume.err"
check 'and its episode ends as without the interruption' '[ "$(cat "$tmp/resume.txt")" = "$(head -n 1 "$tmp/restore.txt")" ]' "$tmp/resume.txt"
check 'the token is in no log' "! grep -q '$token' '$tmp/k.err' '$tmp/k.out'"
kill $fifth; wait $fifth
start n --bind "ipc://$tmp/n.sock" --lease-ms 0
"$client" "ipc://$tmp/n.sock" hold >"$tmp/hold2.txt" 2>/dev/null &
holder=$!
pids+=($holder)
wait_for "$tmp/hold2.txt" connected
kill -9 $holder
wait_for "$tmp/n.err" 'closed: disconnected'; check 'without a lease it ends' "[ $? = 0 ]" "$tmp/n.err"
kill $pid; wait $pid
timeout 60 "$client" "ipc://$tmp/a.sock" episodes 3 5 1 >"$tmp/six.txt" 2>&1; check 'the next client is served' "[ $? = 0 ]" "$tmp/six.txt"

# ---- a worker dies and comes back ----------------------------------------------------------------------
timeout 60 "$client" "ipc://$tmp/a.sock" stay >"$tmp/stay.txt" 2>&1 &
stayer=$!
wait_for "$tmp/stay.txt" connected
kill -9 $first
wait $stayer; check 'a client sees that its worker was killed' "[ $? = 0 ]" "$tmp/stay.txt"
start a2 --bind "ipc://$tmp/a.sock"
fourth=$pid
timeout 60 "$client" "ipc://$tmp/a.sock" episodes 25 5 2 >"$tmp/seven.txt" 2>&1
check 'a worker started anew gives the same transcript' 'cmp -s "$tmp/one.txt" "$tmp/seven.txt"' "$tmp/seven.txt"

# ---- drain -----------------------------------------------------------------------------------------------
timeout 60 "$client" "ipc://$tmp/a.sock" stay >"$tmp/stay2.txt" 2>&1 &
stayer=$!
wait_for "$tmp/stay2.txt" connected
kill $fourth; wait $fourth; check 'SIGTERM: exit 0' "[ $? = 0 ]" "$tmp/a2.err"
wait $stayer; check 'SIGTERM: the client is told' "[ $? = 0 ] && grep -q '^closed: Bye' '$tmp/stay2.txt'" "$tmp/stay2.txt"
kill -INT $second; wait $second; check 'SIGINT: exit 0' "[ $? = 0 ]" "$tmp/b.err"

# ---- the parent dies ---------------------------------------------------------------------------------------
mkfifo "$tmp/pipe"
sleep 600 >"$tmp/pipe" &
parent=$!
TEXTGEN_PARENT_FD=7 "$env" --config "$config" --bind "ipc://$tmp/p.sock" 7<"$tmp/pipe" >"$tmp/p.out" 2>"$tmp/p.err" &
child=$!
pids+=($child $parent)
wait_for "$tmp/p.out" '^textgen-env ready' || bad 'a worker with a parent' "$tmp/p.err"
sleep 0.2
check 'it lives with its parent' "kill -0 $child"
kill -9 $parent
check 'it ends with its parent' "gone $child" "$tmp/p.err"

# ---- what cannot start ---------------------------------------------------------------------------------------
# refuse EXIT TEXT ARGS…: one line on stderr that holds TEXT, nothing on stdout.
refuse() {
    local want=$1 text=$2; shift 2
    timeout 20 "$env" "$@" >"$tmp/r.out" 2>"$tmp/r.err"; local code=$?
    if [ $code = "$want" ] && [ ! -s "$tmp/r.out" ] && [ "$(wc -l <"$tmp/r.err")" = 1 ] && grep -qF -- "$text" "$tmp/r.err"; then ok
    else bad "$* (exit $code, want $want: $text)" "$tmp/r.err"; fi
}
bind=(--bind "ipc://$tmp/r.sock")
printf 'tokenizer: [\n' >"$tmp/broken.yml"
printf 'bad\n' >"$tmp/bad.jsonl"
: >"$tmp/empty.jsonl"
refuse 64 '--config'                  "${bind[@]}"
refuse 64 '--bind ADDRESS'            --config "$config"
refuse 64 '--bind ADDRESS'            --config "$config" "${bind[@]}" --connect ipc:///x
refuse 64 'did you mean --bind'       --config "$config" --bnd ipc:///x
refuse 64 '--threads'                 --config "$config" "${bind[@]}" --threads 65
refuse 64 'whole number'              --config "$config" "${bind[@]}" --capacity many
refuse 64 'unknown kind'              list policies
refuse 64 '--split'                   data "$config" --split dev
refuse 64 'nothing to compute'        score
refuse 66 "$tmp/none.yml"             --config "$tmp/none.yml" "${bind[@]}"
refuse 78 'broken.yml:'               --config "$tmp/broken.yml" "${bind[@]}"
refuse 78 "did you mean 'increasing_numbers'" --config "$config" "${bind[@]}" reward_fn.id=increasing_number
refuse 66 'model "no/such" was not found' --config "$config" "${bind[@]}" reward_fn.id=bleurt 'reward_fn.args={checkpoint: no/such}'
refuse 66 'IMDB reviews, train split: not found' check "$config" datapool.id=imdb 'datapool.args={seed: 1, path: /nowhere}'
refuse 78 "train_evaluation.metrics.0.id: 'summaCZS' is known but not built" check "$config" 'train_evaluation.metrics=[{id: summaCZS}]'
refuse 78 'reward_fn.args.min_tokens' --config "$config" "${bind[@]}" reward_fn.args.min_tokens=few
refuse 78 'min_tokens'                --config "$config" "${bind[@]}" 'reward_fn.args={}'
refuse 78 'env.args.max_episode_lenth' --config "$config" "${bind[@]}" env.args.max_episode_lenth=4
refuse 78 'env.args.max_episode_length' --config "$config" "${bind[@]}" env.args.max_episode_length=0
refuse 78 'env.args.prompt_truncation_side' --config "$config" "${bind[@]}" env.args.prompt_truncation_side=middle
refuse 78 'context_start_token'       --config "$config" "${bind[@]}" env.args.context_start_token=265
refuse 78 'max_prompt_length'         --config "$config" "${bind[@]}" tokenizer.model_name=tests/golden/env/tokenizer-eos env.args.max_prompt_length=2
refuse 78 'tokenizer.model_name'      --config "$config" "${bind[@]}" 'tokenizer={}'
refuse 66 'no/such/model'             --config "$config" "${bind[@]}" tokenizer.model_name=no/such/model
refuse 78 'needs path'                --config "$config" "${bind[@]}" datapool.id=jsonl 'datapool.args={}'
refuse 66 "$tmp/none.jsonl"           --config "$config" "${bind[@]}" datapool.id=jsonl "datapool.args={path: $tmp/none.jsonl}"
refuse 65 'bad.jsonl:1:'              --config "$config" "${bind[@]}" datapool.id=jsonl "datapool.args={path: $tmp/bad.jsonl}"
refuse 65 'no samples'                --config "$config" "${bind[@]}" datapool.id=jsonl "datapool.args={path: $tmp/empty.jsonl}"
refuse 78 'datapool.args.template'    --config "$config" "${bind[@]}" datapool.id=jsonl "datapool.args={path: $tmp/bad.jsonl, template: '{'}"
refuse 78 'expected a list'           --config "$config" "${bind[@]}" train_evaluation.metrics=dates
refuse 77 '--insecure'                --config "$config" --bind 'tcp://0.0.0.0:*'
refuse 65 'bad.jsonl:1:'              score --metric dates --jsonl "$tmp/bad.jsonl"
refuse 78 'min_tokens'                score --metric increasing_numbers --jsonl "$tmp/bad.jsonl"
refuse 78 'not built'                 score --metric summaCConv --jsonl "$tmp/bad.jsonl"

# ---- the commands --------------------------------------------------------------------------------------------
printf '{"prediction": "1 2 3 2020-01-02"}\n{"prediction": "none", "references": ["x"], "prompt": "p", "meta": {"k": 1}}\n' >"$tmp/texts.jsonl"
"$env" score --metric dates,increasing_numbers --reward sentences_with_dates --jsonl "$tmp/texts.jsonl" --json increasing_numbers.min_tokens=20 >"$tmp/score.json"
check 'score' "grep -qF '\"synthetic/dates_in_text\": {\"corpus\": 0.5, \"samples\": [1.0, 0.0]}' '$tmp/score.json'" "$tmp/score.json"
check 'score of a reward' "grep -qF '\"rewards\": {\"sentences_with_dates\": [1.0, 0.0]}' '$tmp/score.json'" "$tmp/score.json"
"$env" data "$config" --n 2 --split val --jsonl >"$tmp/data.txt"
check 'data' "[ \"\$(head -n 1 '$tmp/data.txt')\" = '{\"id\": 0, \"prompt\": \"Hello the\", \"references\": [], \"meta\": null}' ] && [ \$(wc -l <'$tmp/data.txt') = 2 ]" "$tmp/data.txt"
"$env" data "$config" --limit 1 --json >"$tmp/data.txt"
check 'data in tokens' "grep -qE '\"tokens\": [0-9]+, \"kept\": [0-9]+, \"truncated\": false' '$tmp/data.txt'" "$tmp/data.txt"
"$env" data "$config" --limit 1 --json env.args.max_prompt_length=1 env.args.prompt_truncation_side=right >"$tmp/data.txt"
check 'data cut' "grep -qF '\"kept\": 1, \"truncated\": true, \"truncation_side\": \"right\"' '$tmp/data.txt'" "$tmp/data.txt"
"$env" data "$config" --limit 1 env.args.max_prompt_length=1 >"$tmp/data.txt"
check 'data cut, as text' "grep -q 'tokens cut …\]' '$tmp/data.txt' && grep -q '1 of 10 samples, prompts of' '$tmp/data.txt'" "$tmp/data.txt"
"$env" check "$config" env.n_envs=9 >"$tmp/check.json"
check 'check' "grep -qF '\"n_envs\": 9, \"args\": {\"max_episode_length\": 20' '$tmp/check.json'" "$tmp/check.json"
for kind in datapool reward metric; do
    "$env" list --json $kind >"$tmp/list.json"
    check "list $kind" "[ \$(grep -c '\"kind\": \"$kind\"' '$tmp/list.json') -ge 14 ] && grep -q '\"built\": true' '$tmp/list.json'" "$tmp/list.json"
done
for command in '' check list data score; do
    # shellcheck disable=SC2086
    "$env" $command --help >"$tmp/help.txt"; check "help of $command" "[ $? = 0 ] && [ -s '$tmp/help.txt' ]"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
