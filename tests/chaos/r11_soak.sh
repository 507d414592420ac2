#!/bin/bash
# R11: hours of load (SOAK_SECONDS; ten seconds here, 24 h for a release) with workers that come and go. Memory and file descriptors of the
# broker stay where they are; so do those of a worker that lives all along.
. tests/support/servers.sh
seconds=${SOAK_SECONDS:-$(size 10 86400)}
broker; b=$started
worker; w=$started
worker; mortal=$started
fds() { ls "/proc/$1/fd" | wc -l; }
"$bin/textgen" bench env --address "$front" --sessions 4 --slots 32 --seconds "$seconds" --warmup 1 --json "$work/soak.json" >"$work/soak.log" 2>&1 &
load=$!
sleep $((seconds / 5 + 2)) # caches fill first
b0=$(rss $b) w0=$(rss $w) f0=$(fds $b)
while kill -0 $load 2>/dev/null; do
    sleep 2
    kill -TERM $mortal; worker; mortal=$started
    b1=$(rss $b) w1=$(rss $w) f1=$(fds $b)
done
wait $load; check "the load" $? "$work/soak.log"
grep -q '"errors": 0' "$work/soak.json"; check "errors" $? "$work/soak.log"
[ $((b1 - b0)) -lt 4096 ]; check "the broker grew from $b0 to $b1 kB" $?
[ $((w1 - w0)) -lt 4096 ]; check "the worker grew from $w0 to $w1 kB" $?
[ $((f1 - f0)) -lt 8 ]; check "the broker had $f0 file descriptors, then $f1" $?
figure "$seconds s: broker $b0 -> $b1 kB, worker $w0 -> $w1 kB, descriptors $f0 -> $f1; $(head -n 1 "$work/soak.log")"
finish
