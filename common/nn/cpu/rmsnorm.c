/* Root-mean-square normalisation, in blocks of rows. The gradient of gamma is summed for each block into the workspace, then over
 * the blocks in order. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

typedef struct rms_job {
    const tg_cpu_kernels *k;
    float *y, *rstd;
    const float *x, *gamma, *dy, *fwd_rstd;
    float *partial; /* (blocks, C) or NULL */
    float *dgamma;
    size_t block; /* rows */
    int n_blocks;
    tg_rms_dims d;
    float eps;
    bool accumulate;
} rms_job;

static void forward_rows(void *arg, size_t first, size_t count) {
    const rms_job *j = arg;
    const size_t ld = (size_t)j->d.ld, H = (size_t)j->d.H;
    for (size_t i = first; i < first + count; i++) {
        const size_t at = i * ld;
        j->k->rmsnorm(j->y + at, j->rstd + i * H, j->x + at, j->gamma, H, (size_t)j->d.step, j->d.C,
                      j->eps, j->d.offset);
    }
}

void tg_cpu_rmsnorm_forward(tg_backend *be, float *y, float *rstd, const float *x,
                            const float *gamma, float eps, tg_rms_dims d) {
    rms_job j = {
        .k = be->kernels, .y = y, .rstd = rstd, .x = x, .gamma = gamma, .d = d, .eps = eps};
    if (d.N > 0) tg_cpu_for(be, (size_t)d.N, tg_cpu_grain(16384, d.C * d.H), forward_rows, &j);
}

static void backward_rows(void *arg, size_t first, size_t count) {
    const rms_job *j = arg;
    const size_t ld = (size_t)j->d.ld, H = (size_t)j->d.H, C = (size_t)j->d.C;
    float *partial = j->partial ? j->partial + first / j->block * C : NULL;
    if (partial) memset(partial, 0, C * sizeof *partial);
    for (size_t i = first; i < first + count; i++) {
        const size_t at = i * ld;
        j->k->rmsnorm_grad(j->y + at, partial, j->dy + at, j->x + at, j->fwd_rstd + i * H, j->gamma,
                           H, (size_t)j->d.step, j->d.C, j->d.offset, j->accumulate);
    }
}

static void sum_blocks(void *arg, size_t first, size_t count) {
    const rms_job *j = arg;
    j->k->column_sums(j->dgamma + first, j->partial + first, j->n_blocks, (size_t)j->d.C,
                      (int)count);
}

void tg_cpu_rmsnorm_backward(tg_backend *be, float *dx, float *dgamma, const float *dy,
                             const float *x, const float *rstd, const float *gamma, bool accumulate,
                             tg_rms_dims d) {
    if (d.N <= 0 || d.C <= 0) return;
    rms_job j = {.k = be->kernels,
                 .y = dx,
                 .dgamma = dgamma,
                 .dy = dy,
                 .x = x,
                 .fwd_rstd = rstd,
                 .gamma = gamma,
                 .accumulate = accumulate,
                 .d = d};
    const size_t N = (size_t)d.N, C = (size_t)d.C;
    j.block = TG_MAX(tg_cpu_grain(16384, d.C * d.H), (size_t)32);
    if (dgamma) {
        size_t room = TG_CPU_OP_FLOATS / C;
        TG_ASSERT(room > 0);
        j.block = TG_MAX(j.block, (N + room - 1) / room);
        j.n_blocks = (int)((N + j.block - 1) / j.block);
        j.partial = tg_backend_scratch(be, (size_t)j.n_blocks * C * sizeof(float));
    }
    tg_cpu_for(be, N, j.block, backward_rows, &j);
    if (dgamma)
        tg_cpu_for(be, C, TG_MAX(tg_cpu_grain(16384, j.n_blocks), (size_t)64), sum_blocks, &j);
}
