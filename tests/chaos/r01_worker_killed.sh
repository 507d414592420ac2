#!/bin/bash
# R1: env workers are killed (-9) at random under load. Nothing is lost, nothing comes twice, nothing differs.
. tests/support/servers.sh
workers=$(size 4 8) slots=$(size 64 256) wanted=$(size 10 1000)
model model --episodes 20000
broker
pids=()
for ((i = 0; i < workers; i++)); do worker; pids[i]=$started; done
total=0
harm() {
    local i=$((RANDOM % workers))
    sleep 0.$((RANDOM % 3 + 1))
    kill -9 "${pids[i]}" && kills=$((kills + 1))
    worker; pids[i]=$started
}
for ((round = 0; total < wanted; round++)); do
    rm -f "$work"/round*
    under "round$round" model "$(size 6000 20000)" --address "$front" --slots "$slots"
    total=$((total + kills))
    slow="${slow:-} $(count "round$round" slowest)"
    [ "$failed" -eq 0 ] || break
done 2>/dev/null
figure "$total workers killed, $slots slots; slowest call of each round:$(echo "$slow" | tr ' ' '\n' | sort -n | tail -n 1) ms at most"
finish
