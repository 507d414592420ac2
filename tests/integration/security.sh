#!/bin/bash
# Keys from the command line, a learner and a worker that find each other with them, health, top, units.
set -u
BUILD=${BUILD:-build}
textgen=$BUILD/textgen env=$BUILD/textgen-env learner=$BUILD/textgen-learner
tmp=$(mktemp -d)
pids=()
trap 'for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null; done; rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $1"; [ $# -lt 2 ] || sed 's/^/    /' "$2" | tail -n 20; }
check() { if eval "$2"; then ok; else bad "$1 ($2)" "${3:-/dev/null}"; fi; }
wait_for() { for _ in $(seq 600); do grep -q -- "$2" "$1" 2>/dev/null && return 0; sleep 0.05; done; return 1; }
gone() { for _ in $(seq 400); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.05; done; return 1; }
# refuse CODE TEXT COMMAND…: the command fails with this code and says this.
refuse() {
    local code=$1 text=$2; shift 2
    timeout 20 "$@" >"$tmp/r.out" 2>&1; local got=$?
    check "$*: exit $code" "[ $got = $code ]" "$tmp/r.out"
    check "$*: says $text" "grep -q -- '$text' '$tmp/r.out'" "$tmp/r.out"
}

# ---- keygen -----------------------------------------------------------------------------------------
k=$tmp/keys; mkdir "$k"
check 'help has examples' '"$textgen" keygen --help | grep -q "textgen keygen learner --role client"'
"$textgen" keygen "$k/learner" >"$tmp/g.out" 2>&1; check 'a pair' "[ $? = 0 ]" "$tmp/g.out"
check 'the secret has mode 600' '[ "$(stat -c %a "$k/learner.key")" = 600 ]'
check 'the secret is not printed' '! grep -qF -- "$(sed -n "s/.*secret-key = \"\(.*\)\"/\1/p" "$k/learner.key")" "$tmp/g.out"'
check 'the public key has no secret' '! grep -q secret-key "$k/learner.pub"'
cp "$k/learner.key" "$tmp/before"
refuse 64 'not overwritten' "$textgen" keygen "$k/learner"
check 'and was not' 'cmp -s "$k/learner.key" "$tmp/before"'
"$textgen" keygen "$k/worker" --role worker --tenant pool --allow "$k/allow.txt" >/dev/null; check 'a line of the list' 'grep -q "  worker   pool$" "$k/allow.txt"' "$k/allow.txt"
"$textgen" keygen "$k/alice" --role client --tenant a >"$tmp/g.out"; check 'a line to copy' 'grep -qE "^.{40}  client   a$" "$tmp/g.out"' "$tmp/g.out"
"$textgen" keygen --from "$k/alice.pub" --role client --tenant a --allow "$k/allow.txt" >/dev/null; check 'a line for a public key' 'grep -qF -- "$(grep -E "^.{40}  client" "$tmp/g.out")" "$k/allow.txt"' "$k/allow.txt"
refuse 64 'unknown; expected client' "$textgen" keygen "$k/x" --role boss
refuse 64 'needs --role' "$textgen" keygen "$k/x" --allow "$k/allow.txt"
refuse 64 'letters, digits' "$textgen" keygen "$k/x" --role client --tenant 'a b'
check 'no files of refused commands' '[ ! -e "$k/x.key" ]'
"$textgen" keygen "$k/eve" >/dev/null

# ---- options that do not fit ------------------------------------------------------------------------
config=configs/increasing_numbers.yml
refuse 77 'without keys' "$env" --config $config --bind 'tcp://0.0.0.0:*'
refuse 64 'needs --allow' "$env" --config $config --bind 'tcp://0.0.0.0:*' --key "$k/learner.key"
refuse 64 'needs --key' "$env" --config $config --bind 'tcp://0.0.0.0:*' --allow "$k/allow.txt"
refuse 64 'needs --server-key' "$env" --config $config --connect 'tcp://127.0.0.1:9' --key "$k/worker.key"
chmod 644 "$k/worker.key"
refuse 77 'chmod 600' "$env" --config $config --connect 'tcp://127.0.0.1:9' --key "$k/worker.key" --server-key "$k/learner.pub"
chmod 600 "$k/worker.key"
echo 'nonsense' >"$tmp/bad.txt"
refuse 65 'bad.txt:1:' "$env" --config $config --bind 'tcp://127.0.0.1:*' --key "$k/learner.key" --allow "$tmp/bad.txt"

# ---- a learner on an address of the network, workers with and without a right to it ----------------------
port=$((20000 + RANDOM % 20000)) http=$((20000 + RANDOM % 20000))
"$learner" train --config $config --run-dir "$tmp/run" --bind "tcp://0.0.0.0:$port" --key "$k/learner.key" --allow "$k/allow.txt" \
    --http "127.0.0.1:$http" alg.args.n_steps=16 train_evaluation.n_iters=2 train_evaluation.eval_every=100 >"$tmp/l.out" 2>"$tmp/l.err" &
run=$!; pids+=("$run")
for _ in $(seq 200); do "$textgen" health --http "$http" --live --quiet && break; sleep 0.05; done
check 'alive' '"$textgen" health --http "$http" --live --quiet' "$tmp/l.err"
refuse 69 'waiting for workers' "$textgen" health --http "$http"
refuse 77 'not in its allow-list' "$env" --config $config --connect "tcp://127.0.0.1:$port" --key "$k/eve.key" --server-key "$k/learner.pub"
refuse 77 'may not be a worker' "$env" --config $config --connect "tcp://127.0.0.1:$port" --key "$k/alice.key" --server-key "$k/learner.pub"
"$env" --config $config --connect "tcp://127.0.0.1:$port" --key "$k/worker.key" --server-key "$k/learner.pub" --http 127.0.0.1:0 --log-format json \
    alg.args.n_steps=16 train_evaluation.n_iters=2 train_evaluation.eval_every=100 >"$tmp/w.out" 2>"$tmp/w.err" &
worker=$!; pids+=("$worker")
wait_for "$tmp/w.err" 'opened by textgen'; check 'the worker has a session' "[ $? = 0 ]" "$tmp/w.err"
whttp=$(sed -n 's|.*http://\(127.0.0.1:[0-9]*\)/.*|\1|p' "$tmp/w.err" | head -n 1)
check 'its log is JSON' 'head -n 1 "$tmp/w.err" | grep -qE "^\{\"ts\": \"[0-9T:.-]*Z\", \"level\": \"info\", \"area\": \"ops\", \"msg\": \".*\"\}$"' "$tmp/w.err"
check 'ready' '"$textgen" health --http "$whttp" | grep -q ok'
timeout 20 "$textgen" top "$whttp" "127.0.0.1:$http" --once --interval 0.2 >"$tmp/top.txt" 2>&1; check 'top' "[ $? = 0 ] && grep -q '^textgen-env .* serving' '$tmp/top.txt'" "$tmp/top.txt"
timeout 300 tail --pid="$run" -f /dev/null
wait "$run"; check 'the run ends well, encrypted' "[ $? = 0 ]" "$tmp/l.err"
check 'no secret in the run folder or the logs' '! grep -rqF "$(sed -n "s/.*secret-key = \"\(.*\)\"/\1/p" "$k/learner.key")" "$tmp/run" "$tmp/l.out" "$tmp/l.err" "$tmp/w.err"'
kill -TERM "$worker"; gone "$worker"; check 'the worker ends' "[ $? = 0 ]" "$tmp/w.err"

# ---- a worker that takes three steps at a time: the client keeps to it -------------------------------------
"$env" --config $config --bind "ipc://$tmp/three.sock" --max-batch 3 --max-message 2 >"$tmp/t.out" 2>"$tmp/t.err" &
three=$!; pids+=("$three")
wait_for "$tmp/t.out" '^textgen-env ready'; check 'limits' "[ $? = 0 ]" "$tmp/t.err"
timeout 60 "$textgen" bench env --address "ipc://$tmp/three.sock" --slots 32 --seconds 0.5 --warmup 0.1 --json "$tmp/three.json" >"$tmp/bench.txt" 2>&1
check 'a client of 32 slots' "[ $? = 0 ] && ! grep -qi 'fail.*[1-9]' '$tmp/bench.txt'" "$tmp/bench.txt"
kill -TERM "$three"
refuse 64 'max-batch is 1 to 4096' "$env" --config $config --bind "ipc://$tmp/x.sock" --max-batch 0

# ---- a broker: clients in front, workers behind, each with the right key only -------------------------------
"$textgen" keygen "$k/broker" >/dev/null
"$textgen-broker" --front 'tcp://127.0.0.1:*' --back 'tcp://127.0.0.1:*' --key "$k/broker.key" --allow "$k/allow.txt" --http 127.0.0.1:0 >"$tmp/b.out" 2>"$tmp/b.err" &
broker=$!; pids+=("$broker")
wait_for "$tmp/b.out" '^textgen-broker ready'; check 'the broker listens' "[ $? = 0 ]" "$tmp/b.err"
front=$(sed -n 's/.* front \([^ ]*\) .*/\1/p' "$tmp/b.out") back=$(sed -n 's/.* back \([^ ]*\) .*/\1/p' "$tmp/b.out")
bhttp=$(sed -n 's|.*http://\(127.0.0.1:[0-9]*\)/.*|\1|p' "$tmp/b.err" | head -n 1)
refuse 69 '0 of 1 workers have joined' "$textgen" health --http "$bhttp"
refuse 77 'may not be a worker' "$env" --config $config --connect "$back" --key "$k/alice.key" --server-key "$k/broker.pub"
"$env" --config $config --connect "$back" --key "$k/worker.key" --server-key "$k/broker.pub" >"$tmp/w2.out" 2>"$tmp/w2.err" &
worker=$!; pids+=("$worker")
wait_for "$tmp/w2.err" 'opened by textgen'; check 'a worker behind the broker' "[ $? = 0 ]" "$tmp/w2.err"
for _ in $(seq 100); do "$textgen" health --http "$bhttp" --quiet && break; sleep 0.05; done
check 'the broker is ready' '"$textgen" health --http "$bhttp" --quiet' "$tmp/b.err"
timeout 60 "$textgen" bench env --address "$front" --key "$k/alice.key" --server-key "$k/broker.pub" --slots 8 --seconds 0.5 --warmup 0.1 >"$tmp/bench.txt" 2>&1
check 'a client in front of it' "[ $? = 0 ]" "$tmp/bench.txt"
timeout 20 "$textgen" top "$bhttp" --once --interval 0.2 >"$tmp/top.txt" 2>&1
check 'top shows its worker' "grep -A1 '^textgen-broker' '$tmp/top.txt' | grep -qE '^  [0-9a-f]{8} .* serving'" "$tmp/top.txt"
grep -v '  worker ' "$k/allow.txt" >"$k/less.txt"; cat "$k/less.txt" >"$k/allow.txt"
kill -HUP "$broker"
gone "$worker"; check 'a worker whose key was removed is sent away' "[ $? = 0 ]" "$tmp/w2.err"
wait "$worker"; check 'and knows why' "[ $? = 77 ] && grep -q 'allow-list' '$tmp/w2.err'" "$tmp/w2.err"
kill -TERM "$broker"; gone "$broker"; check 'the broker ends' "[ $? = 0 ]" "$tmp/b.err"

# ---- units: what systemd says about them, where it is there ------------------------------------------------
if command -v systemd-analyze >/dev/null; then
    mkdir -p "$tmp/units"
    cp deploy/*.service deploy/*.target deploy/*.slice "$tmp/units/" 2>/dev/null
    sed -i "s|/usr/local/bin/|$(realpath "$BUILD")/|" "$tmp"/units/*.service
    for unit in "$tmp"/units/*.service; do
        name=$(basename "$unit"); instance=${name/@./@1.}
        systemd-analyze verify "$tmp/units/$instance" >"$tmp/v.txt" 2>&1
        check "$name: verify" '! grep -q "$name" "$tmp/v.txt"' "$tmp/v.txt"
        limit=15; [[ $name = *learner* ]] && limit=20
        systemd-analyze security --offline=true --threshold=$limit "$unit" >"$tmp/v.txt" 2>&1
        check "$name: exposure at most $limit" "[ $? = 0 ]" "$tmp/v.txt"
    done
else
    echo 'skipped: no systemd-analyze'
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
