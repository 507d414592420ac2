#!/bin/bash
# D2: the same transcript from gcc and clang, without and with all optimization. Builds the tree four times, so only with CHAOS_LONG; what another
# machine (arm64) must print is in the same line.
. tests/support/servers.sh
n=20000
model model --episodes $n
figure "this build: $n episodes, digest $(sha256sum <"$work/model" | cut -c1-16)"
if long; then
    for kind in "gcc -O0" "gcc -O3" "clang -O0" "clang -O3"; do
        set -- $kind
        command -v "$1" >/dev/null || { echo "skipped: $1 is not here"; continue; }
        out=$BUILD/compilers/$1$2
        make --no-print-directory -j2 CC="$1" CFLAGS="$2" BUILD="$out" "$out/tests/env-play" >"$work/make.log" 2>&1; check "$kind does not build" $? "$work/make.log"
        "$PWD/$out/tests/env-play" --local --config "$config" --episodes $n --out "$work/other" 2>"$work/other.log"; same "$kind" other model $?
    done
fi
[ "$(wc -l <"$work/model")" -eq $n ]; check "episodes are missing" $?
finish
