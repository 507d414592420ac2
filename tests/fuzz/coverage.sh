#!/bin/bash
# Line coverage of what decodes bytes from others (protocol, HTTP, keys, lists, ZAP) by the corpus of its fuzz targets and its unit tests.
# Needs a finished `make tests` and gcov. Arguments: folders of further inputs, named like those in tests/fuzz/corpus (build/fuzz/corpus).
set -u
BUILD=${BUILD:-build} out=$PWD/${BUILD:-build}/coverage
decoders=(proto/*.c common/net/http_request.c common/net/allow.c common/net/keys.c common/net/zap.c)
[ ! -f common/net/zmtp.c ] || decoders+=(common/net/zmtp.c)
targets=(codec frame http_request allow)
units=(codec keys curve)
[ ! -f tests/fuzz/fuzz_zmtp.c ] || targets+=(zmtp)
rm -rf "$out" && mkdir -p "$out"
compile() { gcc -std=c11 -O0 -g "${@:3}" -pthread -D_GNU_SOURCE -DTG_VERSION='"0"' -I. -I"$BUILD/gen" -c -o "$2" "$1"; }
objects=()
for f in "${decoders[@]}"; do
    o=$out/$(basename "${f%.c}").o
    compile "$f" "$o" --coverage || exit 70
    objects+=("$o")
done
libs=("$BUILD"/lib{support,cli,env,learner,common}.a)
read -ra system <<<"$(pkg-config --libs libzmq libprotobuf-c libuv openblas yaml-0.1 jansson libpcre2-8 libutf8proc zlib libzstd snappy libcurl) -lm -ldl"
failed=0
run() { # SOURCE ARGUMENT...
    local name; name=$(basename "${1%.c}")
    compile "$1" "$out/$name.main.o" || exit 70
    gcc --coverage -pthread -o "$out/$name" "$out/$name.main.o" "${objects[@]}" "${libs[@]}" "${system[@]}" || exit 70
    BUILD=$BUILD "$out/$name" "${@:2}" >"$out/$name.log" 2>&1 || { failed=$((failed + 1)); tail -n 5 "$out/$name.log"; }
}
for t in "${targets[@]}"; do
    run "tests/fuzz/fuzz_$t.c"
    for more in "$@"; do [ ! -d "$more/$t" ] || find "$more/$t" -type f -print0 | xargs -0 -n 500 "$out/fuzz_$t" >/dev/null 2>&1; done
done
for t in "${units[@]}"; do run "tests/unit/test_$t.c"; done
lines=0 seen=0
for f in "${decoders[@]}"; do
    (cd "$out" && gcov -o . "$(basename "${f%.c}").o" >"$(basename "$f").sum" 2>/dev/null)
    read -r share n < <(awk -v f="$f" '$0 ~ "^File .*" f { on = 1 } on && /^Lines/ { gsub(/.*executed:|%/, ""); split($0, a, " of "); print a[1], a[2]; exit }' "$out/$(basename "$f").sum")
    printf '  %-32s %6s %% of %4s lines\n' "$f" "${share:-0}" "${n:-0}"
    lines=$((lines + ${n:-0})) seen=$(awk -v s="$seen" -v p="${share:-0}" -v n="${n:-0}" 'BEGIN { print s + p * n / 100 }')
done
awk -v s="$seen" -v n="$lines" -v f="$failed" 'BEGIN { p = (n ? 100 * s / n : 0); ok = (p >= 90 && !f); printf("  all: %.1f %% of %d lines\n%d passed, %d failed\n", p, n, ok, 1 - ok); exit 1 - ok }'
