#!/bin/bash
# Runs test programs one after the other, each with a deadline, and adds up their "N passed, N failed" lines.
# A program that prints no such line, crashes or runs out of time counts as one failure; its output is shown.
set -u
limit=${TEXTGEN_TEST_TIMEOUT:-${SANITIZE:+1800}} # sanitizers are slow
limit=${limit:-600}
export TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp ${TSAN_OPTIONS:-}"
passed=0 failed=0 bad=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ $# -gt 0 ] || { echo "run.sh: no tests given" >&2; exit 64; }
for program in "$@"; do
    name=${program#"$BUILD"/tests/}
    start=$(date +%s%N)
    # shellcheck disable=SC2086  # "tg-ops grad" is a program and its argument
    TEXTGEN_QUIET=1 timeout -k 10 "$limit" $program >"$log" 2>&1 </dev/null
    code=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    p=${line%% passed*} f=${line##*, } f=${f%% failed*}
    [ -n "$line" ] || { p=0 f=1; }
    if [ $code -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f))
    if [ "$f" -eq 0 ]; then
        printf '✓ %-44s %4d passed  %d.%03d s\n' "$name" "$p" $((ms / 1000)) $((ms % 1000))
        grep -a 'skipped:' "$log" | sort | uniq -c | sed 's/^ */    /'
    else
        bad+=("$name")
        printf '✗ %-44s %4d passed, %d failed (exit %d)  %d.%03d s\n' "$name" "$p" "$f" "$code" $((ms / 1000)) $((ms % 1000))
        [ $code -eq 124 ] && echo "    ran longer than $limit s"
        tail -n 60 "$log" | sed 's/^/    /'
    fi
done
[ ${#bad[@]} -eq 0 ] || printf 'failed: %s\n' "${bad[*]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
