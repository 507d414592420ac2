#!/bin/bash
# R7: messages are lost, doubled, overtaken, cut and damaged on their way: each step is applied exactly once. Many clients with few slots
# each, so that a message holds little; in rounds, each with other faults.
. tests/support/servers.sh
clients=$(size 8 100) n=$(size 25 300) wanted=$(size 1 10000000) total=0 calls=0
model model --episodes "$n" --run 1
for ((round = 0; total < wanted && failed == 0; round++)); do
    serve "ipc://$work/env"; s=$started
    "$bin/tests/net-noise" "ipc://$work/noise" "ipc://$work/env" $((7 + round)) 0.005 0.02 0.02 0.005 0.005 >"$work/noise.out" 2>&1 &
    noise=$!
    for ((i = 0; i < clients; i++)); do play "got$i" --address "ipc://$work/noise" --episodes "$n" --slots 2 --run 1 --timeout-ms 120000 & pids[i]=$!; done
    for ((i = 0; i < clients; i++)); do wait ${pids[i]}; same "client $i of round $round" "got$i" model $?; done
    kill -TERM $noise $s; wait $noise $s
    grep -q "lost [1-9].* doubled [1-9].* overtaken [1-9]" "$work/noise.out"; check "nothing was spoiled" $? "$work/noise.out"
    total=$((total + $(sed 's/messages \([0-9]*\).*/\1/' "$work/noise.out")))
    calls=$((calls + $(cat "$work"/got*.log | sed -n 's/.*calls \([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')))
    figure "round $round: $(cat "$work/noise.out"); $total messages so far, $((clients * n * (round + 1))) episodes, $calls calls, $failed wrong"
done
finish
