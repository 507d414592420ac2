/* See bench_line.h. */
#include "tests/support/bench_line.h"

#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

bool tg_bench_quick(void) {
    const char *quick = getenv("TEXTGEN_BENCH_QUICK");
    return quick && *quick && *quick != '0';
}

double tg_bench_best(void (*run)(void *arg), void *arg) {
    const int least = tg_bench_quick() ? 1 : 3;
    const double seconds = tg_bench_quick() ? 0 : 5;
    run(arg);
    double best = 0, begin = tg_clock_seconds();
    for (int n = 0; n < least || tg_clock_seconds() - begin < seconds; n++) {
        double t = tg_clock_seconds();
        run(arg);
        t = tg_clock_seconds() - t;
        if (n == 0 || t < best) best = t;
    }
    return best;
}

void tg_bench_line(const tg_bench_result *r) {
    printf("json {\"bench\": \"%s\", \"who\": \"%s\", \"seconds\": %.6g, \"flops\": %.6g, "
           "\"bytes\": %.6g, \"first_flops\": %.6g, \"peak_mb\": %.1f, \"isa\": \"%s\"}\n",
           r->name, r->who ? r->who : "textgen", r->seconds, r->flops, r->bytes, r->first_flops,
           r->peak_mb, r->isa ? r->isa : "");
    fflush(stdout);
}

double tg_bench_peak_mb(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1e3;
}
