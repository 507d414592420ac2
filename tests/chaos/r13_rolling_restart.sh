#!/bin/bash
# R13: all workers are replaced one after another by SIGTERM, again and again, without a failed request.
. tests/support/servers.sh
model model --episodes 20000
broker --min-workers 2
pids=()
for ((i = 0; i < 3; i++)); do worker; pids+=($started); done
begun=3 total=0 wanted=$(size 2 100)
harm() {
    for ((i = 0; i < 3; i++)); do
        worker; local new=$started
        sleep 0.2
        begun=$((begun + 1))
        until [ "$(grep -c 'textgen-env ready' "$work/workers.log")" -ge $begun ]; do sleep 0.05; done
        kill -TERM "${pids[i]}"; wait "${pids[i]}" || bad "a worker does not end well on SIGTERM" "$work/workers.log"
        pids[i]=$new
    done
    kills=$((kills + 1))
}
while [ $total -lt "$wanted" ] && [ "$failed" -eq 0 ]; do
    under rolling model "$(size 10000 20000)" --address "$front" --slots 32
    total=$((total + kills))
done
figure "$total times all 3 workers were replaced while in use, 0 failed requests"
finish
