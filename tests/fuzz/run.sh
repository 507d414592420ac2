#!/bin/bash
# Builds every tests/fuzz/fuzz_<name>.c with libFuzzer and AddressSanitizer and runs each for FUZZ_SECONDS (60), starting from
# tests/fuzz/corpus/<name>. New inputs stay in build/fuzz/corpus; an input that crashes is kept and named. Arguments: names.
set -u
seconds=${FUZZ_SECONDS:-60} out=build/fuzz
command -v clang >/dev/null || { echo "fuzz: needs clang and its runtimes (apt-get install clang libclang-rt-14-dev)" >&2; exit 69; }
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for f in tests/fuzz/fuzz_*.c; do f=${f##*/fuzz_}; names+=("${f%.c}"); done
fi
make --no-print-directory CC="${FUZZ_CC:-clang}" SANITIZE=fuzzer,address BUILD=$out CFLAGS="-O1 -g" \
    "${names[@]/#/$out/tests/fuzz/fuzz_}" || exit 70
passed=0 failed=0
for name in "${names[@]}"; do
    mkdir -p "$out/corpus/$name" "$out/crashes" "tests/fuzz/corpus/$name"
    if "$out/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$out/crashes/$name-" "$out/corpus/$name" "tests/fuzz/corpus/$name" >"$out/$name.log" 2>&1; then
        passed=$((passed + 1))
        printf '✓ %-20s %s runs in %s s, no crash\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$name.log")" "$seconds"
    else
        failed=$((failed + 1))
        printf '✗ %-20s see %s\n' "$name" "$out/$name.log"
        grep -aE 'ERROR|SUMMARY|Test unit written' "$out/$name.log" | sed 's/^/    /'
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
