#!/bin/bash
# Training with reward functions outside the program: each kind judges a real run, and each going wrong (R8) is recorded with its
# status, leaves no made-up reward behind, and the run goes on or ends by its policy. The examples of env-server/reward/README.md run.
set -u
BUILD=$(cd "${BUILD:-build}" && pwd)
root=$PWD
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $1"; [ $# -lt 2 ] || sed 's/^/    /' "$2" | tail -n 12; }
check() { if eval "$2"; then ok; else bad "$1 ($2)" "${3:-/dev/null}"; fi; }
wait_for() { for _ in $(seq 400); do grep -q -- "$2" "$1" 2>/dev/null && return 0; sleep 0.05; done; return 1; }

small="env.n_envs=8 alg.args.n_steps=10 alg.args.batch_size=40 alg.args.n_epochs=1 train_evaluation.n_iters=2
    train_evaluation.eval_every=100 train_evaluation.save_every=100 train_evaluation.n_samples_shown=0"
# run NAME OPTION…: a small run; its exit code in $code, what it said in $tmp/NAME.log.
run() {
    local name=$1; shift
    # shellcheck disable=SC2086
    timeout 120 "$BUILD/textgen" train configs/increasing_numbers.yml --workers 2 --run-dir "$tmp/$name" $small "$@" >"$tmp/$name.log" 2>&1
    code=$?
}
# The mean rewards of a run's iterations.
rewards() { sed -n 's/.*"rollout_info\/ep_rew": \([-0-9.e]*\|NaN\).*/\1/p' "$tmp/$1/rollout_info.jsonl"; }

# judge NAME ARGS…: a judge of its own; what it said first in $said.
judge() {
    local name=$1; shift
    "$BUILD/tests/judge" "$@" >"$tmp/$name.judge" 2>&1 &
    pids+=($!)
    disown
    wait_for "$tmp/$name.judge" '^ready' || bad "$name: no judge" "$tmp/$name.judge"
    said=$(sed -n 's/^ready //p' "$tmp/$name.judge")
}
# open KIND MODE: sets $reward to a reward of that kind which behaves so.
open() {
    local kind=$1 mode=$2 more="retries: 0"
    case $mode in never) more="timeout_ms: 400, retries: 0" ;; sleep) more="timeout_ms: 100, retries: 0" ;; esac # it sleeps for 0.4 s
    case $kind in
    plugin) reward="{id: plugin, args: {path: $BUILD/plugin/bad_reward.so, config: {mode: $mode}, $more}}" ;;
    process) reward="{id: process, args: {command: [$BUILD/tests/reward-child, $mode], restarts: 100000, $more}}" ;;
    http) judge "http-$mode" http "$mode"; reward="{id: http, args: {url: \"http://127.0.0.1:$said/score\", $more}}" ;;
    remote) judge "remote-$mode" remote "ipc://$tmp/$mode.sock" "$mode"; reward="{id: remote, args: {fn: length, connect: \"$said\", $more}}" ;;
    esac
}

# ---- each kind judges a run -------------------------------------------------------------------------
for kind in plugin process http remote; do
    open $kind ok
    run "good-$kind" "reward_fn=$reward"
    check "$kind: a run" "[ $code = 0 ]" "$tmp/good-$kind.log"
    check "$kind: rewards are lengths" "[ \"\$(rewards good-$kind | awk '\$1 > 1' | wc -l)\" = 2 ]" "$tmp/good-$kind.log"
done
for kind in process http remote; do
    check "$kind: the same rewards as of the plug-in" "[ \"\$(rewards good-plugin)\" = \"\$(rewards good-$kind)\" ]"
done

# ---- for every token: the parts of an episode sum to its length, and one call has many of them --------------
run dense "reward_fn={id: dense, args: {reward: {id: process, args: {command: [$BUILD/tests/reward-child]}}}}"
check 'dense: a run' "[ $code = 0 ]" "$tmp/dense.log"
check 'dense: the sum is that of the finished text' \
    "paste <(rewards good-plugin) <(rewards dense) | awk 'NR == 1 { d = \$1 - \$2; exit !(d < 1e-6 && d > -1e-6) }'" "$tmp/dense.log"
run tokens "reward_fn={id: process, args: {command: [$BUILD/tests/reward-child], per_token: true}}"
check 'per token: a run' "[ $code = 0 ]" "$tmp/tokens.log"
check 'per token: more than one length for each text' "paste <(rewards good-plugin) <(rewards tokens) | awk 'NR == 1 { exit !(\$2 > 2 * \$1) }'"
requests=$(grep -c 'request [0-9]*$' "$tmp/tokens/workers.log" 2>/dev/null)
check 'per token: one call has the tokens of a step' "[ \"\${requests:-0}\" -gt 0 ] && [ \"\${requests:-0}\" -lt 100 ]" "$tmp/tokens.log"

# ---- R8: each going wrong ends a run that does not allow it, with the status and the reason ---------------
# KIND MODE STATUS REASON
while read -r kind mode status reason; do
    open "$kind" "$mode"
    run "bad-$kind-$mode" "reward_fn=$reward" train_evaluation.on_reward_failure=abort
    check "R8 $kind $mode: the run ends" "[ $code = 69 ]" "$tmp/bad-$kind-$mode.log"
    check "R8 $kind $mode: $status, with its reason" "grep -q 'reward $status: .*$reason' '$tmp/bad-$kind-$mode.log'" "$tmp/bad-$kind-$mode.log"
    check "R8 $kind $mode: no sample was used" "[ ! -s '$tmp/bad-$kind-$mode/rollout_info.jsonl' ]"
done <<LIST
plugin error failed the judge is ill
plugin nan invalid not a finite number
plugin sleep timeout
plugin short invalid without a result
process error failed the judge is ill
process nan invalid not JSON
process never timeout
process short invalid results for
process die failed signal 6
http 500 failed HTTP status 500
http nan invalid not JSON
http never timeout
http short invalid results for
http hangup failed
remote error failed the judge is ill
remote nan invalid not a finite number
remote never timeout
remote short invalid results for
remote die failed lost
LIST

# ---- and one that allows some goes on without those episodes ---------------------------------------------
run odd "reward_fn={id: process, args: {command: [$BUILD/tests/reward-child, odd], max_wait_ms: 20}}" train_evaluation.max_failed_rewards=0.9
check 'half of the rewards fail: the run goes on' "[ $code = 0 ]" "$tmp/odd.log"
check 'half of the rewards fail: they are reported' "grep -q 'this text is ill; the episode is left out' '$tmp/odd.log'" "$tmp/odd.log"
check 'half of the rewards fail: every reward is a length' "[ \"\$(rewards odd | awk '\$1 > 1' | wc -l)\" = 2 ]" "$tmp/odd.log"
run few "reward_fn={id: process, args: {command: [$BUILD/tests/reward-child, odd], max_wait_ms: 20}}" train_evaluation.max_failed_rewards=0.01
check 'more than allowed: the run ends' "[ $code = 69 ] && grep -q max_failed_rewards '$tmp/few.log'" "$tmp/few.log"
check 'no judge is left behind' "! pgrep -f '$BUILD/tests/reward-child' >/dev/null"

# ---- a worker that is killed takes its programs along -----------------------------------------------------
cat >"$tmp/env.yml" <<YAML
tokenizer: {model_name: tests/golden/env/tokenizer}
reward_fn: {id: process, args: {command: [$BUILD/tests/reward-child, ok, mark-$$], concurrency: 3}}
datapool: {id: dummy_pool, args: {prompt: "Hello the", n_samples: 10}}
env: {args: {max_prompt_length: 8, max_episode_length: 20}}
alg: {id: ppo}
train_evaluation: {metrics: []}
YAML
"$BUILD/textgen-env" --config "$tmp/env.yml" --bind "ipc://$tmp/env.sock" >"$tmp/env.out" 2>&1 &
worker=$!
disown
wait_for "$tmp/env.out" '^textgen-env ready'
copies() { pgrep -fc "reward-child ok mark-$$"; }
for _ in $(seq 100); do [ "$(copies)" = 3 ] && break; sleep 0.05; done
check 'three copies run' '[ "$(copies)" = 3 ]' "$tmp/env.out"
kill -9 $worker
for _ in $(seq 100); do [ "$(copies)" = 0 ] && break; sleep 0.05; done
check 'kill -9 of the worker leaves none behind' '[ "$(copies)" = 0 ]'

# ---- groups ----------------------------------------------------------------------------------------------
awk '/<!-- example: ranked.yml -->/ { f = 1 } f && /^```$/ { exit } f && !/^(```|<!--)/' env-server/reward/README.md >"$tmp/ranked.yml"
reward=$(sed -n '/^reward_fn:/,/^train_evaluation:/p' "$tmp/ranked.yml" | sed '$d')
check 'the example of ranked rewards is there' '[ -n "$reward" ]'
sed '/^reward_fn:/,/^$/d' configs/increasing_numbers.yml >"$tmp/groups.yml"
{ printf '%s\n\n' "$reward"; cat "$tmp/groups.yml"; } >"$tmp/g.yml"
groups() {
    local name=$1; shift
    # shellcheck disable=SC2086
    timeout 120 "$BUILD/textgen" train "$tmp/g.yml" --run-dir "$tmp/$name" $small "$@" >"$tmp/$name.log" 2>&1; code=$?
}
groups ranked1 --workers 1 train_evaluation.compare_sample=4
check 'a ranked run' "[ $code = 0 ]" "$tmp/ranked1.log"
check 'places of a group have the mean 0' "[ \"\$(rewards ranked1 | awk '\$1 < 0.3 && \$1 > -0.3' | wc -l)\" = 2 ]" "$tmp/ranked1.log"
groups ranked3 --workers 3 train_evaluation.compare_sample=4
check 'the same with three workers' "cmp -s '$tmp/ranked1/rollout_info.jsonl' '$tmp/ranked3/rollout_info.jsonl'" "$tmp/ranked3.log"
groups alone --workers 1
check 'without groups it says what to do' "[ $code = 78 ] && grep -q compare_sample '$tmp/alone.log'" "$tmp/alone.log"
run ranked-plugin "reward_fn={id: plugin, args: {path: $BUILD/plugin/example_reward.so, ranked: true}}" train_evaluation.compare_sample=4
check 'a plug-in ranks: one of four is the best' "[ $code = 0 ] && rewards ranked-plugin | awk '{ exit !(\$1 > 0.1 && \$1 < 0.4) }'" "$tmp/ranked-plugin.log"

# ---- the examples of the README that need nothing but Python itself ---------------------------------------
example() { awk -v name="$1" '$0 == "<!-- example: " name " -->" { f = 1; next } f && /^```/ { if (body) exit; body = 1; next } f' env-server/reward/README.md; }
for f in judge.py server.py process.yml http.yml plugin.yml; do example $f >"$tmp/$f"; done
cp "$BUILD/plugin/example_reward.so" "$tmp/"
printf '{"prediction": "a b c", "references": ["x"], "prompt": "p"}\n{"prediction": "1 2 3 4 5", "references": [], "prompt": "p"}\n' >"$tmp/texts.jsonl"
# score NAME KIND: the mean of both texts by the example's options.
score() {
    # shellcheck disable=SC2046
    (cd "$tmp" && "$BUILD/textgen-env" score --reward "$2" --jsonl texts.jsonl "$2=$(sed -n 's/^  args: //p' "$1")" 2>"$tmp/$1.err") | awk -v r="$2" '$1 == "reward" && $2 == r { print $3 }'
}
check 'README: plug-in' '[ "$(score plugin.yml plugin)" = 0.400000 ]' "$tmp/plugin.yml.err"
if command -v python3 >/dev/null; then
    check 'README: a program' '[ "$(score process.yml process)" = 0.400000 ]' "$tmp/process.yml.err"
    python3 "$tmp/server.py" 7800 >"$tmp/server.log" 2>&1 &
    pids+=($!)
    disown
    for _ in $(seq 200); do (: </dev/tcp/127.0.0.1/7800) 2>/dev/null && break; sleep 0.05; done
    check 'README: HTTP' '[ "$(score http.yml http)" = 0.400000 ]' "$tmp/server.log"
else
    echo "python3 is not here: its examples were not run"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
