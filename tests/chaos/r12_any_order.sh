#!/bin/bash
# R12: client, broker and workers start in every order, and wait for whoever is late; with no broker for a long time all of them are
# there within five seconds of its start.
. tests/support/servers.sh
model model --episodes 2000
for order in "client worker broker" "client broker worker" "worker client broker" "worker broker client" "broker client worker" "broker worker client"; do
    for what in $order; do
        case $what in
            broker) broker; b=$started ;;
            worker) worker; w=$started ;;
            client) play order --address "$front" --episodes 300 & client=$! ;;
        esac
        sleep 0.3
    done
    wait $client; same "$order" order model $?
    kill -9 $b $w; wait $b $w 2>/dev/null
done 2>/dev/null

alone=$(size 3 600) port=$((20000 + $$ % 20000))
for ((i = 0; i < 8; i++)); do worker; done
CALL_MS=$(((alone + 30) * 1000)) play late --address "$front" --episodes 2000 & client=$!
sleep "$alone"
from=$(now_ms)
broker --min-workers 8 --http 127.0.0.1:$port
joined() { { exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && grep -q 'textgen_workers{kind="env"} 8' <&3; } 2>/dev/null; }
for ((i = 0; i < 300; i++)); do joined && break; sleep 0.05; done
took=$(($(now_ms) - from))
[ $took -le 5000 ]; check "the workers joined after $took ms" $? "$work/workers.log"
wait $client; same "after $alone s without a broker" late model $?
figure "6 orders; after $alone s without a broker 8 workers were there in $took ms"
finish
