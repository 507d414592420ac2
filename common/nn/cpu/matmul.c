/* Matrix product and bias. Products with few rows or one column go to kernels of our own that do
 * not pack: in decoding the weights are read once per step, and packing them would double the
 * traffic. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

enum { SKINNY_ROWS = 64, WIDE = 16, WIDE_FROM = 8 };

typedef struct skinny_job {
    tg_backend *be;
    float *out;
    const float *a, *b; /* a: few rows of K floats, or (wide) those in blocks of 16, transposed */
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

static void wide_range(void *arg, size_t first, size_t count) {
    const skinny_job *j = arg;
    size_t K = (size_t)j->K;
    j->be->kernels->wide(j->out + first, j->ldm, j->a, j->b + first * K, K, j->M, (int)count, j->K,
                         j->accumulate);
}

/* NULL: no room in the workspace. */
static const float *transpose_blocks(tg_backend *be, const float *a, int M, int K) {
    const size_t rows = ((size_t)M + WIDE - 1) / WIDE * WIDE, n = rows * (size_t)K;
    if (n > TG_CPU_SCRATCH_FLOATS) return NULL;
    float *at = tg_backend_scratch(be, n * sizeof *at);
    be->kernels->transpose16(at, a, (size_t)K, M, K);
    return at;
}

static void skinny_range(void *arg, size_t first, size_t count) {
    const skinny_job *j = arg;
    j->be->kernels->skinny(j->out + first, j->ldm, j->a, (size_t)j->K, false, j->b + first,
                           (size_t)j->N, j->M, (int)count, j->K, j->accumulate);
}

/* Columns of the result in a tile: enough work to be worth a tile (about 10 us); beyond that, eight tiles, or as many as keep the
 * tile's part of the result in the first cache. */
static size_t skinny_grain(int M, int N, int K) {
    size_t enough = 200000 / ((size_t)M * (size_t)K) + 1;
    size_t wanted = TG_MIN(4096 / (size_t)M, (size_t)N / 8);
    return (TG_MAX(enough, wanted) + 63) & ~(size_t)63;
}

void tg_cpu_matmul(tg_backend *be, float *out, const float *a, const float *b, int M, int N, int K,
                   bool ta, bool tb, bool accumulate) {
    if (M <= 0 || N <= 0) return;
    if (M <= SKINNY_ROWS && (!ta || M == 1) && K > 0) {
        skinny_job j = {be, out, a, b, M, N, K, (size_t)N, 1, accumulate};
        const float *at = tb && M >= WIDE_FROM ? transpose_blocks(be, a, M, K) : NULL;
        if (at) j.a = at;
        tg_cpu_for(be, (size_t)N, skinny_grain(M, N, K),
                   at   ? wide_range
                   : tb ? dots_range
                        : skinny_range,
                   &j);
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
