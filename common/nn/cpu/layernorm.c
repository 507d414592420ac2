/* Layer normalisation, in blocks of rows. The gradients of gamma and beta are summed for each block
 * into the workspace, then over the blocks in order. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

typedef struct norm_job {
    const tg_cpu_kernels *k;
    float *y, *mean, *rstd;
    const float *x, *gamma, *beta, *dy;
    float *partial; /* (blocks, 2C) or NULL */
    float *dgamma, *dbeta;
    size_t block; /* rows */
    int n_blocks, C;
    float eps;
} norm_job;

static void forward_rows(void *arg, size_t first, size_t count) {
    const norm_job *j = arg;
    size_t at = first * (size_t)j->C;
    j->k->layernorm(j->y + at, j->mean + first, j->rstd + first, j->x + at, j->gamma, j->beta,
                    (int)count, j->C, j->eps);
}

void tg_cpu_layernorm_forward(tg_backend *be, float *y, float *mean, float *rstd, const float *x,
                              const float *gamma, const float *beta, int N, int C, float eps) {
    norm_job j = {.k = be->kernels,
                  .y = y,
                  .mean = mean,
                  .rstd = rstd,
                  .x = x,
                  .gamma = gamma,
                  .beta = beta,
                  .C = C,
                  .eps = eps};
    if (N > 0) tg_cpu_for(be, (size_t)N, tg_cpu_grain(16384, C), forward_rows, &j);
}

static void backward_rows(void *arg, size_t first, size_t count) {
    const norm_job *j = arg;
    size_t C = (size_t)j->C, at = first * C;
    float *partial = j->partial ? j->partial + first / j->block * 2 * C : NULL;
    if (partial) memset(partial, 0, 2 * C * sizeof *partial);
    j->k->layernorm_grad(j->y + at, partial, partial ? partial + C : NULL, j->dy + at, j->x + at,
                         j->mean + first, j->rstd + first, j->gamma, (int)count, j->C);
}

static void sum_blocks(void *arg, size_t first, size_t count) {
    const norm_job *j = arg;
    size_t ld = 2 * (size_t)j->C;
    j->k->column_sums(j->dgamma + first, j->partial + first, j->n_blocks, ld, (int)count);
    j->k->column_sums(j->dbeta + first, j->partial + j->C + first, j->n_blocks, ld, (int)count);
}

void tg_cpu_layernorm_backward(tg_backend *be, float *dx, float *dgamma, float *dbeta,
                               const float *dy, const float *x, const float *mean,
                               const float *rstd, const float *gamma, int N, int C) {
    if (N <= 0 || C <= 0) return;
    norm_job j = {.k = be->kernels,
                  .y = dx,
                  .dgamma = dgamma,
                  .dbeta = dbeta,
                  .dy = dy,
                  .x = x,
                  .gamma = gamma,
                  .C = C};
    j.mean = (float *)(uintptr_t)mean; /* only read */
    j.rstd = (float *)(uintptr_t)rstd;
    j.block = TG_MAX(tg_cpu_grain(16384, C), (size_t)32);
    if (dgamma) {
        size_t room = TG_CPU_OP_FLOATS / (2 * (size_t)C);
        TG_ASSERT(room > 0);
        j.block = TG_MAX(j.block, ((size_t)N + room - 1) / room);
        j.n_blocks = (int)(((size_t)N + j.block - 1) / j.block);
        j.partial = tg_backend_scratch(be, (size_t)j.n_blocks * 2 * (size_t)C * sizeof(float));
    }
    tg_cpu_for(be, (size_t)N, j.block, backward_rows, &j);
    if (dgamma)
        tg_cpu_for(be, (size_t)C, TG_MAX(tg_cpu_grain(16384, j.n_blocks), (size_t)64), sum_blocks,
                   &j);
}
