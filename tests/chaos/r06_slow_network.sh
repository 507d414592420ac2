#!/bin/bash
# R6: a bad line: every packet takes 200 ms, more or less 100, so that packets overtake each other, and one in twenty is lost, in both
# directions. 0 wrong, and more than half the speed of a line that is as long and good. packet-noise is that line, between two network
# namespaces (needs root; the kernel's netem is not everywhere). Then the same with whole messages lost and overtaken, which no tcp
# mends (net-noise).
. tests/support/servers.sh
rate() { awk -v n="$(count "$1" calls)" -v ms="$2" 'BEGIN { printf "%.1f", 1000 * n / ms }'; }
lines() {
    local here=tg-here-$$ there=tg-there-$$ late=$(size 40 200) vary=$(size 20 100) line
    if ! { ip netns add $here && ip netns add $there && [ -w /dev/net/tun ]; } 2>/dev/null; then
        ip netns del $here 2>/dev/null; ip netns del $there 2>/dev/null
        echo "skipped: no network namespaces or no /dev/net/tun here"
        return
    fi
    at_end() { end_all; ip netns del tg-here-$$; ip netns del tg-there-$$; }
    ip -n $there link set lo up
    ip netns exec $there "$bin/textgen-env" --config "$config" --bind tcp://0.0.0.0:7600 --insecure --heartbeat-ms 1000 >"$work/serve.out" 2>>"$work/workers.log" &
    for kind in good bad; do
        case $kind in good) set -- 0 0 0 ;; bad) set -- "$vary" 0.05 0.05 ;; esac
        "$bin/tests/packet-noise" $here $there 6 "$late" "$@" >"$work/$kind.line" 2>&1 &
        line=$!
        until grep -q ready "$work/$kind.line"; do kill -0 $line || { bad "no line" "$work/$kind.line"; return; }; sleep 0.05; done
        ip -n $here addr add 10.78.0.1/24 dev line; ip -n $there addr add 10.78.0.2/24 dev line
        ip -n $here link set line up; ip -n $there link set line up
        rm -f "$work/enough"
        (sleep "$(size 5 "$([ $kind = good ] && echo $((${LINE_SECONDS:-3600} / 12)) || echo "${LINE_SECONDS:-3600}")")"; touch "$work/enough") &
        from=$(now_ms)
        ip netns exec $here "$bin/tests/env-play" --heartbeat-ms 1000 --timeout-ms 120000 --address tcp://10.78.0.2:7600 --episodes 200000 --slots 64 \
            --until "$work/enough" --out "$work/$kind" 2>"$work/$kind.log"
        st=$? took=$(($(now_ms) - from))
        model model --episodes "$(wc -l <"$work/$kind")"
        same "a $kind line" $kind model $st
        speed[${#speed[@]}]=$(rate $kind $took)
        kill -TERM $line; wait $line
        figure "$kind line: $took ms, $(wc -l <"$work/$kind") episodes, ${speed[-1]} calls/s, slowest call $(count $kind slowest) ms; $(tail -n 1 "$work/$kind.line")"
    done
    long && { awk "BEGIN { exit !(${speed[1]} > ${speed[0]} / 2) }"; check "the bad line gives ${speed[1]} calls/s, the good one ${speed[0]}" $?; }
}
speed=()
lines

serve "ipc://$work/env"
"$bin/tests/net-noise" "ipc://$work/noise" "ipc://$work/env" 5 0.005 0 0 0 0 "$(size 40 200)" "$(size 20 100)" >"$work/noise.out" 2>&1 &
noise=$!
n=$(size 300 20000)
model model --episodes "$n" --run 8
play got --address "ipc://$work/noise" --episodes "$n" --slots "$(size 64 512)" --run 8 --timeout-ms 120000
same "whole messages lost" got model $?
kill -TERM $noise; wait $noise
figure "$(cat "$work/noise.out")"
finish
