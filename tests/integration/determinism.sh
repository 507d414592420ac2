#!/bin/bash
# Same seed, same bytes: with 1, 2 and 5 workers, when the learner is killed and resumed, when it is asked to stop and resumed, and when a
# worker is killed. A tiny model is made first by a supervised run, which is held to the same.
. tests/support/script.sh determinism
. tests/support/numbers.sh
run=
at_end() { [ -z "$run" ] || kill "$run" 2>/dev/null; wait; }
cd "$work" || exit 70
export TEXTGEN_QUIET=1

numbers_texts 200 2 4 >texts.jsonl
head -n 10 texts.jsonl >few.jsonl

numbers_scratch 'n_layer: 1, n_head: 2, n_embd: 16, n_positions: 48' \
    'per_device_train_batch_size: 16, num_train_epochs: 30, learning_rate: 0.01, logging_steps: 50, save_steps: 30' >sft.yml
cat >ppo.yml <<YML
tokenizer: {model_name: $work/sft/model}
reward_fn: {id: increasing_numbers, args: {min_tokens: 8}}
datapool: {id: dummy_pool, args: {n_samples: 6, prompt: '<|endoftext|>'}}
env: {n_envs: 6, args: {max_prompt_length: 4, max_episode_length: 10, terminate_on_eos: true}}
alg:
  id: ppo
  args: {n_steps: 16, batch_size: 16, learning_rate: 0.003, n_epochs: 2, ent_coef: 0.001}
  kl_div: {coeff: 0.05, target_kl: 0.2}
  policy:
    id: causal_lm_actor_critic_policy
    args: {model_name: $work/sft/model, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 10}}
train_evaluation: {eval_batch_size: 4, n_iters: 40, eval_every: 15, save_every: 4, metrics: [{id: increasing_numbers, args: {min_tokens: 8}}]}
learner: {threads: 2}
seed: 5
YML

# train CONFIG DIR [options]: a whole run.
train() {
    "$textgen" train "$1" --run-dir "$2" "${@:3}" >"$2.log" 2>&1 && return 0
    bad "$2: textgen train ends with $?" "$2.log"
    return 1
}
# Every file that must not differ; timing, logs, checkpoints and config (it names the number of workers) may.
facts() { (cd "$1" && find . -type f \( -name '*_info.jsonl' -o -name '*_metrics.jsonl' -o -name '*_predictions.json' -o -path './model/*' \) | sort); }
same() { # same WHAT A B
    local f bad_file=
    [ "$(facts "$2")" = "$(facts "$3")" ] || { bad "$1: other files: $(diff <(facts "$2") <(facts "$3") | tr '\n' ' ')"; return; }
    for f in $(facts "$2"); do cmp -s "$2/$f" "$3/$f" || bad_file="$bad_file $f"; done
    if [ -z "$bad_file" ]; then ok; else bad "$1: these differ:$bad_file" "$3.log"; fi
}
has() { [ "$(facts "$1" | wc -l)" -ge "$2" ] && [ -s "$1/model/model.safetensors" ] && ok || bad "$1: too few files: $(facts "$1" | tr '\n' ' ')" "$1.log"; }
# wait_for PATTERN: until a file of that name is there; 1 when the run ends first.
# A signal must not meet the child while it is still this shell, with the shell's trap.
has_begun() { local name=; read -r name <"/proc/$run/comm"; [ "$name" != "${0##*/}" ] && [ "$name" != bash ]; } 2>/dev/null
wait_for() { while :; do has_begun && compgen -G "$1" >/dev/null && return 0; kill -0 "$run" 2>/dev/null || return 1; sleep 0.01; done; }
child() { pgrep -P "$run" -f "$1" | head -n 1; }

train sft.yml sft --workers 1 || { echo "$passed passed, $failed failed"; exit 1; }
has sft 14
train sft.yml sft2 --workers 2 && same "supervised, 2 workers" sft sft2

train ppo.yml one --workers 1 || { echo "$passed passed, $failed failed"; exit 1; }
has one 12
[ "$(wc -l <one/rollout_info.jsonl)" -eq 40 ] && ok || bad "40 iterations, $(wc -l <one/rollout_info.jsonl) lines"
train ppo.yml two --workers 2 && same "2 workers" one two
train ppo.yml five --workers 5 && same "5 workers" one five
# Whoever reads its messages may leave: the pipe breaks, the run does not.
env -u TEXTGEN_QUIET "$textgen" train ppo.yml --run-dir unread --workers 1 2>&1 | head -n 1 >unread.log
code=${PIPESTATUS[0]}; [ "$code" -eq 0 ] || bad "with nobody to read its messages a run ends with $code"
same "nobody reads its messages" one unread
train ppo.yml other --workers 1 --seed 6
cmp -s one/rollout_info.jsonl other/rollout_info.jsonl && bad "another seed gives the same run" || ok
# The first minibatch of every iteration sees the policy that generated: ratio 1, nothing clipped.
awk '{ if (match($0, /"first_ratio_error": [^,]*/)) { v = substr($0, RSTART + 21, RLENGTH - 21); if (v + 0 > 1e-5) bad = 1; n++ }
       if (match($0, /"first_clip_fraction": [^,]*/)) { v = substr($0, RSTART + 23, RLENGTH - 23); if (v + 0 != 0) bad = 1 } }
     END { exit bad || n != 40 }' one/timing.jsonl && ok || bad "the first ratio is not 1" one/timing.jsonl

# One network for policy and critic, single transitions; stopped after four iterations and extended to eight.
shared="alg.policy.args.critic=shared alg.args.minibatch=transition train_evaluation.eval_every=8"
train ppo.yml whole $shared train_evaluation.n_iters=8
train ppo.yml part $shared train_evaluation.n_iters=4
train ppo.yml part $shared train_evaluation.n_iters=8 --resume
cmp -s whole/model/model.safetensors part/model/model.safetensors && cmp -s whole/rollout_info.jsonl part/rollout_info.jsonl && ok || bad "shared critic, extended" part.log
train ppo.yml threads $shared train_evaluation.n_iters=8 --workers 3 learner.threads=1 && same "shared critic, 3 workers, 1 thread" whole threads
awk '{ if (match($0, /"first_ratio_error": [^,]*/)) { v = substr($0, RSTART + 21, RLENGTH - 21); if (v + 0 > 1e-5) bad = 1; n++ } }
     END { exit bad || n != 8 }' whole/timing.jsonl && ok || bad "the first ratio is not 1 with a shared critic" whole/timing.jsonl
[ ! -e whole/checkpoints/checkpoint_8/value.safetensors ] && ok || bad "a shared critic has no network of its own"

# Products in bf16: any number of workers and threads, the first ratio 1, and no going on in another precision.
half="alg.policy.args.compute_dtype=bf16 train_evaluation.n_iters=6 train_evaluation.eval_every=6 train_evaluation.save_every=3"
train ppo.yml half $half --workers 1 learner.threads=1
train ppo.yml half2 $half --workers 2 learner.threads=2 && same "bf16, 2 workers and threads" half half2
awk '{ if (match($0, /"first_ratio_error": [^,]*/)) { v = substr($0, RSTART + 21, RLENGTH - 21); if (v + 0 > 1e-5) bad = 1; n++ } }
     END { exit bad || n != 6 }' half/timing.jsonl && ok || bad "the first ratio is not 1 in bf16" half/timing.jsonl
cmp -s half/rollout_info.jsonl <(head -n 6 one/rollout_info.jsonl) && bad "bf16 gives the run of f32" || ok
if "$textgen" train ppo.yml --run-dir half2 $half alg.policy.args.compute_dtype=f32 --resume >half3.log 2>&1; then
    bad "a run in bf16 goes on in f32" half3.log
else
    grep -q 'another config' half3.log && ok || bad "resumed in another precision" half3.log
fi

# The other algorithms: any number of workers, and a run that was stopped after three iterations and extended to six.
masked="{id: maskable_causal_lm_actor_critic_policy, args: {model_name: $work/sft/model, mask_type: learned_top_p, top_mask: 0.8,
  min_tokens_to_keep: 5, target_update_iterations: 2, generation_kwargs: {do_sample: true, top_k: 0, max_new_tokens: 10}}}"
algorithm() { # algorithm NAME OVERRIDE…
    local name=$1; shift
    local n=train_evaluation.n_iters=6 often="train_evaluation.eval_every=6 train_evaluation.save_every=3"
    train ppo.yml "$name-whole" alg.id="$name" "$@" $n $often --workers 1
    train ppo.yml "$name-more" alg.id="$name" "$@" $n $often --workers 3 && same "$name, 3 workers" "$name-whole" "$name-more"
    train ppo.yml "$name-part" alg.id="$name" "$@" train_evaluation.n_iters=3 $often
    train ppo.yml "$name-part" alg.id="$name" "$@" $n $often --resume
    cmp -s "$name-whole/model/model.safetensors" "$name-part/model/model.safetensors" &&
        cmp -s "$name-whole/rollout_info.jsonl" "$name-part/rollout_info.jsonl" && ok || bad "$name, extended" "$name-part.log"
}
algorithm a2c 'alg.args={n_steps: 16, learning_rate: 0.003}'
algorithm nlpo "alg.policy=$masked"
[ -e nlpo-whole/checkpoints/checkpoint_6/mask.safetensors ] && ok || bad "a checkpoint of NLPO holds the mask model"
algorithm trpo 'alg.args={n_steps: 16, batch_size: 16, learning_rate: 0.003, n_critic_updates: 2, cg_max_steps: 4}'

# The last evaluation on val is written once, and twice where RL4LMs's behaviour is asked for.
train ppo.yml quirk train_evaluation.n_iters=2 train_evaluation.eval_every=2 compat=rl4lms
[ "$(wc -l <whole/val_split_metrics.jsonl) $(wc -l <quirk/val_split_metrics.jsonl)" = "2 3" ] && ok || bad "lines of val metrics" quirk.log

# hit NAME FILE FAULT MET: a run that meets with FAULT once FILE is there; again, up to five times, while MET says that it was over before. Leaves $code.
hit() {
    local _
    for _ in 1 2 3 4 5; do
        rm -rf "$1"
        "$textgen" train ppo.yml --run-dir "$1" --workers 2 >"$1.log" 2>&1 & run=$!
        wait_for "$2" || { kill "$run"; wait "$run"; run=; bad "$1: no $2" "$1.log"; return 1; }
        "$3"
        wait "$run"; code=$?; run=
        "$4" && return 0
    done
    bad "$1: the fault came too late five times" "$1.log"
    return 1
}

# The learner is killed after a checkpoint.
kill_learner() { local p; p=$(child textgen-learner); [ -z "$p" ] || kill -9 "$p"; }
was_killed() { [ "$code" -ne 0 ]; }
if hit killed "killed/checkpoints/checkpoint_*[0-9]" kill_learner was_killed; then
    ok
    # as if while it wrote; and something that is not a run's
    mkdir -p killed/model/incoming.tmp.7.1 && touch killed/model/tokenizer.json.tmp.7 killed/epoch_0_val_split_predictions.json.tmp.7 killed/mine.tmp.7
    train ppo.yml killed --resume --workers 3 && same "killed and resumed" one killed
    [ "$(find killed -name '*.tmp.*')" = killed/mine.tmp.7 ] && ok || bad "left of a killed run: $(find killed -name '*.tmp.*' | tr '\n' ' ')"
fi

# The run is asked to stop, twice, at no particular moment.
"$textgen" train ppo.yml --run-dir asked --workers 1 >asked.log 2>&1 & run=$!
if wait_for asked/rollout_info.jsonl; then
    kill -TERM "$run" 2>/dev/null; wait "$run"; code=$?; run=
    [ "$code" -eq 130 ] || [ "$code" -eq 143 ] || [ "$code" -eq 0 ] && ok || bad "asked to stop: exit code $code" asked.log
    "$textgen" train --run-dir asked --resume >asked.log 2>&1 & run=$!
    wait_for "asked/checkpoints/checkpoint_[1-3][0-9]"; kill -INT "$run" 2>/dev/null; wait "$run"; run=
    train ppo.yml asked --resume && same "stopped twice and resumed" one asked
else
    bad "no rollout" asked.log
fi
run=

# What a stop saves again keeps its score, by which the best checkpoint is kept.
"$textgen" train ppo.yml --run-dir scored --workers 1 train_evaluation.save_every=1 >scored.log 2>&1 & run=$!
if wait_for "scored/checkpoints/checkpoint_[2-9]"; then
    kill -TERM "$run" 2>/dev/null; wait "$run"
    grep -L '"score"' scored/checkpoints/checkpoint_*/state.json | grep -q . && bad "a checkpoint without a score" scored.log || ok
else
    bad "no checkpoint" scored.log
fi
run=

# Asked to stop while its worker is at the metrics, for ever: what was learnt is saved at once, and the evaluation is made up for.
long="datapool.args.n_samples=1000 train_evaluation.eval_batch_size=64 train_evaluation.eval_every=1 train_evaluation.save_every=9 train_evaluation.n_iters=5"
train ppo.yml evaluated $long --workers 1
"$textgen" train ppo.yml --run-dir stalled $long --workers 1 >stalled.log 2>&1 & run=$!
while [ ! -s stalled/rollout_info.jsonl ] && kill -0 "$run" 2>/dev/null; do sleep 0.01; done
if learner=$(child textgen-learner) && worker=$(child textgen-env) && kill -STOP "$worker"; then
    sleep 3 # the texts are there, and nobody who judges them
    kill -TERM "$learner"
    for _ in {1..200}; do kill -0 "$run" 2>/dev/null || break; sleep 0.1; done
    if kill -0 "$run" 2>/dev/null; then bad "a worker at the metrics: no stop within 20 s" stalled.log; kill -9 "$learner" "$worker"; else ok; fi
    wait "$run"; run=
    compgen -G 'stalled/checkpoints/checkpoint_[1-5]' >/dev/null && ok || bad "what was learnt before the metrics is not saved" stalled.log
    train ppo.yml stalled $long --resume && same "stopped at the metrics and resumed" evaluated stalled
else
    bad "no rollout" stalled.log
fi
run=

# A worker is killed in the middle of a run.
kill_workers() { local p; for _ in 1 2; do p=$(child textgen-env); [ -z "$p" ] || kill -9 "$p" 2>/dev/null; sleep 0.2; done; }
lost_one() { [ "$code" -ne 0 ] || tail -n 1 lost/timing.jsonl | grep -q '"workers_lost": [1-9]'; }
if hit lost lost/rollout_info.jsonl kill_workers lost_one; then
    ok
    [ "$code" -eq 0 ] && same "a worker killed" one lost || bad "a worker killed: exit code $code" lost.log
fi

# A supervised run, killed and resumed.
"$textgen" train sft.yml --run-dir sft3 --workers 1 >sft3.log 2>&1 & run=$!
if wait_for "sft3/checkpoints/checkpoint_*0"; then
    learner=$(child textgen-learner)
    [ -z "$learner" ] || kill -9 "$learner"
    wait "$run"; run=
    train sft.yml sft3 --resume --workers 2 && same "supervised, killed and resumed" sft sft3
else
    bad "no checkpoint" sft3.log
fi
run=

finish
