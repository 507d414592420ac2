#!/bin/bash
# R1: env workers are killed (-9) at random under load. Nothing is lost, nothing comes twice, nothing differs. The time of a recovery is
# that from the kill to the end of the last call that was under way then.
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
    kill -9 "${pids[i]}" && kills=$((kills + 1)) && now_ms >>"$work/killed"
    worker; pids[i]=$started
}
recoveries() { # of the killed, from the calls of 20 ms and more
    awk 'NR == FNR { from[n++] = $1; to[n - 1] = $2; next }
         { most = 20; for (i = 0; i < n; i++) if (from[i] <= $1 && to[i] - $1 > most) most = to[i] - $1; print most }' "$work/slow" "$work/killed"
}
for ((round = 0; total < wanted; round++)); do
    rm -f "$work"/round* "$work/killed"
    under "round$round" model "$(size 6000 20000)" --address "$front" --slots "$slots" --slow "$work/slow"
    total=$((total + kills))
    recoveries >>"$work/recovered"
    [ "$failed" -eq 0 ] || break
done 2>/dev/null
figure "$total workers killed, $slots slots; recovery p50 $(share 50 "$work/recovered") ms, p99 $(share 99 "$work/recovered") ms, longest $(share 100 "$work/recovered") ms"
finish
