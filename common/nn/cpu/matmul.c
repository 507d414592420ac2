/* Matrix product and bias. Products with few rows or one column go to kernels of our own that do
 * not pack: in decoding the weights are read once per step, and packing them would double the
 * traffic. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

enum { SKINNY_ROWS = 16 };

typedef struct skinny_job {
    tg_backend *be;
    float *out;
    const float *a, *b; /* a: few rows of K floats */
    int M, N, K;
    size_t ldm, ldn; /* of out */
    bool accumulate;
} skinny_job;

static void dots_range(void *arg, size_t first, size_t count) {
    const skinny_job *j = arg;
    size_t K = (size_t)j->K;
    j->be->kernels->dots(j->out + first * j->ldn, j->ldm, j->ldn, j->a, K, j->b + first * K, K,
                         j->M, (int)count, j->K, j->accumulate);
}

static void skinny_range(void *arg, size_t first, size_t count) {
    const skinny_job *j = arg;
    j->be->kernels->skinny(j->out + first, j->ldm, j->a, (size_t)j->K, j->b + first, (size_t)j->N,
                           j->M, (int)count, j->K, j->accumulate);
}

/* Columns of the result in a tile: at least a cache line of b, at most what keeps the result in the
 * first cache. */
static size_t skinny_grain(int M, int N, int K) {
    size_t work = (size_t)M * (size_t)K; /* multiply-adds per column */
    size_t grain = (400000 / (work + 1) + 16) & ~(size_t)15;
    return TG_MIN(grain, ((size_t)TG_MAX(N, 1) / 8 + 64) & ~(size_t)15);
}

void tg_cpu_matmul(tg_backend *be, float *out, const float *a, const float *b, int M, int N, int K,
                   bool ta, bool tb, bool accumulate) {
    if (M <= 0 || N <= 0) return;
    if (M <= SKINNY_ROWS && (!ta || M == 1) && K > 0) {
        skinny_job j = {be, out, a, b, M, N, K, (size_t)N, 1, accumulate};
        tg_cpu_for(be, (size_t)N, skinny_grain(M, N, K), tb ? dots_range : skinny_range, &j);
    } else if (N == 1 && K > 0) { /* the transposed product: b is a row, a the large operand */
        skinny_job j = {be, out, b, a, 1, M, K, (size_t)M, 1, accumulate};
        tg_cpu_for(be, (size_t)M, skinny_grain(1, M, K), ta ? skinny_range : dots_range, &j);
    } else {
        tg_cpu_gemm(be, &(tg_gemm){.c = out,
                                   .a = a,
                                   .b = b,
                                   .M = M,
                                   .N = N,
                                   .K = K,
                                   .ldc = N,
                                   .lda = ta ? M : K,
                                   .ldb = tb ? K : N,
                                   .ta = ta,
                                   .tb = tb,
                                   .accumulate = accumulate});
    }
}

typedef struct bias_job {
    tg_backend *be;
    float *y, *db;
    const float *x;
    int N, C;
} bias_job;

static void bias_rows(void *arg, size_t first, size_t count) {
    const bias_job *j = arg;
    for (size_t i = first; i < first + count; i++)
        j->be->kernels->add(j->y + i * (size_t)j->C, j->x, (size_t)j->C);
}

void tg_cpu_bias_forward(tg_backend *be, float *y, const float *b, int N, int C) {
    bias_job j = {.be = be, .y = y, .x = b, .C = C};
    if (N > 0 && C > 0) tg_cpu_for(be, (size_t)N, tg_cpu_grain(32768, C), bias_rows, &j);
}

static void bias_columns(void *arg, size_t first, size_t count) {
    const bias_job *j = arg;
    j->be->kernels->column_sums(j->db + first, j->x + first, j->N, (size_t)j->C, (int)count);
}

void tg_cpu_bias_backward(tg_backend *be, float *db, const float *dy, int N, int C) {
    bias_job j = {.be = be, .db = db, .x = dy, .N = N, .C = C};
    if (N <= 0 || C <= 0) return;
    size_t grain = (tg_cpu_grain(32768, N) + 63) & ~(size_t)63;
    tg_cpu_for(be, (size_t)C, grain, bias_columns, &j);
}
