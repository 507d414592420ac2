#!/bin/bash
# R7: messages are lost, doubled, overtaken, cut and damaged on their way: each step is applied exactly once.
. tests/support/servers.sh
serve "ipc://$work/env"
"$bin/tests/net-noise" "ipc://$work/noise" "ipc://$work/env" 7 0.005 0.02 0.02 0.005 0.005 >"$work/noise.out" 2>&1 &
noise=$!
n=$(size 400 200000)
model model --episodes "$n"
play got --address "ipc://$work/noise" --episodes "$n" --slots "$(size 64 1024)" --timeout-ms 120000; same "spoiled" got model $?
kill -TERM $noise; wait $noise
figure "$(cat "$work/noise.out"); dropped by the client $(count got dropped)"
grep -q "lost [1-9].* doubled [1-9].* overtaken [1-9]" "$work/noise.out"; check "nothing was spoiled" $? "$work/noise.out"
finish
