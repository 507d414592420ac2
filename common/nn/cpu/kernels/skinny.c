/* Products with few rows, as in decoding: the large operand is read once and never packed. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

static inline void put(float *out, float value, bool accumulate) {
    *out = accumulate ? *out + value : value;
}

/* MR rows of a against NR rows of b; MR and NR are constants after inlining. */
static inline __attribute__((always_inline)) void
dots_block(float *out, size_t ldm, size_t ldn, const float *a, size_t lda, const float *b,
           size_t ldb, int K, bool accumulate, const int MR, const int NR) {
    vf acc[4][4] = {{{0}}};
    int k = 0;
    for (; k + LANES <= K; k += LANES) {
        vf x[4], y[4];
        for (int i = 0; i < MR; i++) x[i] = vload(a + (size_t)i * lda + k);
        for (int j = 0; j < NR; j++) y[j] = vload(b + (size_t)j * ldb + k);
        for (int i = 0; i < MR; i++)
            for (int j = 0; j < NR; j++) acc[i][j] += x[i] * y[j];
    }
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < NR; j++) {
            float sum = vsum(acc[i][j]);
            for (int r = k; r < K; r++) sum += a[(size_t)i * lda + r] * b[(size_t)j * ldb + r];
            put(out + (size_t)i * ldm + (size_t)j * ldn, sum, accumulate);
        }
    }
}

void TG_KERNEL(dots)(float *out, size_t ldm, size_t ldn, const float *a, size_t lda, const float *b,
                     size_t ldb, int M, int N, int K, bool accumulate) {
#define BLOCK(MR, NR)                                                                              \
    dots_block(out + (size_t)m * ldm + (size_t)n * ldn, ldm, ldn, a + (size_t)m * lda, lda,        \
               b + (size_t)n * ldb, ldb, K, accumulate, MR, NR)
    int n = 0;
    for (; n + 4 <= N; n += 4) {
        int m = 0;
        for (; m + 4 <= M; m += 4) BLOCK(4, 4);
        for (; m < M; m++) BLOCK(1, 4);
    }
    for (; n < N; n++) {
        int m = 0;
        for (; m + 4 <= M; m += 4) BLOCK(4, 1);
        for (; m < M; m++) BLOCK(1, 1);
    }
#undef BLOCK
}

enum { DEPTH = 8 };

/* out[0..N) += sum over `depth` rows of b, times a[0..depth). DEPTH rows of b are held in registers
 * for all M rows of a. */
static inline __attribute__((always_inline)) void skinny_panel(float *out, size_t ldo,
                                                               const float *a, size_t lda,
                                                               const float *b, size_t ldb, int M,
                                                               int N, const int depth) {
    int n = 0;
    for (; n + LANES <= N; n += LANES) {
        vf y[DEPTH];
        for (int k = 0; k < depth; k++) y[k] = vload(b + (size_t)k * ldb + n);
        for (int m = 0; m < M; m++) {
            const float *am = a + (size_t)m * lda;
            float *o = out + (size_t)m * ldo + n;
            vf s0 = vload(o), s1 = {0};
            for (int k = 0; k < depth; k += 2) {
                s0 += y[k] * am[k];
                if (k + 1 < depth) s1 += y[k + 1] * am[k + 1];
            }
            vstore(o, s0 + s1);
        }
    }
    for (; n < N; n++) {
        for (int m = 0; m < M; m++) {
            float s = out[(size_t)m * ldo + n];
            for (int k = 0; k < depth; k++) s += a[(size_t)m * lda + k] * b[(size_t)k * ldb + n];
            out[(size_t)m * ldo + n] = s;
        }
    }
}

void TG_KERNEL(skinny)(float *out, size_t ldo, const float *a, size_t lda, const float *b,
                       size_t ldb, int M, int N, int K, bool accumulate) {
    if (!accumulate)
        for (int m = 0; m < M; m++) memset(out + (size_t)m * ldo, 0, (size_t)N * sizeof *out);
    int k = 0;
    for (; k + DEPTH <= K; k += DEPTH)
        skinny_panel(out, ldo, a + k, lda, b + (size_t)k * ldb, ldb, M, N, DEPTH);
    for (; k < K; k++) skinny_panel(out, ldo, a + k, lda, b + (size_t)k * ldb, ldb, M, N, 1);
}
