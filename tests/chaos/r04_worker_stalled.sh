#!/bin/bash
# R4: a worker is stopped (SIGSTOP) and continues later, when its slots live elsewhere: its late answers count for nothing.
. tests/support/servers.sh
wanted=$(size 2 300) total=0
model model --episodes 20000
broker
worker; pids=($started); worker; pids+=($started); worker; pids+=($started)
harm() {
    local p=${pids[RANDOM % 3]}
    sleep 0.2
    kill -STOP "$p" && kills=$((kills + 1))
    sleep "$(size 1 $((RANDOM % 120 + 1)))"
    kill -CONT "$p"
    sleep 0.3
}
for ((round = 0; total < wanted; round++)); do
    rm -f "$work"/round*
    under "round$round" model "$(size 6000 20000)" --address "$front" --slots 64
    total=$((total + kills))
    [ "$failed" -eq 0 ] || break
done 2>/dev/null
figure "$total times a worker was stopped"
finish
