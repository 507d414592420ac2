/* Matrix product and bias. Products with one column, and sums of rows (one row, transposed), go to kernels that read the large
 * operand once and do not pack it. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

typedef struct vector_job {
    const tg_cpu_kernels *k;
    float *out;
    const float *x, *m; /* a vector of K floats and a matrix */
    int N, K;
    bool accumulate;
} vector_job;

/* out[n] = x . row n of m (N,K) */
static void dots_range(void *arg, size_t first, size_t count) {
    const vector_job *j = arg;
    const size_t K = (size_t)j->K;
    j->k->dots(j->out + first, 0, 1, j->x, 0, j->m + first * K, K, 1, (int)count, j->K,
               j->accumulate);
}

/* out[n] = x . column n of m (K,N) */
static void columns_range(void *arg, size_t first, size_t count) {
    const vector_job *j = arg;
    j->k->skinny(j->out + first, 0, j->x, 0, false, j->m + first, (size_t)j->N, 1, (int)count, j->K,
                 j->accumulate);
}

static void vector_matrix(tg_backend *be, vector_job j, bool columns) {
    const size_t enough = 200000 / (size_t)j.K + 1; /* about 10 us */
    const size_t wanted = TG_MIN((size_t)4096, (size_t)j.N / 8);
    j.k = be->kernels;
    tg_cpu_for(be, (size_t)j.N, (TG_MAX(enough, wanted) + 63) & ~(size_t)63,
               columns ? columns_range : dots_range, &j);
}

void tg_cpu_matmul(tg_backend *be, float *out, const float *a, const float *b, int M, int N, int K,
                   bool ta, bool tb, bool accumulate, bool rounded) {
    if (M <= 0 || N <= 0) return;
    if (N == 1 && K > 0 && !rounded)
        vector_matrix(
            be, (vector_job){.out = out, .x = b, .m = a, .N = M, .K = K, .accumulate = accumulate},
            ta);
    else if (M == 1 && ta && K > 0 && !rounded)
        vector_matrix(
            be, (vector_job){.out = out, .x = a, .m = b, .N = N, .K = K, .accumulate = accumulate},
            !tb);
    else
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
                                   .rounded = rounded,
                                   .accumulate = accumulate});
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
