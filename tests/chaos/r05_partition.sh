#!/bin/bash
# R5: the network between workers and broker is cut and heals: in both directions or in either one, so that packets go nowhere without
# a word, or with the link down. No call hangs: each returns within its deadline and a second, and asked again gives the same results.
# A worker works again within three heartbeats of the healing. Every worker but one has a network namespace and a cable of its own
# (needs root).
. tests/support/servers.sh
hub=tg-hub-$$ loops=$(size 2 12) deadline=$(size 4000 10000) wanted=$(size 4 300)
beat=$(size 200 1000)
away() { echo "tg-$1-$$"; }
end_networks() { for ((i = 0; i < loops; i++)); do ip netns del "$(away $i)"; done; ip netns del $hub; }
if ! { ip netns add $hub && ip -n $hub link set lo up; } 2>/dev/null; then
    echo "skipped: no network namespaces here"
    finish
fi
at_end() { end_all; end_networks 2>/dev/null; }
front=tcp://127.0.0.1:7601
ip netns exec $hub "$bin/textgen-broker" --front $front --back tcp://0.0.0.0:7602 --insecure --heartbeat-ms "$beat" >"$work/broker.log" 2>&1 &
remote() { ip netns exec "$1" "$bin/textgen-env" --config "$config" --connect "tcp://$2:7602" --heartbeat-ms "$beat" "${@:3}" >>"$work/workers.log" 2>&1 & }
for ((i = 0; i < loops; i++)); do
    { ip netns add "$(away $i)" && ip link add near netns "$(away $i)" type veth peer name "far$i" netns $hub; } || { bad "no cable $i"; finish; }
    ip -n "$(away $i)" link set lo up
    ip -n "$(away $i)" addr add "10.77.$i.1/24" dev near; ip -n $hub addr add "10.77.$i.2/24" dev "far$i"
    ip -n "$(away $i)" link set near up; ip -n $hub link set "far$i" up
    mac[i]=$(ip -n "$(away $i)" -o link show near | sed 's/.*ether \([^ ]*\).*/\1/')
    hub_mac[i]=$(ip -n $hub -o link show "far$i" | sed 's/.*ether \([^ ]*\).*/\1/')
    remote "$(away $i)" "10.77.$i.2" --http 127.0.0.1:9601
done
remote $hub 127.0.0.1
nowhere=02:00:00:00:00:01
to_worker() { ip -n $hub neigh replace "10.77.$1.1" lladdr "$2" dev "far$1" nud permanent; }
to_hub() { ip -n "$(away "$1")" neigh replace "10.77.$1.2" lladdr "$2" dev near nud permanent; }
cut_off() { # LOOP
    case $((RANDOM % 4)) in
        0) ip -n "$(away "$1")" link set near down ;;
        1) to_worker "$1" $nowhere ;;
        2) to_hub "$1" $nowhere ;;
        3) to_worker "$1" $nowhere; to_hub "$1" $nowhere ;;
    esac
}
heal() { ip -n "$(away "$1")" link set near up; to_worker "$1" "${mac[$1]}"; to_hub "$1" "${hub_mac[$1]}"; }
ready() { ip netns exec "$(away "$1")" bash -c 'exec 3<>/dev/tcp/127.0.0.1/9601 && printf "GET /readyz HTTP/1.0\r\n\r\n" >&3 && head -n 1 <&3' 2>/dev/null | grep -q 200; }
for ((i = 0; i < loops; i++)); do heal $i; until ready $i; do sleep 0.05; done; done
model model --episodes "$(size 20000 100000)"
harm() {
    local from
    sleep 0.$((RANDOM % 5 + 1))
    cut_off "$1"
    sleep "$(size 0 $((RANDOM % 90))).$((RANDOM % 9 + 1))"
    heal "$1"
    from=$(now_ms)
    until ready "$1"; do sleep 0.02; done
    echo $(($(now_ms) - from)) >>"$work/healed"
    sleep 1
}
play() { ip netns exec $hub "$bin/tests/env-play" --heartbeat-ms "$beat" --timeout-ms "$deadline" --again --out "$work/$1" "${@:2}" 2>"$work/$1.log"; }
beside "$loops" cuts model --episodes "$(size 20000 100000)" --address $front --slots 48 --rate "$(size 1000 150)"
slowest=$(count cuts slowest)
[ "${slowest:-0}" -le $((deadline + 1000)) ]; check "a call took $slowest ms, its deadline is $deadline" $?
worst=$(share 100 "$work/healed")
[ "$worst" -le $((3 * beat + $(size 2000 0))) ]; check "a worker was back only $worst ms after the healing" $?
figure "$kills partitions, $loops at a time; $(wc -l <"$work/cuts") episodes; slowest call $slowest ms, deadline $deadline ms; back after $(share 50 "$work/healed") ms (p50), $(share 99 "$work/healed") (p99), $worst at most"
finish
