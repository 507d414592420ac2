#!/bin/bash
# /metrics of real workers, brokers and learners: the page is well-formed, has every name that the documents and the alert rules use, and after
# known traffic every counter has moved by exactly as much.
. tests/support/servers.sh

# look NAME HOST:PORT: reads /metrics into $work/NAME
look() {
    exec 3<>"/dev/tcp/${2%:*}/${2#*:}" || return 1
    printf 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n' >&3
    tr -d '\r' <&3 >"$work/$1.http"
    exec 3>&- 3<&-
    sed '1,/^$/d' "$work/$1.http" >"$work/$1"
}
page() { # the same, and checks its form
    look "$1" "$2" || { bad "$1: no connection to $2"; return; }
    sed -n '1,/^$/p' "$work/$1.http" | grep -q '^Content-Type: text/plain; version=0.0.4'; check "$1: the type of the page" $? "$work/$1.http"
    awk -f tests/support/exposition.awk "$work/$1" >"$work/$1.wrong"; check "$1: the form of the page" $? "$work/$1.wrong"
}
# The last client's Bye may still be under way when the client is gone.
alone() { for _ in $(seq 100); do look now "$1" && [ "$(value now textgen_env_sessions)" = 0 ] && break; sleep 0.02; done; }
# The value of a series, as it is written there; 0 when it has not been seen yet.
value() { awk -v s="$2" '$1 == s { v = $2 } END { print v + 0 }' "$work/$1"; }
sum() { awk -v s="$2" 'index($1, s) == 1 { v += $2 } END { print v + 0 }' "$work/$1"; } # of all that begin so
is() { local v; v=$(value "$1" "$2"); [ "$v" = "$3" ]; check "$1: $2 is $v, expected $3" $?; }
at_least() { local v; v=$(value "$1" "$2"); [ "$v" -ge "$3" ]; check "$1: $2 is $v, expected at least $3" $?; }
http_of() { # LOG: the first address in it
    local a
    for _ in $(seq 200); do a=$(sed -n 's|.*http://\(127.0.0.1:[0-9]*\)/.*|\1|p' "$1" 2>/dev/null | head -n 1); [ -n "$a" ] && break; sleep 0.05; done
    echo "$a"
}
tokens() { awk '{ for (i = 1; i < NF; i++) if ($i == "tokens") n += $(i + 1) } END { print n + 0 }' "$work/$1"; }
ended() { awk -v how="$2" '{ for (i = 1; i < NF; i++) if ($i == "end" && $(i + 1) == how) n++ } END { print n + 0 }' "$work/$1"; }

# ---- one worker, one client -------------------------------------------------------------------
serve "ipc://$work/worker" --http 127.0.0.1:0; w=$started
http=$(http_of "$work/workers.log")
page before "$http"
is before 'textgen_requests_total{method="STEP",code="OK"}' 0
play alone --address "ipc://$work/worker" --episodes 300 --slots 8; check "episodes are played" $? "$work/alone.log"
sleep 0.3 # the lag of the loop is taken ten times a second
alone "$http"; page after "$http"
env=$(sed -n 's/^textgen_env_steps_total{env="\([^"]*\)"}.*/\1/p' "$work/after")
is after "textgen_env_steps_total{env=\"$env\"}" "$(tokens alone)"
is after "textgen_env_episodes_total{outcome=\"terminated\",env=\"$env\"}" "$(ended alone 10)"
is after "textgen_env_episodes_total{outcome=\"truncated\",env=\"$env\"}" "$(ended alone 01)"
is after "textgen_env_episodes_total{outcome=\"aborted\",env=\"$env\"}" 0
is after "textgen_env_episodes_total{outcome=\"recovered\",env=\"$env\"}" 0
fn=$(sed -n 's/^textgen_reward_duration_seconds_count{fn="\([^"]*\)"}.*/\1/p' "$work/after")
is after "textgen_reward_results_total{fn=\"$fn\",status=\"ok\"}" 300 # it judges finished texts only
is after "textgen_reward_duration_seconds_count{fn=\"$fn\"}" 300
is after 'textgen_requests_total{method="HELLO",code="OK"}' 1
is after 'textgen_requests_total{method="OPEN_SLOTS",code="OK"}' 1
steps=$(value after 'textgen_requests_total{method="STEP",code="OK"}') resets=$(value after 'textgen_requests_total{method="RESET",code="OK"}')
is after 'textgen_request_duration_seconds_count{method="STEP"}' "$steps"
is after 'textgen_request_duration_seconds_count{method="RESET"}' "$resets"
is after 'textgen_sessions_opened_total' 1
is after 'textgen_env_sessions' 0
is after 'textgen_credits_available' 0
for state in idle running done recovering; do is after "textgen_env_slots{state=\"$state\"}" 0; done
is after 'textgen_replayed_requests_total' 0
[ "$(sum after textgen_backpressure_total)" = 0 ] && [ "$(sum after textgen_protocol_errors_total)" = 0 ] && [ "$(sum after textgen_auth)" = 0 ]
check "after: nothing was refused" $? "$work/after"
# Every request, as many answers: those of the client, without heartbeats and Bye.
answers=$(sum after textgen_requests_total) received=$(value after textgen_messages_received_total)
[ "$received" -gt "$answers" ] && [ "$((received - answers))" -lt 20 ]; check "after: $answers answers to $received messages" $?
at_least after textgen_bytes_received_total "$((40 * received))"
at_least after textgen_bytes_sent_total "$(value after textgen_messages_sent_total)"
at_least after textgen_loop_lag_seconds_count 1
page again "$http"
is again textgen_requests_total\{method=\"STEP\",code=\"OK\"\} "$steps" # looking changes nothing
is again textgen_scrapes_total "$(($(value after textgen_scrapes_total) + 1))"

# ---- a broker, workers that die ---------------------------------------------------------------
broker --http 127.0.0.1:0; b=$started
bhttp=$(http_of "$work/broker.log")
worker; w1=$started; worker; w2=$started
play plain --address "$front" --episodes 300 --slots 8 --seed 3; check "episodes are played through the broker" $? "$work/plain.log"
alone "$bhttp"; page broker0 "$bhttp"
is broker0 textgen_fleet_steps_total "$(tokens plain)"
is broker0 textgen_fleet_episodes_total 300
is broker0 'textgen_workers{kind="env"}' 2
is broker0 'textgen_worker_deaths_total{cause="disconnected"}' 0
is broker0 'textgen_recovery_duration_seconds_count' 0
asked=$(value broker0 'textgen_requests_total{method="STEP",code="OK"}')
is broker0 'textgen_request_duration_seconds_count{method="STEP"}' "$asked"
is broker0 'textgen_worker_request_duration_seconds_count{method="STEP"}' "$(value broker0 'textgen_worker_requests_total{method="STEP",code="OK"}')"
is broker0 'textgen_credits_available' 0
model model --episodes 12000 --seed 3
harm() { # once, when episodes are under way
    sleep 0.02
    [ -n "$w1" ] && look now "$bhttp" && [ "$(value now 'textgen_env_slots{state="running"}')" -gt 0 ] && kill -9 "$w1" && w1=
}
under killed model 12000 --address "$front" --slots 24 --seed 3
alone "$bhttp"; page broker1 "$bhttp"
is broker1 'textgen_worker_deaths_total{cause="disconnected"}' 1
is broker1 'textgen_worker_deaths_total{cause="silent"}' 0
is broker1 'textgen_workers{kind="env"}' 1
rebuilt=$(value broker1 'textgen_worker_recoveries_total{result="rebuilt"}')
[ "$rebuilt" -gt 0 ]; check "a worker was killed, and $rebuilt episodes rebuilt" $?
is broker1 'textgen_recovery_duration_seconds_count' "$rebuilt"
is broker1 'textgen_worker_recoveries_total{result="aborted"}' 0
worker; w3=$started
sleep 0.5; kill -STOP "$w3"; sleep 1.5
page broker2 "$bhttp"
is broker2 'textgen_worker_deaths_total{cause="silent"}' 1
at_least broker2 'textgen_heartbeats_missed_total{peer_role="worker"}' 2
is broker2 'textgen_heartbeats_missed_total{peer_role="client"}' 0
kill -9 "$w3"; kill -TERM "$w2"; wait "$w2"
sleep 0.3
page broker3 "$bhttp"
is broker3 textgen_workers_left_total 1
is broker3 'textgen_worker_deaths_total{cause="disconnected"}' 1
"$bin/textgen" health --http "$bhttp" --quiet; [ $? -eq 69 ]; check "a broker without workers is not ready" $?
play nobody --address "$front" --episodes 1 --timeout-ms 700; [ $? -ne 0 ]; check "a broker without workers plays no episodes" $?

# ---- a learner --------------------------------------------------------------------------------
"$bin/textgen-learner" train --config "$config" --run-dir "$work/run" --bind "ipc://$work/pool" --http 127.0.0.1:0 alg.args.n_steps=64 \
    train_evaluation.n_iters=1000 train_evaluation.eval_every=100000 >"$work/learner.log" 2>&1 & l=$!
"$bin/textgen-env" --config "$config" --connect "ipc://$work/pool" >>"$work/workers.log" 2>&1 & lw=$!
lhttp=$(http_of "$work/run/log.txt")
for _ in $(seq 300); do look learner "$lhttp" && [ "$(value learner textgen_fleet_steps_total)" -gt 0 ] && break; sleep 0.1; done
page learner "$lhttp"
at_least learner textgen_fleet_steps_total 1
at_least learner 'textgen_worker_request_duration_seconds_count{method="STEP"}' 1
at_least learner textgen_bytes_received_total 1000
kill -9 $l $lw

# ---- names ------------------------------------------------------------------------------------
has() { grep -qE "^$2[{ ]|^$2_bucket\{" "$work/$1"; check "$1 does not have $2" $?; }
both="build_info env_sessions request_duration_seconds requests_total replayed_requests_total credits_available backpressure_total
heartbeats_missed_total loop_lag_seconds protocol_errors_total auth_failures_total bytes_received_total bytes_sent_total env_slots ready"
for n in $both env_steps_total env_episodes_total reward_duration_seconds reward_results_total reward_queue_depth; do has after "textgen_$n"; done
for n in $both worker_deaths_total worker_recoveries_total recovery_duration_seconds workers; do has broker1 "textgen_$n"; done
for n in env_slots worker_deaths_total worker_recoveries_total recovery_duration_seconds heartbeats_missed_total loop_lag_seconds \
    train_iteration; do has learner "textgen_$n"; done
for n in cpu_seconds_total resident_memory_bytes open_fds max_fds start_time_seconds; do has after "process_$n"; done
grep -q '^textgen_build_info{program="textgen-env",version="[^"]*",commit="[^"]*",protocol="[0-9.]*"} 1$' "$work/after"; check "build_info" $? "$work/after"
cat "$work/after" "$work/broker1" "$work/learner" >"$work/all"
for n in $(grep -v '^ *#' deploy/alerts.yml | sed -n '/expr:/,/for:\|labels:/p' | grep -oE '\b(textgen|process)_[a-z_]+' | sort -u); do has all "$n"; done
for n in $(grep -oE '\b(textgen|process)_[a-z_]+' deploy/README.md | grep -v reward_fn_ | sort -u); do has all "$n"; done
finish
