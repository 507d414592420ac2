#!/bin/bash
# Runs every benchmark and prints what it measured; results as JSON, one object a line, in $BUILD/bench/results.jsonl, with the
# machine and the commit in $BUILD/bench/machine.json.
#
#   tests/bench/run.sh [NAME…]      NAME: ops, or bench_NAME below tests/bench (default: all)
#
# A benchmark is a program tests/bench/bench_NAME.c: a table on stdout; JSON lines, either on stdout too or appended to
# $TEXTGEN_BENCH_JSON; exit 0.
# A line {"bench", "who", "seconds"[, "flops", "bytes", "peak_mb"]} takes part in the table at the end (tests/support/bench_line.h).
# A peer from elsewhere is a script tests/bench/peer_NAME.sh with the same contract; exit 77 when it cannot run here.
set -u
cd "$(dirname "$0")/../.." || exit 70
build=${BUILD:-build}
out=$build/bench
mkdir -p "$out" || exit 74
export TEXTGEN_BENCH_JSON=$out/results.jsonl
: >"$TEXTGEN_BENCH_JSON"
wanted() { [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " = *" $1 "* ]]; }
names=("$@")
failed=0 ran=0

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
printf '{"cpu":"%s","cpus":%s,"kernel":"%s","commit":"%s","load":"%s"}\n' "${cpu:-unknown}" "$(nproc)" "$(uname -r)" \
    "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$(cut -d' ' -f1 /proc/loadavg)" >"$out/machine.json"
echo "machine: ${cpu:-unknown}, $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)"
awk '$1 > 0.5 {print "note: other programs are running; the figures are too low"}' /proc/loadavg

# run TITLE COMMAND…
run() {
    local title=$1 code; shift
    printf '\n== %s\n' "$title"
    "$@" | while IFS= read -r line; do
        line=${line#json }
        if [[ $line = \{* ]]; then printf '%s\n' "$line" >>"$TEXTGEN_BENCH_JSON"; else printf '%s\n' "$line"; fi
    done
    code=${PIPESTATUS[0]}
    ran=$((ran + 1))
    if [ $code -eq 77 ]; then echo "skipped: $title cannot run here"
    elif [ $code -ne 0 ]; then echo "failed: $title (exit $code)"; failed=$((failed + 1)); fi
}

if wanted ops; then
    run "limits of the machine" "$build/tests/tg-ops" limits --json "$out/limits.jsonl"
    run "ops, all threads" "$build/tests/tg-ops" perf --json "$out/ops.jsonl"
    cat "$out/limits.jsonl" "$out/ops.jsonl" >>"$TEXTGEN_BENCH_JSON"
    rm -f "$out/limits.jsonl" "$out/ops.jsonl"
fi
for program in "$build"/tests/bench/bench_* tests/bench/peer_*.sh; do
    [ -x "$program" ] || continue
    name=$(basename "$program" .sh)
    wanted "${name#*_}" && run "$name" "$program"
done
[ $ran -gt 0 ] || { echo "run.sh: no benchmark of that name" >&2; exit 64; }
printf '\n== side by side\n'
"$build/tests/bench-table" "$TEXTGEN_BENCH_JSON" | tee "$out/table.txt"
printf '\n%d benchmarks, %d failed; %s\n' $ran $failed "$TEXTGEN_BENCH_JSON"
[ $failed -eq 0 ]
