/* Element by element, in runs of fixed size. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

enum { RUN = 16384, RUN_SUM = 65536 };

typedef struct map_job {
    const tg_cpu_kernels *k;
    float *y;
    const float *x;
    float a;
    double *sums;
} map_job;

#define MAP_RANGE(name, call)                                                                      \
    static void name(void *arg, size_t i, size_t n) {                                              \
        const map_job *j = arg;                                                                    \
        call;                                                                                      \
    }
MAP_RANGE(add_range, j->k->add(j->y + i, j->x + i, n))
MAP_RANGE(scale_range, j->k->scale(j->y + i, j->a, n))
MAP_RANGE(fill_range, j->k->fill(j->y + i, j->a, n))
MAP_RANGE(copy_range, memcpy(j->y + i, j->x + i, n * sizeof(float)))
MAP_RANGE(sumsq_range, j->sums[i / RUN_SUM] = j->k->sumsq(j->x + i, n))

void tg_cpu_add(tg_backend *be, float *y, const float *x, size_t n) {
    tg_cpu_for(be, n, 2 * RUN, add_range, &(map_job){.k = be->kernels, .y = y, .x = x});
}

void tg_cpu_scale(tg_backend *be, float *y, float a, size_t n) {
    tg_cpu_for(be, n, 2 * RUN, scale_range, &(map_job){.k = be->kernels, .y = y, .a = a});
}

void tg_cpu_fill(tg_backend *be, float *y, float a, size_t n) {
    tg_cpu_for(be, n, 4 * RUN, fill_range, &(map_job){.k = be->kernels, .y = y, .a = a});
}

void tg_cpu_copy(tg_backend *be, float *y, const float *x, size_t n) {
    tg_cpu_for(be, n, 4 * RUN, copy_range, &(map_job){.k = be->kernels, .y = y, .x = x});
}

/* Runs are summed in any order, their sums in order; the workspace bounds how many runs are open at
 * a time. */
double tg_cpu_sumsq(tg_backend *be, const float *x, size_t n) {
    enum { RUNS = 65536 };
    double *sums = tg_backend_scratch(be, RUNS * sizeof *sums), total = 0;
    for (size_t first = 0; first < n; first += (size_t)RUNS * RUN_SUM) {
        size_t count = TG_MIN(n - first, (size_t)RUNS * RUN_SUM);
        tg_cpu_for(be, count, RUN_SUM, sumsq_range,
                   &(map_job){.k = be->kernels, .x = x + first, .sums = sums});
        for (size_t i = 0; i < (count + RUN_SUM - 1) / RUN_SUM; i++) total += sums[i];
    }
    return total;
}
