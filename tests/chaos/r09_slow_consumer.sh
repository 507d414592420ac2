#!/bin/bash
# R9: a client stops reading. Nothing grows without bound, others are served meanwhile, and when it reads again nothing is lost.
. tests/support/servers.sh
model model --episodes 20000
broker --lease-ms 2000; b=$started
worker; w=$started
export CALL_MS=$(size 30000 1200000)
play slow --address "$front" --episodes 20000 --slots 64 --again &
client=$!
sleep 0.6
before=$(($(rss $b) + $(rss $w)))
player=$(pgrep -f "env-play.*$work/slow" | head -n 1)
kill -STOP "$player"; check "nothing to stop" $?
play other --address "$front" --episodes 300; same "another client meanwhile" other model $?
sleep "$(size 3 600)" # beyond the lease: its slots are gone and come back from its own log
after=$(($(rss $b) + $(rss $w)))
kill -CONT "$player"
wait $client; same "reads again" slow model $?
[ $((after - before)) -lt 65536 ]; check "memory grew by $((after - before)) kB" $?
figure "stopped for $(size 3 600) s: memory of broker and worker grew by $((after - before)) kB"
finish
