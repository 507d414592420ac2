#!/bin/bash
# R12: client, broker and workers start in every order, and wait for whoever is late. R13: all workers are replaced one after another by
# SIGTERM, again and again, without a failed request. D1: the transcript is the same for any number of workers.
. tests/support/servers.sh
model model --episodes 20000
for order in "client worker broker" "client broker worker" "worker client broker" "worker broker client" "broker client worker" "broker worker client"; do
    for what in $order; do
        case $what in
            broker) broker; b=$started ;;
            worker) worker; w=$started ;;
            client) play order --address "$front" --episodes 300 & client=$! ;;
        esac
        sleep 0.3
    done
    wait $client; same "$order" order model $?
    kill -9 $b $w; wait $b $w 2>/dev/null
done 2>/dev/null

for n in 1 2 4 16; do
    broker --min-workers $n; b=$started
    pids=()
    for ((i = 0; i < n; i++)); do worker; pids+=($started); done
    play "workers$n" --address "$front" --episodes "$(size 1000 10000)" --slots 32; same "$n workers" "workers$n" model $?
    kill "${pids[@]}" $b; wait "${pids[@]}" $b 2>/dev/null
done

broker --min-workers 2; b=$started
pids=()
for ((i = 0; i < 3; i++)); do worker; pids+=($started); done
total=0 wanted=$(size 6 100)
harm() {
    for ((i = 0; i < 3; i++)); do
        worker; local new=$started
        sleep 0.25
        kill -TERM "${pids[i]}"; wait "${pids[i]}" || bad "a worker does not end well on SIGTERM" "$work/workers.log"
        pids[i]=$new kills=$((kills + 1))
    done
}
while [ $total -lt "$wanted" ] && [ "$failed" -eq 0 ]; do
    under rolling model "$(size 10000 20000)" --address "$front" --slots 32
    total=$((total + kills))
done
figure "$total workers replaced while in use, 0 failed requests"
finish
