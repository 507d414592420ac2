#!/bin/bash
# R4: workers are stopped (SIGSTOP) and continue later, when their slots live elsewhere: their late answers count for nothing, no
# reward comes twice. Several are stopped at a time; one never is.
. tests/support/servers.sh
wanted=$(size 4 300) loops=$(size 2 10)
model model --episodes "$(size 20000 100000)"
broker
for ((i = 0; i <= loops; i++)); do worker; pids[i]=$started; done
harm() {
    sleep 0.$((RANDOM % 5 + 1))
    kill -STOP "${pids[$1]}"
    sleep "$(size 1 $((RANDOM % 120 + 1))).$((RANDOM % 10))"
    kill -CONT "${pids[$1]}"
    sleep 1 # it joins again
}
beside "$loops" stalls model --episodes "$(size 20000 100000)" --address "$front" --slots 64 --rate "$(size 1000 150)" --slow "$work/slow"
kill -0 "${pids[@]}"; check "a stopped worker is gone" $? "$work/workers.log"
figure "$kills times a worker was stopped for 1 to $(size 2 120) s, $loops at a time; $(wc -l <"$work/stalls") episodes, slowest call $(count stalls slowest) ms"
finish
