#!/bin/bash
# Weighted rewards of which one is asked of reward workers behind the same broker, under the name that the function has there: its
# questions reach the reward worker and never come back to an environment worker, also while no reward worker is there.
. tests/support/servers.sh

cat >"$work/weighted.yml" <<EOF
tokenizer: {model_name: textgen/tiny}
reward_fn:
  id: weighted
  args:
    rewards:
      - {id: increasing_numbers, weight: 0.5, name: numbers, args: {min_tokens: 4}}
      - {id: remote, weight: 2, name: length, args: {connect: "$front", fn: length, timeout_ms: 60000, deterministic: true}}
datapool: {id: dummy_pool, args: {prompt: "<|endoftext|>", n_samples: 50}}
env: {args: {max_prompt_length: 8, max_episode_length: 6, terminate_on_eos: true}}
alg: {id: ppo}
train_evaluation: {metrics: []}
EOF
config=$work/weighted.yml
judge() { "$bin/tests/judge" dial "$back" ok >/dev/null 2>&1 & judge=$!; }
port=$((20000 + RANDOM % 20000))
# in_flight: calls on the worker's pool now
in_flight() {
    exec 7<>"/dev/tcp/127.0.0.1/$port" || return
    printf 'GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&7
    timeout 5 cat <&7 | sed -n 's/.*"in_flight": \([0-9]*\).*/\1/p'
    exec 7>&-
}

broker
worker --http "127.0.0.1:$port"
judge
model truth --episodes 60 --slots 4
model truth2 --episodes 40 --slots 4 --seed 2
play together --address "$front" --episodes 60 --slots 4
same 'a remote part with the name of its function' together truth $?

# ---- without a reward worker: every step waits, none goes round in circles ------------------------
kill -9 $judge
wait $judge 2>/dev/null
play waiting --address "$front" --episodes 40 --slots 4 --seed 2 &
client=$!
most=0
for i in $(seq 20); do
    sleep 0.1
    n=$(in_flight)
    [ "${n:-0}" -gt "$most" ] && most=$n
done
check "at most as many calls as slots wait for it ($most)" $((most < 1 || most > 4)) "$work/workers.log"
judge
wait $client
same 'the reward worker comes back and the episodes go on' waiting truth2 $?
kill -9 $judge
finish
