#!/bin/bash
# A reward that never returns: SIGTERM still ends its worker, within --drain-ms and a moment, with a line that says why and the exit
# code of a service that failed; its episodes go on elsewhere with the same results.
. tests/support/servers.sh

# ends PID LIMIT_MS: waits for it; $code is its exit code, 124 when it is still there
ends() {
    local end=$(($(date +%s%N) / 1000000 + $2))
    code=124
    while kill -0 "$1" 2>/dev/null; do
        [ $(($(date +%s%N) / 1000000)) -lt $end ] || return
        sleep 0.05
    done
    wait "$1"
    code=$?
}

cat >"$work/hang.yml" <<EOF
tokenizer: {model_name: textgen/tiny}
reward_fn: {id: plugin, args: {path: $bin/plugin/bad_reward.so, config: {mode: hang}, timeout_ms: 60000}}
datapool: {id: dummy_pool, args: {prompt: "<|endoftext|>", n_samples: 50}}
env: {args: {max_prompt_length: 8, max_episode_length: 6, terminate_on_eos: true}}
alg: {id: ppo}
train_evaluation: {metrics: []}
EOF
config=$work/hang.yml

# ---- a worker that listens, whose only reward hangs ---------------------------------------------
BAD_REWARD_HANGS=1 serve "ipc://$work/alone" --drain-ms 500
check 'the worker starts' $? "$work/workers.log"
alone=$started
play lost --address "ipc://$work/alone" --episodes 2 --slots 2 &
client=$!
sleep 2
kill -TERM $alone
ends $alone 15000
check "it ends although its reward never returns (exit code $code)" $((code != 69)) "$work/workers.log"
grep -q 'given up: a reward or metric hangs' "$work/workers.log"
check 'and says why' $? "$work/workers.log"
kill $client 2>/dev/null
wait $client 2>/dev/null

# ---- twice: at once ------------------------------------------------------------------------------
BAD_REWARD_HANGS=1 serve "ipc://$work/twice" --drain-ms 60000
twice=$started
play lost2 --address "ipc://$work/twice" --episodes 2 --slots 2 &
client=$!
sleep 1
kill -TERM $twice
sleep 1.5 # signals that come together are one stop
kill -TERM $twice
ends $twice 15000
check "a second signal ends it at once (exit code $code)" $((code != 69)) "$work/workers.log"
kill $client 2>/dev/null
wait $client 2>/dev/null

# ---- behind a broker: the episodes go on elsewhere ------------------------------------------------
model truth --episodes 40 --slots 8
broker
export BAD_REWARD_HANGS=1
worker --drain-ms 500
hanging=$started
unset BAD_REWARD_HANGS
play moved --address "$front" --episodes 40 --slots 8 &
client=$!
sleep 2
worker
kill -TERM $hanging
ends $hanging 15000
check "the hanging one of two ends (exit code $code)" $((code != 69)) "$work/workers.log"
wait $client
same 'its episodes end on the other' moved truth $?

# ---- a broker with calls under way that never end -------------------------------------------------
front=ipc://$work/front2 back=ipc://$work/back2
broker --drain-ms 300
leaving=$started
export BAD_REWARD_HANGS=1
worker --drain-ms 100
unset BAD_REWARD_HANGS
play lost3 --address "$front" --episodes 4 --slots 4 &
client=$!
sleep 2
kill -TERM $leaving
ends $leaving 15000
check "a broker ends with calls under way (exit code $code)" $((code != 0)) "$work/broker.log"
kill $client 2>/dev/null
wait $client 2>/dev/null
finish
