#!/bin/bash
# `textgen train` as a supervisor: real processes and signals, with small scripts in the place of learner and workers
# (TEXTGEN_LIBEXEC). Every wait is for a condition with a generous deadline; nothing depends on speed.
. tests/support/script.sh supervise
cd "$work" || exit 70
export TEXTGEN_LIBEXEC=$work/bin STATE=$work/state
mkdir bin
bad() { failed=$((failed + 1)); echo "  $case_name: $1"; sed 's/^/    | /' "$work/err" | tail -n 15; }
expect() { if "${@:2}"; then ok; else bad "$1"; fi; }

# Both programs: note the pid, then do what $STATE/<name>.do says, forever by default. No grandchildren: only shell builtins.
cat >bin/textgen-learner <<'SH'
#!/bin/bash
name=${0##*/}
if [ "${1:-}" = check ]; then
    if [ -e "$STATE/$name.bad" ]; then echo "$name: c.yml:2: alg.id: no such thing" >&2; exit 78; fi
    if [ "$name" = textgen-env ]; then echo '{"train_evaluation": {"metrics": []}}'; else echo '{"train_evaluation": {"n_iters": 3}}'; fi
    exit 0
fi
eval "$(cat "$STATE/$name.trap" 2>/dev/null)" # before the pid is known: whoever waits for it may send signals
echo $$ >>"$STATE/$name.pids"
echo "$*" >>"$STATE/$name.args"
echo "${TEXTGEN_PARENT_FD:-}" >>"$STATE/$name.fd"
mkfifo "$STATE/wait.$$"; exec 9<>"$STATE/wait.$$"; rm "$STATE/wait.$$"
rest() { while :; do read -r -t 0.05 -u 9; [ -z "${1:-}" ] || [ ! -e "$1" ] || return 0; done; }
do=$(cat "$STATE/$name.do" 2>/dev/null)
eval "${do:-rest}"
SH
cp bin/textgen-learner bin/textgen-env; chmod +x bin/*
cat >c.yml <<'YML'
tokenizer: {model_name: m}
reward_fn: {id: r}
datapool: {id: d}
env: {n_envs: 1}
alg: {id: ppo}
train_evaluation: {n_iters: 3}
YML

begin() { case_name=$1; rm -rf state runs dir; mkdir state; : >err; }
start() { "$textgen" train c.yml --run-dir dir "$@" >out 2>err & run=$!; }
await() { wait "$run"; code=$?; }
count() { [ -e "$STATE/$1.pids" ] && wc -l <"$STATE/$1.pids" || echo 0; }
started() { for _ in $(seq 600); do [ "$(count "$1")" -ge "$2" ] && return 0; sleep 0.05; done; return 1; }
pids() { cat "$STATE"/*.pids 2>/dev/null; }
# A zombie is gone, even where process 1 does not collect it.
alive() { for p in $(pids); do [[ $(cut -d ' ' -f 3 "/proc/$p/stat" 2>/dev/null) = [RSDTt] ]] && return 0; done; return 1; }
all_gone() { for _ in $(seq 600); do alive || return 0; sleep 0.05; done; return 1; }
no_sockets() { ! ls -d /tmp/textgen-?????? 2>/dev/null | while read -r d; do [ -O "$d" ] && grep -q "$d/pool" "$STATE/textgen-learner.args" && echo "$d"; done | grep -q .; }
running() { started textgen-learner 1 && started textgen-env "$1"; }

begin "the learner's end is the run's end"
echo 'rest "$STATE/go"; exit 0' >state/textgen-learner.do
start --workers 3 seed=5
expect "did not start" running 3
touch state/go; await
expect "exit code $code" test "$code" -eq 0
expect "something still runs" all_gone
expect "socket folder left" no_sockets
expect "config.json" grep -q '"seed": 5' dir/config.json
expect "learner's arguments" grep -qE -- '^train --config dir/config.json --run-dir dir --bind ipc:///tmp/textgen-[^ ]*/pool$' state/textgen-learner.args
expect "worker's arguments" grep -qE -- '^--config dir/config.json --connect ipc:///tmp/textgen-[^ ]*/pool$' state/textgen-env.args
expect "parent descriptor" grep -qE '^[0-9]+$' state/textgen-env.fd

begin "Ctrl-Z stops all of them, and all go on"
in_state() { # in_state LETTERS: within a while every process is in one of these states
    local p all
    for _ in $(seq 600); do
        all=1
        for p in $run $(pids); do [[ $(cut -d ' ' -f 3 "/proc/$p/stat" 2>/dev/null) = [$1] ]] || all=0; done
        [ $all = 0 ] || return 0
        sleep 0.05
    done
    return 1
}
echo 'rest "$STATE/go"; exit 0' >state/textgen-learner.do
start --workers 2
expect "did not start" running 2
kill -TSTP "$run"
expect "not all are stopped" in_state T
kill -CONT "$run"
expect "not all go on" in_state RSD
touch state/go; await
expect "exit code $code" test "$code" -eq 0
expect "something still runs" all_gone

begin "addresses of the config's pool"
echo 'exit 0' >state/textgen-learner.do
start --workers 1 pool.bind=tcp://*:5999; await
expect "exit code $code" test "$code" -eq 0
expect "the learner does not listen there" grep -q -- '--bind tcp://\*:5999$' state/textgen-learner.args
start --resume --workers 3 pool.bind=null pool.connect=tcp://a:1,tcp://b:2; await
expect "exit code $code" test "$code" -eq 0
expect "the learner does not connect" grep -q -- '--connect tcp://a:1,tcp://b:2 --resume$' state/textgen-learner.args
expect "workers were started" sh -c '! grep -q tcp://a state/textgen-env.args 2>/dev/null'

begin "the learner's exit code is the run's"
echo 'mkdir -p "$5/checkpoints"; echo x >"$5/log.txt"; exit 65' >state/textgen-learner.do
start; await
expect "exit code $code" test "$code" -eq 65
expect "something still runs" all_gone
expect "a refused run leaves its folder" test ! -e dir
echo 'mkdir -p "$5/checkpoints/checkpoint_0"; exit 65' >state/textgen-learner.do
start; await
expect "a run that began loses its folder" test -e dir/checkpoints/checkpoint_0

begin "a killed learner ends the run with a reason"
start; running 2
mkdir -p dir/checkpoints/checkpoint_1
kill -9 "$(cat state/textgen-learner.pids)"; await
expect "exit code $code" test "$code" -eq 137
expect "no reason" grep -q 'the learner was ended by signal 9' err
expect "no hint" grep -q 'textgen train --resume --run-dir dir' err
expect "something still runs" all_gone

begin "nothing to go on from"
start; running 2
mkdir -p dir/checkpoints/checkpoint_1.tmp
kill -9 "$(cat state/textgen-learner.pids)"; await
expect "a hint at half a checkpoint" test "$(grep -c -e '--resume' err)" = 0

begin "a resume that is refused leaves the run as it was"
echo 'mkdir -p "$5/checkpoints/checkpoint_1"; exit 0' >state/textgen-learner.do
start; await
cp dir/config.json before.json
echo 'echo "textgen-learner: another config" >&2; exit 65' >state/textgen-learner.do
start --resume --seed 7; await
expect "exit code $code" test "$code" -eq 65
expect "it is not said that the config is replaced" grep -q 'config.json is replaced by the config given now' err
expect "the config of the run is lost" cmp before.json dir/config.json
expect "nor that it is put back" grep -q 'dir/config.json is what it was before' err
expect "a hint at what was just refused" test "$(grep -c 'to go on from the last checkpoint' err)" = 0

begin "a killed worker is reported and restarted"
echo 'rest "$STATE/go"; exit 0' >state/textgen-learner.do
start; running 2
kill -9 "$(head -n 1 state/textgen-env.pids)"
expect "no restart" started textgen-env 3
expect "no report" grep -q 'worker . ended with signal 9 (Killed); starting it again' err
touch state/go; await
expect "exit code $code" test "$code" -eq 0
expect "something still runs" all_gone

begin "workers that keep dying end the run"
echo 'echo "going down"; exit 70' >state/textgen-env.do
start --workers 5; await
expect "exit code $code" test "$code" -eq 69
expect "no reason" grep -q '10 restarts in 60 s are too many' err
expect "restarted $(count textgen-env) times" test "$(count textgen-env)" -le 15
expect "something still runs" all_gone

begin "a worker with a wrong config ends the run at once"
echo 'echo "textgen-env: c.yml:3: bad" >&2; exit 78' >state/textgen-env.do
start --workers 1; await
expect "exit code $code" test "$code" -eq 78
expect "the worker's error is not shown" grep -q 'worker 0: textgen-env: c.yml:3: bad' err
expect "restarted" test "$(count textgen-env)" -eq 1
expect "something still runs" all_gone

begin "workers' lines go to workers.log"
echo 'rest "$STATE/go"; exit 0' >state/textgen-learner.do
echo 'echo "ready here"; echo "2026 [ERROR] env: oh" >&2; printf "no newline" ; touch "$STATE/wrote"; rest' >state/textgen-env.do
start --workers 1; running 1
for _ in $(seq 600); do [ -e state/wrote ] && break; sleep 0.05; done
touch state/go; await
expect "a line is missing" grep -q '^worker 0: ready here$' dir/workers.log
expect "the last line is missing" grep -q '^worker 0: no newline$' dir/workers.log
expect "a plain line on stderr" sh -c '! grep -q "ready here" err'
expect "no error line on stderr" grep -q 'worker 0: 2026 \[ERROR\] env: oh' err

for sig in INT TERM; do
    begin "SIG$sig ends everything cleanly"
    echo 'trap "echo saved >\"$STATE/saved\"; exit 130" INT TERM' >state/textgen-learner.trap
    start --workers 2; running 2
    kill -$sig "$run"; await
    expect "exit code $code" test "$code" -eq 130
    expect "the learner could not save" test -e state/saved
    expect "something still runs" all_gone
    expect "socket folder left" no_sockets
done

# `textgen train 2>&1 | tee log`: Ctrl-C ends tee first, and with it the pipe that "interrupted" is written to
begin "nobody reads what it says"
echo 'trap "echo saved >\"$STATE/saved\"; exit 130" INT TERM' >state/textgen-learner.trap
mkfifo state/pipe; cat state/pipe >/dev/null & reader=$!
"$textgen" train c.yml --run-dir dir --workers 1 >out 2>state/pipe & run=$!
running 1
kill "$reader"; wait "$reader" 2>/dev/null
kill -INT "$run"; await
expect "exit code $code" test "$code" -eq 130
expect "the learner could not save" test -e state/saved
expect "something still runs" all_gone

begin "a second signal ends a learner that hangs"
echo 'trap "touch \"$STATE/asked\"" INT TERM' >state/textgen-learner.trap
start --workers 1; running 1
kill -TERM "$run"
for _ in $(seq 600); do [ -e state/asked ] && break; sleep 0.05; done
sleep 0.6
kill -TERM "$run"; await
expect "exit code $code" test "$code" -eq 137
expect "something still runs" all_gone

# timeout sends its signal to the process and to its group.
begin "one stop that comes as two signals lets the learner save"
echo 'trap "read -r -t 0.3 -u 9; echo saved >\"$STATE/saved\"; exit 130" INT TERM' >state/textgen-learner.trap
start --workers 1; running 1
kill -TERM "$run"; sleep 0.05; kill -TERM "$run"; await
expect "exit code $code" test "$code" -eq 130
expect "the learner could not save" test -e state/saved
expect "something still runs" all_gone

# An update of a large model takes longer than twenty seconds; it is not cut, and saved behind.
begin "a learner may take its time to save"
echo 'trap "read -r -t 21 -u 9; echo saved >\"$STATE/saved\"; exit 130" INT TERM' >state/textgen-learner.trap
start --workers 1; running 1
kill -TERM "$run"; await
expect "exit code $code" test "$code" -eq 130
expect "the learner could not save" test -e state/saved
expect "something still runs" all_gone

begin "no orphan survives kill -9 of the parent"
echo 'trap "" INT TERM HUP' >state/textgen-learner.trap
cp state/textgen-learner.trap state/textgen-env.trap
start --workers 3; running 3
sockets=$(sed -n 's#.*ipc://\(/tmp/textgen-[^/]*\)/pool.*#\1#p' state/textgen-learner.args)
kill -9 "$run"; await 2>/dev/null
expect "orphans: $(pids | tr '\n' ' ')" all_gone
rm -rf "$sockets"

begin "errors come before anything starts"
touch state/textgen-learner.bad
start; await
expect "exit code $code" test "$code" -eq 78
expect "not one line: $(wc -l <err)" test "$(wc -l <err)" -eq 1
expect "message" grep -qx 'textgen train: c.yml:2: alg.id: no such thing' err
expect "a folder was left" test ! -e dir
expect "something was started" test "$(count textgen-learner)" -eq 0

begin "a run folder in use is refused, --resume goes on"
echo 'exit 0' >state/textgen-learner.do
mkdir dir; echo x >dir/log.txt
start; await
expect "exit code $code" test "$code" -eq 64
expect "message" grep -q 'dir already holds a run' err
expect "something was written" test ! -e dir/config.json
start --resume; await
expect "resume: exit code $code" test "$code" -eq 0
expect "resume: --resume is not passed" grep -q -- '--resume' state/textgen-learner.args
"$textgen" train --resume --run-dir dir >out 2>err; code=$?
expect "resume without config: exit code $code" test "$code" -eq 0
"$textgen" train --resume --run-dir elsewhere >out 2>err; code=$?
expect "nothing to resume: exit code $code" test "$code" -eq 66
"$textgen" train c.yml --resume --run-dir elsewhere >out 2>err; code=$?
expect "nothing to resume: exit code $code" test "$code" -eq 66

begin "one process in a run folder"
start --workers 1; running 1
"$textgen" train c.yml --resume --run-dir dir >out 2>err2; code=$?
expect "exit code $code" test "$code" -eq 69
expect "message" grep -q 'dir: another process is training in this folder' err2
kill -9 "$run"; await 2>/dev/null
expect "something still runs" all_gone
echo 'exit 0' >state/textgen-learner.do
left=$(sed -n 's#.*ipc://\(/tmp/textgen-[^/]*\)/pool.*#\1#p' state/textgen-learner.args)
touch -d '2 minutes ago' "$left"
"$textgen" train c.yml --resume --run-dir dir >out 2>err; code=$?
expect "locked after kill -9: exit code $code" test "$code" -eq 0
expect "the killed run's socket folder is still there" test ! -e "$left"

begin "RL4LMs's flags"
echo 'mkdir -p "$5/checkpoints"; exit 0' >state/textgen-learner.do
flags=(--config_path c.yml --project_name p --experiment_name e --base_path_to_store_results "$work/runs" --entity_name x --log_to_wandb)
"$textgen" train "${flags[@]}" >out 2>err; code=$?
expect "exit code $code" test "$code" -eq 0
expect "run folder" test -e runs/p/e/config.json
expect "no word about wandb" grep -q 'log_to_wandb is not built' err
"$textgen" train "${flags[@]}" >out 2>err; code=$?
expect "second time: exit code $code" test "$code" -eq 0
expect "second time: no resume" sh -c 'tail -n 1 state/textgen-learner.args | grep -q -- --resume'

begin "default run folder"
echo 'mkdir -p "$5/checkpoints"; exit 0' >state/textgen-learner.do
"$textgen" train c.yml >out 2>err; code=$?
expect "exit code $code" test "$code" -eq 0
expect "folder name" sh -c 'ls runs | grep -qE "^c-[0-9]{8}-[0-9]{6}$"'

begin "a missing program is named"
TEXTGEN_LIBEXEC=$work/nowhere "$textgen" train c.yml --run-dir dir >out 2>err; code=$?
expect "exit code $code" test "$code" -eq 69
expect "message" grep -q 'nowhere/textgen-env is not there' err

begin "check prints the resolved config; list joins both programs"
"$textgen" check c.yml seed=4 >out 2>err; code=$?
expect "exit code $code" test "$code" -eq 0
cp out again.json; "$textgen" check again.json >out2 2>err
expect "the resolved config does not reload to itself" cmp -s out out2
"$textgen" check c.yml again.json nothere.yml >out 2>err; code=$?
expect "several: exit code $code" test "$code" -eq 66
expect "several: lines" test "$(grep -c '^✓' out),$(grep -c '^✗ nothere.yml' out)" = 2,1

finish
