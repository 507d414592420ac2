#!/bin/bash
# D3: putting an episode back gives the state that living it gave, after every step.
. tests/support/servers.sh
n=$(size 300 10000)
model model --episodes "$n"
play twin --local --config "$config" --episodes "$n" --check-restore; same "restored after every step" twin model $?
[ "$(count twin restored)" -gt $((n + n / 2)) ]; check "too few states were restored" $? "$work/twin.log"
figure "$n episodes: $(count twin restored) states put back, $(count twin wrong) differ"
finish
