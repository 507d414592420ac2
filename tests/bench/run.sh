#!/bin/bash
# Every benchmark, ours and right after it the peer's of the same case, and a table of both beside the machine's limit. Of models ours is run
# once more after the peer, which has several turns too (eager, compiled): the minutes differ by more than some cases do.
#
#   tests/bench/run.sh [GROUP…]     default: $BENCH, else all:
#                                   ops gemm gpt2 t5 head ppo growth choose metrics tokenizer env
#   QUICK=1      smaller shapes, each once: some minutes, to see that everything works; its figures mean little
#   PEERS=0      ours only
#   APPEND=1     keep earlier results; of two lines of one case the faster one counts
#
# Leaves in $BUILD/bench: results.jsonl, table.txt, table.md, machine.json and steps.txt (how long each part took).
#
# A benchmark is a program tests/bench/bench_NAME.c, a peer a script tests/bench/peer_NAME.sh: text on stdout; JSON lines there too (or
# appended to $TEXTGEN_BENCH_JSON); exit 0, or 77 when it cannot run here. A line {"bench", "who", "seconds"[, "flops", "first_flops", "bytes",
# "peak_mb", "isa"]} takes part in the table (tests/support/bench_line.h). A peer that is missing or fails is noted; ours fails the run.
set -u
cd "$(dirname "$0")/../.." || exit 70
build=${BUILD:-build}
out=$build/bench
quick=${QUICK:-0}
bin=$build/tests/bench
limit=${TEXTGEN_BENCH_TIMEOUT:-1200} # seconds of one part
mkdir -p "$out" || exit 74
export TEXTGEN_BENCH_JSON=$out/results.jsonl
export TEXTGEN_BENCH_QUICK=$quick
read -r -a groups <<<"${*:-${BENCH:-ops gemm gpt2 t5 head ppo growth choose metrics tokenizer env}}"
notes=() failed=0

# ---- the plan: GROUP|TITLE|COMMAND ---------------------------------------------------------------
plan=()
add() { plan+=("$1|$2|$3"); }
peer() { [ "$peers" = 1 ] && add "$1" "$2" "tests/bench/$3"; }
full() { [ "$quick" = 0 ]; }

have_avx512() { grep -qm1 avx512f /proc/cpuinfo; }

# plan_models GROUP PREFIX: each case of ours, torch's, ours again
plan_models() {
    local case
    add "$1" "limits of the machine" "limits"
    for case in $("$bin/bench_model" --list | grep "^$2"); do
        [[ $case = *_avx2 ]] && ! have_avx512 && continue # the same as without it
        add "$1" "$case" "$bin/bench_model $case"
        grep -qxF "$case" <<<"$torch_cases" && peer "$1" "$case, torch" "peer_torch.sh $case" &&
            full && add "$1" "$case again" "$bin/bench_model $case"
    done
}

plan_group() {
    local shapes
    case $1 in
    ops) add ops "limits of the machine" "limits"
        add ops "operations" "$build/tests/tg-ops perf $(full || echo -o adamw) --json $out/ops.jsonl" ;;
    gemm) add gemm "limits of the machine" "limits"
        add gemm "matrix products, OpenBLAS" "$bin/bench_gemm"
        shapes=$(grep '^gemm/' <<<"$torch_cases" | grep -v _avx2 | tr '\n' ' ')
        [ -n "$shapes" ] && peer gemm "matrix products, torch (MKL, oneDNN)" "peer_torch.sh $shapes" ;;
    gpt2) plan_models gpt2 gpt2-124m/ ;;
    t5) plan_models t5 t5-base/ ;;
    head) plan_models head head/ ;;
    ppo) add ppo "limits of the machine" "limits"
        add ppo "a PPO iteration" "$bin/bench_ppo"
        peer ppo "a PPO iteration, TRL" "peer_trl.sh"
        grep -q _bf16 tests/bench/bench_ppo.c && peer ppo "a PPO iteration, TRL in bf16" "peer_trl.sh --bf16"
        add ppo "limits of the machine" "limits" ;;
    growth) add growth "growth" "$bin/bench_growth"
        peer growth "growth, torch" "peer_torch.sh growth" ;;
    choose) add choose "choosing a token" "$bin/bench_sample" ;;
    metrics) add metrics "metrics" "$bin/bench_metrics $(full || echo 0.02)"
        full || export WORDS=10 # of a text, for the peer
        peer metrics "metrics, Python" "peer_metrics.sh"
        add metrics "growth of lexical metrics" "$bin/bench_lexical" ;;
    tokenizer) add tokenizer "tokenizers" "$bin/bench_tokenizer"
        peer tokenizer "tokenizers, Hugging Face" "peer_tokenizers.sh" ;;
    env) add env "environment server" "$bin/bench_env_server $(full || echo 0.3)"
        peer env "environments in Python" "peer_gym.sh $(full || echo 0.2)" ;;
    *) echo "run.sh: no group $1; there are: ops gemm gpt2 t5 head ppo growth choose metrics tokenizer env" >&2; exit 64 ;;
    esac
}

# ---- running ---------------------------------------------------------------------------------------
elapsed() { printf '%02d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

measure_limits() {
    "$build/tests/tg-ops" limits --json "$out/limits.jsonl" && cat "$out/limits.jsonl" >>"$TEXTGEN_BENCH_JSON" && rm -f "$out/limits.jsonl"
}

# Text to the screen, JSON to the file.
sort_lines() {
    local line
    while IFS= read -r line; do
        line=${line#json }
        if [[ $line = \{\"* ]]; then printf '%s\n' "$line" >>"$TEXTGEN_BENCH_JSON"; else printf '%s\n' "$line"; fi
    done
}

# run_step NUMBER TITLE COMMAND
run_step() {
    local number=$1 title=$2 code start=$SECONDS
    printf '\n== [%d/%d] %s  %s\n' "$number" ${#plan[@]} "$(elapsed)" "$title"
    if [ "$3" = limits ]; then measure_limits; code=$?
    else
        # shellcheck disable=SC2086 # words, on purpose
        timeout --foreground "$limit" $3 </dev/null | sort_lines
        code=${PIPESTATUS[0]}
    fi
    [ -e "$out/ops.jsonl" ] && cat "$out/ops.jsonl" >>"$TEXTGEN_BENCH_JSON" && rm -f "$out/ops.jsonl"
    printf '%5d s  %s\n' $((SECONDS - start)) "$title" >>"$out/steps.txt"
    [ $code -eq 0 ] && return
    case $code in
    77) title="not here: $title" ;;
    124) title="stopped after $limit s: $title" ;;
    *) title="exit $code: $title" ;;
    esac
    echo "note: $title"
    notes+=("$title")
    [[ $3 = tests/bench/peer_* ]] || failed=$((failed + 1))
}

cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
load=$(cut -d' ' -f1 /proc/loadavg)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
echo "machine: ${cpu:-unknown}, $(nproc) CPUs, load $load; commit $commit"
awk '$1 > 0.5 {print "note: other programs are running; the figures are too low"}' /proc/loadavg
peers=${PEERS:-1} torch_cases=
if [ "$peers" = 1 ]; then
    torch_cases=$(tests/bench/peer_torch.sh --list) || notes+=("torch, transformers and others cannot be had here (why: above)")
fi
for group in "${groups[@]}"; do plan_group "$group"; done
[ "${APPEND:-0}" = 1 ] || : >"$TEXTGEN_BENCH_JSON"
: >"$out/steps.txt"
for i in "${!plan[@]}"; do
    IFS='|' read -r _ title command <<<"${plan[$i]}"
    run_step $((i + 1)) "$title" "$command"
done

printf '\n== side by side\n'
"$build/tests/bench-table" "$TEXTGEN_BENCH_JSON" | tee "$out/table.txt"
{
    printf '%s, %s CPUs, load %s when it began, commit %s, %s, %s minutes%s.\n' "${cpu:-unknown}" "$(nproc)" "$load" "$commit" \
        "$(date -u +%F)" "$(elapsed)" "$(full || echo '; QUICK: smaller shapes, once')"
    "$build/tests/bench-table" --markdown "$TEXTGEN_BENCH_JSON"
} >"$out/table.md"
printf '{"cpu":"%s","cpus":%s,"kernel":"%s","commit":"%s","load":"%s","seconds":%d,"quick":%s,"groups":"%s"}\n' "${cpu:-unknown}" \
    "$(nproc)" "$(uname -r)" "$commit" "$load" $SECONDS "$quick" "${groups[*]}" >"$out/machine.json"
printf '\n%d parts in %s minutes, %d failed; %s, %s\n' ${#plan[@]} "$(elapsed)" $failed "$TEXTGEN_BENCH_JSON" "$out/table.md"
for note in ${notes[@]+"${notes[@]}"}; do echo "note: $note"; done
[ $failed -eq 0 ]
