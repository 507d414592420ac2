/* See bench_line.h. */
#include "tests/support/bench_line.h"

#include "common/base/clock.h"

#include <stdio.h>
#include <sys/resource.h>

double tg_bench_best(void (*run)(void *arg), void *arg) {
    run(arg);
    double best = 0, begin = tg_clock_seconds();
    for (int n = 0; n < 3 || tg_clock_seconds() - begin < 5; n++) {
        double t = tg_clock_seconds();
        run(arg);
        t = tg_clock_seconds() - t;
        if (n == 0 || t < best) best = t;
    }
    return best;
}

void tg_bench_line(const tg_bench_result *r) {
    printf("json {\"bench\": \"%s\", \"who\": \"%s\", \"seconds\": %.6g, \"flops\": %.6g, "
           "\"bytes\": %.6g, \"peak_mb\": %.1f}\n",
           r->name, r->who ? r->who : "textgen", r->seconds, r->flops, r->bytes, r->peak_mb);
    fflush(stdout);
}

double tg_bench_peak_mb(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1e3;
}
