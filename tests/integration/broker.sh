#!/bin/bash
# Real brokers, workers and clients: the episodes played through them equal those played without any server (env-play --local), while
# workers are killed, stopped, drained and replaced and the broker itself is killed and started again. Larger: tests/chaos.
. tests/support/servers.sh

model model1 --episodes 6000
model model2 --episodes 400 --seed 2
cmp -s <(head -n 400 "$work/model1") "$work/model2" && bad "two seeds give the same episodes" || ok

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

# Paced, so that a fast machine is not done before anything is harmed.
harm() { sleep 0.15; kill -9 $w1; worker; w1=$started; sleep 0.3; }
under worker-killed model1 6000 --address "$front" --slots 24 --rate 40000
harm() { sleep 0.15; kill -TERM $w2; worker; w2=$started; sleep 0.3; }
under worker-drained model1 6000 --address "$front" --slots 24 --rate 40000
harm() { sleep 0.1; kill -STOP $w1; sleep 1; kill -CONT $w1; sleep 0.3; }
under worker-stopped model1 4000 --address "$front" --slots 24 --rate 40000
harm() { sleep 0.3; kill -9 $b; broker; b=$started; sleep 0.7; }
under broker-killed model1 6000 --address "$front" --slots 24 --rate 40000
[ "$(count broker-killed rebuilt)" -gt 0 ] && ok || bad "broker-killed: nothing was rebuilt" "$work/broker-killed.log"

# What slots hold is told as a worker tells it.
told() { timeout 60 "$bin/tests/env-client" "$1" told >"$work/$2" 2>"$work/$2.log"; }
serve "ipc://$work/direct"; check "a worker that listens" $? "$work/workers.log"
told "ipc://$work/direct" told-direct; check "told by a worker" $? "$work/told-direct.log"
told "$front" told-broker; check "told by a broker" $? "$work/told-broker.log"
[ "$(grep -c truncated "$work/told-direct")" -eq 4 ] && cmp "$work/told-direct" "$work/told-broker" >"$work/told.log" 2>&1
check "a broker tells of slots as a worker does" $? "$work/told.log"

"$bin/textgen" bench env --address "$front" --sessions 3 --slots 8 --seconds 0.5 --warmup 0.1 --json "$work/bench.json" \
    --csv "$work/bench.csv" >"$work/bench.log" 2>&1
check "bench env" $? "$work/bench.log"
grep -q '"errors": 0' "$work/bench.json" && [ "$(wc -l <"$work/bench.csv")" -eq 2 ]
check "bench env: its figures" $? "$work/bench.json"

kill -TERM $b; wait $b; check "the broker does not end well on SIGTERM" $? "$work/broker.log"
"$bin/textgen-broker" --front "$front" >"$work/usage.log" 2>&1; [ $? -eq 64 ]; check "a missing address is no usage error" $? "$work/usage.log"
finish
