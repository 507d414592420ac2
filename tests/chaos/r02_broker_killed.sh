#!/bin/bash
# R2: the broker is killed (-9) and started again. Clients open their slots anew and put their episodes back.
. tests/support/servers.sh
wanted=$(size 4 200) total=0
model model --episodes 20000
broker; b=$started
worker; worker
harm() { sleep 0.4; kill -9 $b && kills=$((kills + 1)); sleep 0.$((RANDOM % 3)); broker; b=$started; sleep 0.6; }
for ((round = 0; total < wanted; round++)); do
    rm -f "$work"/round*
    under "round$round" model "$(size 8000 20000)" --address "$front" --slots 64
    total=$((total + kills))
    slow="${slow:-} $(count "round$round" slowest)"
    [ "$failed" -eq 0 ] || break
done 2>/dev/null
figure "$total brokers killed; slowest call $(echo "$slow" | tr ' ' '\n' | sort -n | tail -n 1) ms"
finish
