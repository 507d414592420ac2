/* Speed of an op, beside what the machine was measured to reach. The best of several repetitions:
 * the least disturbed one. */
#include "tests/ops/device.h"

#include "common/base/clock.h"

#include <time.h>

/* With one thread, the time that it had a CPU: other programs then hardly disturb the figure. */
static double now(bool one_thread) {
    struct timespec t;
    if (!one_thread || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return tg_clock_seconds();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ops_perf(ops_ctx *c, ops_problem *p) {
    for (int s = 0; s < c->n_subjects; s++) {
        tg_backend *be = c->subject[s];
        const bool one = tg_team_size(be->team) == 1;
        ops_device d;
        ops_device_open(&d, be, p);
        ops_device_run(&d, 1);
        double best = 1e9, start = tg_clock_seconds();
        for (int rep = 0; rep < 200 && (rep < 5 || tg_clock_seconds() - start < 0.4); rep++) {
            int times = best > 1e-3 ? 1 : best > 1e-4 ? 10 : 100;
            double t = now(one);
            ops_device_run(&d, times);
            t = (now(one) - t) / times;
            if (t < best) best = t;
        }
        double gflops = p->flops / best * 1e-9, gbs = p->bytes / best * 1e-9;
        printf("%-20s %-44s %10.3f ms", p->op, p->label, best * 1e3);
        if (gflops > 0)
            printf(" %8.1f GFLOP/s %3.0f %%", gflops, 100e9 * gflops / c->limit_flops);
        else
            printf(" %8s         %5s", "", "");
        if (gbs > 0) printf(" %7.1f GB/s %4.0f %%", gbs, 100e9 * gbs / c->limit_bytes.update);
        printf("\n");
        fflush(stdout);
        if (c->json)
            fprintf(
                c->json,
                "{\"bench\":\"op\",\"op\":\"%s\",\"case\":\"%s\",\"backend\":\"%s\",\"threads\":%d,"
                "\"seconds\":%.9g,\"gflops\":%.4g,\"gb_per_s\":%.4g}\n",
                p->op, p->label, be->vtable->name, tg_team_size(be->team), best, gflops, gbs);
        ops_device_close(&d);
    }
    ops_end(p);
}
