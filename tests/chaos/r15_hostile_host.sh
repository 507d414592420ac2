#!/bin/bash
# R15: the clock of the host jumps by a day, again and again: nothing happens, only the monotonic clock counts. R16: very few file
# descriptors, little memory: new sessions are refused, nothing crashes, those that are there go on. D3: putting an episode back gives
# the state that living it gave, after every step.
. tests/support/servers.sh
n=$(size 300 10000)
model model --episodes 4000
play twin --local --config "$config" --episodes "$n" --check-restore; same "restored after every step" twin "$([ "$n" -le 4000 ] && echo model || echo twin)" $?
[ "$(count twin restored)" -gt 500 ]; check "too few states were restored" $? "$work/twin.log"
figure "$(count twin restored) states put back, $(count twin wrong) differ"

cat >"$work/jump.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { static unsigned n; return (n++ / 50) % 2 ? 86400 : -86400; }
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += jump();
    return r;
}
int gettimeofday(struct timeval *t, void *z) {
    struct timespec s; (void)z; clock_gettime(CLOCK_REALTIME, &s);
    t->tv_sec = s.tv_sec; t->tv_usec = s.tv_nsec / 1000; return 0;
}
time_t time(time_t *out) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s); if (out) *out = s.tv_sec; return s.tv_sec; }
C
if [ -z "${SANITIZE:-}" ] && ${CC:-cc} -shared -fPIC -o "$work/jump.so" "$work/jump.c" -ldl 2>"$work/cc.log"; then
    export LD_PRELOAD=$work/jump.so
    broker; b=$started
    worker; w=$started
    play jumps --address "$front" --episodes 2000; st=$?
    unset LD_PRELOAD
    same "clock jumps" jumps model $st
    kill -9 $b $w; wait $b $w 2>/dev/null
else
    echo "skipped: clock jumps (no plain C compiler here)"
fi

# Over tcp: libzmq 4.3.4 ends the process when accept() on a socket of the file system finds no descriptor.
front=tcp://127.0.0.1:$((20000 + $$ % 20000)) back=tcp://127.0.0.1:$((20001 + $$ % 20000))
(ulimit -n 64; exec "$bin/textgen-broker" --front "$front" --back "$back" --heartbeat-ms $beat) >"$work/broker.log" 2>&1 &
b=$!
worker
play first --address "$front" --episodes 4000 --slots 8 & client=$!
for i in $(seq 40); do
    "$bin/textgen" bench env --address "$front" --sessions 3 --slots 1 --seconds 0.2 --warmup 0 >/dev/null 2>&1 &
    [ $((i % 20)) -ne 0 ] || sleep 0.5
done
wait $client; same "64 file descriptors" first model $?
kill -0 $b; check "the broker did not survive 64 file descriptors" $? "$work/broker.log"
kill -9 $b; wait $b 2>/dev/null
finish
