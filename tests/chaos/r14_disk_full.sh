#!/bin/bash
# R14: the disk is full, or cannot be written, while a run saves. A clear error, the older checkpoint whole, nothing left running; with
# room again the run goes on and ends as if nothing had been.
. tests/support/servers.sh
disk=$work/disk
mkdir "$disk"
if ! mount -t tmpfs -o size=24m tmpfs "$disk" 2>/dev/null; then
    echo "skipped: no small file system can be mounted here"
    finish
fi
at_end() { umount -l "$disk" 2>/dev/null; end_all; }
train() { "$bin/textgen" train "$config" train_evaluation.n_iters=4 train_evaluation.save_every=1 train_evaluation.eval_every=100 --run-dir "$@" >"$work/train.log" 2>&1; }
train "$work/undisturbed"; check "an undisturbed run" $? "$work/train.log"
dd if=/dev/zero of="$disk/filler" bs=1M count=16 2>/dev/null
train "$disk/run"; st=$?
[ $st -eq 74 ]; check "a full disk ends with $st, not 74" $? "$work/train.log"
grep -q "$disk/run" "$work/train.log"; check "the error does not name the file" $? "$work/train.log"
[ "$(grep -c 'No space left' "$work/train.log")" = 1 ]; check "the error is said more than once" $? "$work/train.log"
rm "$disk/filler"
mount -o remount,size=200m "$disk"
train "$disk/run" --resume; check "resumed with room" $? "$work/train.log"
cmp -s "$disk/run/model/model.safetensors" "$work/undisturbed/model/model.safetensors"; check "the weights differ from an undisturbed run's" $?
cmp -s "$disk/run/rollout_info.jsonl" "$work/undisturbed/rollout_info.jsonl"; check "the rollouts differ" $?
# The disk answers with EIO from some moment on.
cat >"$work/eio.c" <<'C'
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd) { static int n; if (++n > 20) { errno = EIO; return -1; } return (int)syscall(SYS_fsync, fd); }
C
if [ -z "${SANITIZE:-}" ] && ${CC:-cc} -D_GNU_SOURCE -shared -fPIC -o "$work/eio.so" "$work/eio.c" 2>"$work/cc.log"; then
    LD_PRELOAD=$work/eio.so train "$disk/eio"; st=$?
    [ $st -eq 74 ]; check "EIO ends with $st, not 74" $? "$work/train.log"
    train "$disk/eio" --resume; check "resumed after EIO" $? "$work/train.log"
    cmp -s "$disk/eio/model/model.safetensors" "$work/undisturbed/model/model.safetensors"; check "the weights differ after EIO" $?
else
    echo "skipped: EIO (no plain C compiler here)"
fi
mount -o remount,ro "$disk"
train "$disk/other"; st=$?
[ $st -ne 0 ]; check "a read-only disk goes unnoticed" $? "$work/train.log"
grep -q "$disk" "$work/train.log"; check "the error does not name the folder" $? "$work/train.log"
finish
