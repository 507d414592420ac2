#!/bin/bash
# Real brokers, workers and clients: the episodes played through them equal those played without any server (env-play --local), while
# workers are killed, stopped, drained and replaced and the broker itself is killed and started again.
set -u
BUILD=${BUILD:-build}
bin=$PWD/$BUILD
config=$PWD/configs/increasing_numbers.yml
work=$(mktemp -d /tmp/textgen-broker.XXXXXX)
trap 'kill -CONT $(jobs -p) 2>/dev/null; kill -9 $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
front=ipc://$work/front back=ipc://$work/back
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "  $1"; [ -z "${2:-}" ] || tail -n 15 "$2" | sed 's/^/    | /'; }

# Each puts the new process into $started.
broker() {
    "$bin/textgen-broker" --front "$front" --back "$back" --heartbeat-ms 200 "$@" >>"$work/broker.log" 2>&1 &
    started=$!
}
worker() {
    "$bin/textgen-env" --config "$config" --connect "$back" --heartbeat-ms 200 >>"$work/workers.log" 2>&1 &
    started=$!
}
play() { # play OUT [options]: waits
    "$bin/tests/env-play" --heartbeat-ms 200 --out "$work/$1" "${@:2}" 2>"$work/$1.log"
}
same() { # same WHAT OUT MODEL STATUS
    [ "$4" -eq 0 ] || { bad "$1: env-play ends with $4" "$work/$2.log"; return; }
    head -n "$(wc -l <"$work/$2")" "$work/$3" >"$work/wanted"
    cmp -s "$work/$2" "$work/wanted" && ok || bad "$1: $(diff "$work/$2" "$work/wanted" | head -n 3 | tr '\n' '|')" "$work/$2.log"
}
count() { sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$work/$1.log" | tail -n 1; }

play model1 --local --config "$config" --episodes 6000 || bad "the model cannot be played" "$work/model1.log"
play model2 --local --config "$config" --episodes 400 --seed 2 || bad "the model cannot be played" "$work/model2.log"
cmp -s "$work/model1" "$work/model2" && bad "two seeds give the same episodes" || ok

# A client that comes before broker and workers is served in the end; broker and workers may start in any order.
play early --address "$front" --episodes 400 &
client=$!
worker; w1=$started
sleep 0.2
broker --min-workers 2; b=$started
sleep 0.5
worker; w2=$started
wait $client; same "started backwards" early model1 $?

play plain --address "$front" --episodes 400; same "plain" plain model1 $?
play a --address "$front" --episodes 400 & c1=$!
play b --address "$front" --episodes 400 --seed 2 & c2=$!
wait $c1; same "two clients, first" a model1 $?
wait $c2; same "two clients, second" b model2 $?

# fault WHAT EPISODES: plays while the function `harm` runs again and again.
fault() {
    play "$1" --address "$front" --episodes "$2" --slots 24 &
    client=$!
    while kill -0 $client 2>/dev/null; do harm; done
    wait $client
    same "$1" "$1" model1 $?
}
harm() { sleep 0.15; kill -9 $w1; worker; w1=$started; sleep 0.3; }
fault worker-killed 6000
harm() { sleep 0.15; kill -TERM $w2; worker; w2=$started; sleep 0.3; }
fault worker-drained 6000
harm() { sleep 0.1; kill -STOP $w1; sleep 1; kill -CONT $w1; sleep 0.3; }
fault worker-stopped 4000
harm() { sleep 0.3; kill -9 $b; broker; b=$started; sleep 0.7; }
fault broker-killed 6000
[ "$(count broker-killed rebuilt)" -gt 0 ] && ok || bad "broker-killed: nothing was rebuilt" "$work/broker-killed.log"

"$bin/textgen" bench env --address "$front" --sessions 3 --slots 8 --seconds 0.5 --warmup 0.1 --json "$work/bench.json" \
    --csv "$work/bench.csv" >"$work/bench.log" 2>&1 && ok || bad "bench env" "$work/bench.log"
grep -q '"errors": 0' "$work/bench.json" && [ "$(wc -l <"$work/bench.csv")" -eq 2 ] && ok || bad "bench env: its figures" "$work/bench.json"

kill -TERM $b; wait $b && ok || bad "the broker does not end well on SIGTERM" "$work/broker.log"
"$bin/textgen-broker" --front "$front" >"$work/usage.log" 2>&1; [ $? -eq 64 ] && ok || bad "a missing address is no usage error" "$work/usage.log"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
