#!/bin/bash
# R10: ten times more steps become due than the server can take. It goes on at its own speed, refuses or delays the rest, and is as
# before when the load ends.
. tests/support/servers.sh
model model --episodes 2000
broker; b=$started
worker
play before --address "$front" --episodes 500; same "before" before model $?
s=$(size 1 15)
bench() { "$bin/textgen" bench env --address "$front" --sessions 8 --slots 64 --seconds "$s" --warmup 0.5 --json "$work/$1.json" "${@:2}" >"$work/$1.log" 2>&1; check "$1" $? "$work/$1.log"; }
value() { sed -n "s/.*\"$2\": \([0-9]*\).*/\1/p" "$work/$1.json"; }
bench peak
bench overload --rate $(($(value peak steps_per_s) * 10))
[ "$(value overload errors)" -eq 0 ]; check "errors under overload" $? "$work/overload.log"
long && { [ $((100 * $(value overload steps_per_s))) -ge $((90 * $(value peak steps_per_s))) ]; check "overload gives less than 90 % of the peak" $?; }
play after --address "$front" --episodes 500; same "after" after model $?
kill -0 $b; check "the broker is gone" $?
figure "peak $(value peak steps_per_s) steps/s; ten times as many due: $(value overload steps_per_s) steps/s"
finish
