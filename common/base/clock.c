#include "common/base/clock.h"

#include <time.h>

uint64_t tg_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tg_clock_ms(void) {
    return tg_clock_ns() / 1000000u;
}

double tg_clock_seconds(void) {
    return (double)tg_clock_ns() * 1e-9;
}

void tg_clock_text(char *out, size_t size) {
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(out, size, "%Y-%m-%d %H:%M:%S", &local);
}
