#!/bin/bash
# R3: the learner is killed (-9) in the middle of a run and resumed, again and again. The weights at the end are those of a run that was left
# alone, byte for byte.
. tests/support/servers.sh
iters=$(size 8 40) wanted=$(size 3 200) total=0
train() { TEXTGEN_QUIET=1 "$bin/textgen" train "$config" train_evaluation.n_iters="$iters" train_evaluation.save_every=1 train_evaluation.eval_every=1000 --run-dir "$@" >"$work/train.log" 2>&1; }
train "$work/alone"; check "a run left alone" $? "$work/train.log"
while [ $total -lt "$wanted" ] && [ "$failed" -eq 0 ]; do
    rm -rf "$work/killed"
    resume=
    while :; do
        train "$work/killed" $resume &
        run=$!
        sleep 0.$((RANDOM % 9))$((RANDOM % 10))
        sleep "$(size 0.3 0.8)"
        learner=$(pgrep -f "textgen-learner.*$work/killed" | head -n 1)
        [ -n "$learner" ] && kill -9 "$learner" 2>/dev/null && total=$((total + 1))
        wait $run && break
        compgen -G "$work/killed/checkpoints/checkpoint_*" >/dev/null && resume=--resume || { resume=; rm -rf "$work/killed"; }
        [ $total -lt $((wanted * 3)) ] || break
        if [ $total -ge "$wanted" ]; then train "$work/killed" $resume; check "the last resumption" $? "$work/train.log"; break; fi
    done 2>/dev/null
    cmp -s "$work/killed/model/model.safetensors" "$work/alone/model/model.safetensors"; check "after $total kills the weights differ" $? "$work/train.log"
    cmp -s "$work/killed/rollout_info.jsonl" "$work/alone/rollout_info.jsonl"; check "after $total kills the rollouts differ" $?
done
figure "the learner was killed $total times"
finish
