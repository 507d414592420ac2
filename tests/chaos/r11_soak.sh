#!/bin/bash
# R11: hours of load (SOAK_SECONDS; ten seconds here, 24 h for a release; SOAK_RATE steps a second, 0: as fast as it goes) with workers that
# come and go. Memory and file descriptors of the broker stay where they are; so do those of a worker that lives all along.
. tests/support/servers.sh
seconds=${SOAK_SECONDS:-$(size 10 86400)}
broker; b=$started
worker; w=$started
worker; mortal=$started
fds() { ls "/proc/$1/fd" | wc -l; }
# slope COLUMN: kB an hour, by least squares over all samples
slope() { awk -v c="$1" '{ n++; x += $1; y += $c; xx += $1 * $1; xy += $1 * $c } END { d = n * xx - x * x; print d ? int(3600 * (n * xy - x * y) / d) : 0 }' "$work/samples"; }
"$bin/textgen" bench env --address "$front" --sessions 4 --slots 32 --seconds "$seconds" --warmup 1 --rate "${SOAK_RATE:-0}" --json "$work/soak.json" >"$work/soak.log" 2>&1 &
load=$!
sleep $((seconds / 5 + 2)) # caches fill first
: >"$work/samples"
for ((n = 0; ; n++)); do
    sleep 2
    kill -0 $load 2>/dev/null || break
    kill -TERM $mortal; worker; mortal=$started
    echo "$SECONDS $(rss $b) $(rss $w) $(fds $b) $(fds $w)" >>"$work/samples"
done
wait $load; check "the load" $? "$work/soak.log"
read -r _ b0 w0 f0 g0 < <(head -n 1 "$work/samples")
read -r _ b1 w1 f1 g1 < <(tail -n 1 "$work/samples")
grep -q '"errors": 0' "$work/soak.json"; check "errors" $? "$work/soak.log"
[ $((b1 - b0)) -lt 4096 ]; check "the broker grew from $b0 to $b1 kB" $?
[ $((w1 - w0)) -lt 4096 ]; check "the worker grew from $w0 to $w1 kB" $?
[ $((f1 - f0)) -lt 8 ]; check "the broker had $f0 file descriptors, then $f1" $?
[ $((g1 - g0)) -lt 8 ]; check "the worker had $g0 file descriptors, then $g1" $?
if [ "$seconds" -ge 3600 ]; then
    [ "$(slope 2)" -lt 1024 ]; check "the broker grows by $(slope 2) kB an hour" $? "$work/samples"
    [ "$(slope 3)" -lt 1024 ]; check "the worker grows by $(slope 3) kB an hour" $? "$work/samples"
fi
figure "$seconds s, $n workers replaced: broker $b0 -> $b1 kB ($(slope 2) kB/h), worker $w0 -> $w1 kB ($(slope 3) kB/h), descriptors $f0 -> $f1 and $g0 -> $g1; $(head -n 1 "$work/soak.log")"
finish
