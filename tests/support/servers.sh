# Brokers, workers and players for tests with real processes; sourced. `work` is the test's own folder; everything started here is killed
# when the test ends. The measure is the same everywhere: the episodes played must equal those played without any server.
. tests/support/script.sh servers
config=${CONFIG:-$PWD/configs/increasing_numbers.yml}
end_all() {
    local p
    for p in $(jobs -p); do kill -CONT "$p"; kill -9 "$p"; done 2>/dev/null
    wait 2>/dev/null
}
at_end() { end_all; }
front=ipc://$work/front back=ipc://$work/back
beat=${BEAT_MS:-200}
check() { if [ "$2" -eq 0 ]; then ok; else bad "$1" "${3:-}"; fi; }
long() { [ -n "${CHAOS_LONG:-}" ]; } # the figures of a release instead of those of every change
size() { if long; then echo "$2"; else echo "$1"; fi; } # size CI LONG

# Each puts the new process into $started.
broker() { "$bin/textgen-broker" --front "$front" --back "$back" --heartbeat-ms "$beat" "$@" >>"$work/broker.log" 2>&1 & started=$!; }
worker() { "$bin/textgen-env" --config "$config" --connect "$back" --heartbeat-ms "$beat" "$@" >>"$work/workers.log" 2>&1 & started=$!; }
# serve ADDRESS [options]: a worker that listens; returns when it does
serve() {
    "$bin/textgen-env" --config "$config" --bind "$1" --heartbeat-ms "$beat" "${@:2}" >"$work/serve.out" 2>>"$work/workers.log" &
    started=$!
    until grep -q ready "$work/serve.out"; do kill -0 $started 2>/dev/null || return 1; sleep 0.02; done
}
play() { # play OUT [options]: waits
    "$bin/tests/env-play" --heartbeat-ms "$beat" --timeout-ms "${CALL_MS:-30000}" --out "$work/$1" "${@:2}" 2>"$work/$1.log"
}
model() { play "$1" --local --config "$config" "${@:2}" || bad "the model $1 cannot be played" "$work/$1.log"; } # model OUT [options]
# same WHAT OUT MODEL STATUS: OUT was played without a failed call (STATUS) and equals the beginning of MODEL.
same() {
    [ "$4" -eq 0 ] || { bad "$1: env-play ends with $4" "$work/$2.log"; return; }
    head -n "$(wc -l <"$work/$2")" "$work/$3" >"$work/wanted"
    cmp -s "$work/$2" "$work/wanted" && ok || bad "$1: $(diff "$work/$2" "$work/wanted" | head -n 3 | tr '\n' '|')" "$work/$2.log"
}
count() { sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$work/$1.log" | tail -n 1; } # count OUT WORD: lost, rebuilt, dropped, slowest
kills=0
# under OUT MODEL EPISODES [options]: plays while `harm` is called again and again.
under() {
    play "$1" --episodes "$3" "${@:4}" &
    local client=$!
    kills=0
    while kill -0 $client 2>/dev/null; do harm; done
    wait $client
    same "$1" "$1" "$2" $?
}
# beside LOOPS OUT MODEL [options]: plays while as many loops call `harm LOOP`, until it was called $wanted times in all.
beside() {
    local i client loops=()
    : >"$work/harms"
    rm -f "$work/enough"
    play "$2" --until "$work/enough" "${@:4}" &
    client=$!
    for ((i = 0; i < $1; i++)); do
        while kill -0 $client && [ "$(wc -l <"$work/harms")" -lt "$wanted" ]; do echo "$i" >>"$work/harms"; harm $i; done 2>/dev/null &
        loops+=($!)
    done
    wait "${loops[@]}"
    touch "$work/enough"
    wait $client
    same "$2" "$2" "$3" $?
    kills=$(wc -l <"$work/harms")
}
now_ms() { local up; read -r up _ </proc/uptime; echo "${up/./}0"; } # the clock of env-play --slow
# share P FILE: the P-th percentile of the numbers in FILE
share() { sort -n "$2" | awk -v p="$1" '{ x[NR] = $1 } END { i = int(NR * p / 100 + 0.999999); print NR ? x[i < 1 ? 1 : i] : 0 }'; }
rss() { awk '/VmRSS/ { print $2 }' "/proc/$1/status"; } # in kB
figure() { echo "  $*"; } # what was reached, for the record
