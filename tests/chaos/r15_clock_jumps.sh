#!/bin/bash
# R15: the clock of the host jumps by a day, again and again: nothing happens, only the monotonic clock counts.
. tests/support/servers.sh
n=$(size 2000 20000)
model model --episodes "$n"
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
    play jumps --address "$front" --episodes "$n"; st=$?
    unset LD_PRELOAD
    same "clock jumps" jumps model $st
    figure "$n episodes while the clock jumped by a day at every 50th reading"
else
    echo "skipped: clock jumps (no plain C compiler here)"
fi
finish
