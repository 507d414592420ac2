#!/bin/bash
# R6: every message takes 200 ms, more or less 100, so that they overtake each other, and some are lost: 0 wrong. (net-noise delays whole
# messages: the kernel's netem is not everywhere.)
. tests/support/servers.sh
serve "ipc://$work/env"
"$bin/tests/net-noise" "ipc://$work/noise" "ipc://$work/env" 5 0.005 0 0 0 0 "$(size 40 200)" "$(size 20 100)" >"$work/noise.out" 2>&1 &
noise=$!
n=$(size 300 60000)
model model --episodes "$n" --run 8
play got --address "ipc://$work/noise" --episodes "$n" --slots "$(size 64 512)" --run 8 --timeout-ms 120000
same "slow and lossy" got model $?
kill -TERM $noise; wait $noise
figure "$(cat "$work/noise.out")"
finish
