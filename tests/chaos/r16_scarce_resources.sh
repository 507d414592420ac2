#!/bin/bash
# R16: very few file descriptors, little memory: new sessions are refused, nothing crashes, those that are there go on.
. tests/support/servers.sh
beat=2000 n=$(size 4000 20000) port=$((20000 + $$ % 20000))
model model --episodes "$n"
# Over tcp: libzmq 4.3.4 ends the process when accept() on a socket of the file system finds no descriptor.
front=tcp://127.0.0.1:$port back=tcp://127.0.0.1:$((port + 1))
crowd() { # SESSIONS AT-A-TIME TIMES
    local i
    for ((i = 1; i <= $3; i++)); do
        "$bin/textgen" bench env --address "$front" --sessions "$1" --slots 1 --seconds 0.2 --heartbeat-ms 2000 --warmup 0 --open-ms 2000 >>"$work/crowd.log" 2>&1 &
        [ $((i % $2)) -ne 0 ] || sleep 0.5
    done
}
(ulimit -n 64; exec "$bin/textgen-broker" --front "$front" --back "$back" --heartbeat-ms "$beat") >"$work/broker.log" 2>&1 &
b=$!
worker; w=$started
play first --address "$front" --episodes "$n" --slots 8 & client=$!
crowd 3 20 "$(size 40 400)"
wait $client; same "64 file descriptors" first model $?
kill -0 $b; check "the broker did not survive 64 file descriptors" $? "$work/broker.log"
kill -9 $b $w; wait $b $w 2>/dev/null

group=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/textgen-$$
if [ -n "${SANITIZE:-}" ]; then
    echo "skipped: a sanitizer takes more than 64 MB for itself"
elif mkdir "$group" 2>/dev/null && echo 64M >"$group/memory.limit_in_bytes"; then
    at_end() { end_all; sleep 0.2; rmdir "$group" 2>/dev/null; }
    (echo $BASHPID >"$group/cgroup.procs"; exec "$bin/textgen-broker" --front "$front" --back "$back" --heartbeat-ms "$beat") >"$work/broker.log" 2>&1 &
    b=$!
    worker
    play second --address "$front" --episodes "$n" --slots 8 & client=$!
    "$bin/textgen" bench env --address "$front" --sessions "$(size 1500 3000)" --slots 6 --seconds 1 --warmup 0 --open-ms "$(size 5000 20000)" >"$work/crowd.log" 2>&1
    wait $client; same "64 MB" second model $?
    kill -0 $b; check "the broker did not survive 64 MB" $? "$work/broker.log"
    figure "64 MB: at most $(($(cat "$group/memory.max_usage_in_bytes") >> 20)) MB used; $(tail -n 1 "$work/crowd.log")"
else
    echo "skipped: no memory group can be made here"
fi
finish
