#!/bin/bash
# D1: the transcript is the same for 1, 2, 4 and 16 workers.
. tests/support/servers.sh
n=$(size 1000 20000)
model model --episodes "$n"
for workers in 1 2 4 16; do
    broker --min-workers $workers; b=$started
    pids=()
    for ((i = 0; i < workers; i++)); do worker; pids+=($started); done
    play "workers$workers" --address "$front" --episodes "$n" --slots 32; same "$workers workers" "workers$workers" model $?
    kill "${pids[@]}" $b; wait "${pids[@]}" $b 2>/dev/null
done
figure "$n episodes with 1, 2, 4 and 16 workers: digest $(sha256sum <"$work/model" | cut -c1-16)"
finish
