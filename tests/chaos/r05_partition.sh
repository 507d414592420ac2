#!/bin/bash
# R5: the network between workers and broker is cut, in both directions or in one only, and heals. No call hangs: each returns within its
# deadline and a second, and asked again gives the same results. Needs network namespaces (root).
. tests/support/servers.sh
a=tg-a-$$ b=tg-b-$$
if ! { ip netns add $a && ip netns add $b && ip link add tga$$ netns $a type veth peer name tgb$$ netns $b; } 2>/dev/null; then
    ip netns del $a 2>/dev/null; ip netns del $b 2>/dev/null
    echo "skipped: no network namespaces here"
    finish
fi
trap 'end_all; ip netns del $a; ip netns del $b' EXIT
ip -n $a addr add 10.77.0.1/24 dev tga$$; ip -n $b addr add 10.77.0.2/24 dev tgb$$
for x in "$a tga$$" "$b tgb$$"; do set -- $x; ip -n "$1" link set "$2" up; ip -n "$1" link set lo up; done
front=tcp://127.0.0.1:7601 back=tcp://10.77.0.2:7602
ip netns exec $b "$bin/textgen-broker" --front $front --back $back --insecure --heartbeat-ms $beat >"$work/broker.log" 2>&1 &
for ns in $a $a $b; do
    ip netns exec $ns "$bin/textgen-env" --config "$config" --connect $back --heartbeat-ms $beat >>"$work/workers.log" 2>&1 &
done
mac=$(ip -n $a -o link show tga$$ | sed 's/.*ether \([^ ]*\).*/\1/')
cut_off() { # both: the link is down; one: what the broker sends to the workers goes nowhere
    if [ "$1" = both ]; then ip -n $a link set tga$$ down
    else ip -n $b neigh replace 10.77.0.1 lladdr 02:00:00:00:00:01 dev tgb$$ nud permanent; fi
}
heal() {
    ip -n $a link set tga$$ up
    ip -n $b neigh replace 10.77.0.1 lladdr "$mac" dev tgb$$ nud permanent
}
heal
model model --episodes 20000
deadline=$(size 4000 10000) total=0 wanted=$(size 4 300)
harm() {
    sleep 0.3
    cut_off "$([ $((RANDOM % 2)) = 0 ] && echo both || echo one)"
    sleep "$(long && echo $((RANDOM % 90)).$((RANDOM % 10)) || echo 0.$((RANDOM % 9 + 1)))"
    heal
    kills=$((kills + 1))
    sleep 1
}
export CALL_MS=$deadline
play() { ip netns exec $b "$bin/tests/env-play" --heartbeat-ms "$beat" --timeout-ms "$deadline" --again --out "$work/$1" "${@:2}" 2>"$work/$1.log"; }
for ((round = 0; total < wanted; round++)); do
    under "round$round" model "$(size 6000 20000)" --address $front --slots 48
    total=$((total + kills))
    slowest=$(count "round$round" slowest)
    [ "${slowest:-0}" -le $((deadline + 1000)) ]; check "a call took $slowest ms, its deadline is $deadline" $?
    slow="${slow:-} ${slowest:-0}"
    [ "$failed" -eq 0 ] || break
done
figure "$total partitions; slowest call $(echo "$slow" | tr ' ' '\n' | sort -n | tail -n 1) ms, deadline $deadline ms"
finish
