#!/bin/bash
# `textgen report` on a real short run: plots, page; the page opened in headless Chromium where that is installed
# (Debian: chromium): curves present, no script error, nothing fetched.
set -u
cd "$(dirname "$0")/../.." || exit 70
build=${BUILD:-build}
tmp=$(mktemp -d) || exit 70
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
check() { # NAME COMMAND…
    local name=$1; shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $name"; fi
}

for seed in 1 2; do
    "$build/textgen" train configs/increasing_numbers.yml train_evaluation.n_iters=3 train_evaluation.eval_every=2 env.n_envs=8 \
        alg.args.n_epochs=1 --seed $seed --workers 1 --run-dir "$tmp/run $seed" >"$tmp/log" 2>&1 || { tail -3 "$tmp/log"; failed=$((failed + 1)); }
done
"$build/textgen" report "$tmp/run 1" "$tmp/run 2" --out "$tmp/two.html" >"$tmp/out" 2>"$tmp/err"
check "exit code" [ $? -eq 0 ]
check "a plot on the terminal" grep -q "reward of an episode" "$tmp/out"
check "both runs are one group" grep -q "(2 runs)" "$tmp/out"
check "the page is named" grep -q "page: $tmp/two.html" "$tmp/err"
"$build/textgen" report "$tmp/run 1" --quiet >"$tmp/out" 2>/dev/null
check "a single run's page is in its folder" [ -s "$tmp/run 1/report.html" ]
check "quiet is quiet" [ ! -s "$tmp/out" ]
"$build/textgen" report "$tmp" 2>"$tmp/err"
check "no run: a data error" [ $? -eq 65 ]
check "the folder is named" grep -q "$tmp: holds no run" "$tmp/err"

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    echo "no Chromium here: the page was not opened in a browser"
else
    # A script that throws shows up in the log; one that runs moves the mouse and shows a value.
    sed 's|</body>|<script>const s = document.querySelector("#panels svg"), b = s.getBoundingClientRect();\
s.onmousemove({clientX: b.left + 200, clientY: b.top + 90});document.querySelector(".legend button").click();</script></body>|' \
        "$tmp/two.html" >"$tmp/driven.html"
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$tmp/profile" --enable-logging=stderr --v=0 \
        --virtual-time-budget=2000 --dump-dom "file://$tmp/driven.html" >"$tmp/dom" 2>"$tmp/console"
    check "the browser opened it" grep -q "</html>" "$tmp/dom"
    check "curves" [ "$(grep -c '<polyline' "$tmp/dom")" -ge 8 ]
    check "bands" [ "$(grep -c '<polygon' "$tmp/dom")" -ge 8 ]
    check "the pointer shows a value" grep -q 'id="tip" style="display: *block.*> *ppo[^<]* at [12]' "$tmp/dom"
    check "a click hides the group" grep -q '<polyline class="l0 g0"[^>]*style="display: none' "$tmp/dom"
    check "no script error" bash -c '! grep -E "Uncaught|CONSOLE.*[Ee]rror" "$1"' _ "$tmp/console"
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
