/* Products with few rows, as in decoding: the large operand is read once and never packed. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

enum { LINE = 16 }; /* floats in a cache line */

static inline void put(float *out, float value, bool accumulate) {
    *out = accumulate ? *out + value : value;
}

/* MR rows of a (a constant after inlining) against one row of b, which is read as a single stream: memory likes that best. */
static inline __attribute__((always_inline)) void dots_block(float *out, size_t ldm, const float *a,
                                                             size_t lda, const float *b, int K,
                                                             bool accumulate, const int MR) {
    vf even[4] = {{0}}, odd[4] = {{0}};
    int k = 0;
    for (; k + 2 * LANES <= K; k += 2 * LANES) {
        vf y0 = vload(b + k), y1 = vload(b + k + LANES);
        for (int i = 0; i < MR; i++) {
            even[i] += y0 * vload(a + (size_t)i * lda + k);
            odd[i] += y1 * vload(a + (size_t)i * lda + k + LANES);
        }
    }
    for (int i = 0; i < MR; i++) {
        float sum = vsum(even[i] + odd[i]);
        for (int r = k; r < K; r++) sum += a[(size_t)i * lda + r] * b[r];
        put(out + (size_t)i * ldm, sum, accumulate);
    }
}

void TG_KERNEL(dots)(float *out, size_t ldm, size_t ldn, const float *a, size_t lda, const float *b,
                     size_t ldb, int M, int N, int K, bool accumulate) {
    for (int n = 0; n < N; n++) {
        float *o = out + (size_t)n * ldn;
        const float *bn = b + (size_t)n * ldb;
        if (ldb >
            (size_t)K) /* a head's part of each row: the hardware does not foresee the jumps */
            for (int k = 0; k < K; k += LINE) __builtin_prefetch(bn + 8 * ldb + k, 0, 2);
        int m = 0;
        for (; m + 4 <= M; m += 4)
            dots_block(o + (size_t)m * ldm, ldm, a + (size_t)m * lda, lda, bn, K, accumulate, 4);
        for (; m < M; m++)
            dots_block(o + (size_t)m * ldm, ldm, a + (size_t)m * lda, lda, bn, K, accumulate, 1);
    }
}

enum { WIDE = 16, ROWS_AT_ONCE = 8 };

enum { VECS = WIDE / LANES };

/* acc[j] = the dot products of 16 rows with row j of NR rows of b: the 16 values of at[k] lie in vector lanes, b is broadcast. */
static inline __attribute__((always_inline)) void wide_sums(vf acc[ROWS_AT_ONCE][VECS],
                                                            const float *at, const float *b,
                                                            size_t ldb, int K, const int NR) {
    for (int k = 0; k < K; k++) {
        for (int v = 0; v < VECS; v++) {
            vf x = vload(at + (size_t)k * WIDE + v * LANES);
            for (int j = 0; j < NR; j++) acc[j][v] += x * b[(size_t)j * ldb + k];
        }
    }
}

static inline __attribute__((always_inline)) void
scores_block(float *out, const float *at, const float *b, size_t ldb, int K, const int NR) {
    vf acc[ROWS_AT_ONCE][VECS] = {{{0}}};
    wide_sums(acc, at, b, ldb, K, NR);
    for (int j = 0; j < NR; j++)
        for (int v = 0; v < VECS; v++) vstore(out + (size_t)j * TG_SCORE_LD + v * LANES, acc[j][v]);
}

void TG_KERNEL(wide_scores)(float *out, const float *at, const float *b, size_t ldb, int M, int N,
                            int K) {
    for (int m = 0; m < M; m += WIDE, at += (size_t)WIDE * (size_t)K) {
        int j = 0;
        for (; j + ROWS_AT_ONCE <= N; j += ROWS_AT_ONCE)
            scores_block(out + (size_t)j * TG_SCORE_LD + m, at, b + (size_t)j * ldb, ldb, K,
                         ROWS_AT_ONCE);
        for (; j + 4 <= N; j += 4)
            scores_block(out + (size_t)j * TG_SCORE_LD + m, at, b + (size_t)j * ldb, ldb, K, 4);
        for (; j < N; j++)
            scores_block(out + (size_t)j * TG_SCORE_LD + m, at, b + (size_t)j * ldb, ldb, K, 1);
    }
}

void TG_KERNEL(transpose16)(float *at, const float *a, size_t lda, int M, int K) {
    for (int m = 0; m < M; m += WIDE, at += (size_t)WIDE * (size_t)K, a += WIDE * lda) {
        const int rows = M - m < WIDE ? M - m : WIDE;
        for (int k = 0; k < K; k++) {
            float *to = at + (size_t)k * WIDE;
            if (rows == WIDE) {
#pragma omp simd
                for (int i = 0; i < WIDE; i++) to[i] = a[(size_t)i * lda + (size_t)k];
            } else {
                for (int i = 0; i < WIDE; i++)
                    to[i] = i < rows ? a[(size_t)i * lda + (size_t)k] : 0;
            }
        }
    }
}

enum { DEPTH = 8, TILE_FLOATS = 4096, K_BLOCK = 512 };

/* tile (M rows, ld apart) += op(a)[., 0..depth) b[0..depth, 0..N). The rows of b are held in registers for all rows of a. */
static inline __attribute__((always_inline)) void
skinny_panel(float *tile, size_t ld, const float *a, size_t lda, const float *b, size_t ldb, int M,
             int N, const int depth, const bool ta) {
    const float *ahead = b + (size_t)depth * ldb;
    const size_t row = ta ? 1 : lda, col = ta ? lda : 1;
    int n = 0, at = 0;
    for (; n + LANES <= N; n += LANES) {
        vf y[DEPTH];
        /* The next rows of b, in order of address: one stream for the memory, not one for each row. */
        for (int k = 0; depth == DEPTH && k < depth * LANES; k += LINE) {
            __builtin_prefetch(ahead + at, 0, 2);
            at += LINE;
            if (at >= N) at = 0, ahead += ldb;
        }
        for (int k = 0; k < depth; k++) y[k] = vload(b + (size_t)k * ldb + n);
        for (int m = 0; m < M; m++) {
            const float *am = a + (size_t)m * row;
            float *o = tile + (size_t)m * ld + n;
            vf s0 = vload(o), s1 = {0};
            for (int k = 0; k + 1 < depth; k += 2)
                s0 += y[k] * am[(size_t)k * col], s1 += y[k + 1] * am[(size_t)(k + 1) * col];
            if (depth % 2) s0 += y[depth - 1] * am[(size_t)(depth - 1) * col];
            vstore(o, s0 + s1);
        }
    }
    for (; n < N; n++) {
        for (int m = 0; m < M; m++) {
            float s = tile[(size_t)m * ld + n];
            for (int k = 0; k < depth; k++)
                s += a[(size_t)m * row + (size_t)k * col] * b[(size_t)k * ldb + n];
            tile[(size_t)m * ld + n] = s;
        }
    }
}

static inline __attribute__((always_inline)) void skinny_tile(float *tile, size_t ld,
                                                              const float *a, size_t lda,
                                                              const float *b, size_t ldb, int M,
                                                              int N, int K, const bool ta) {
#define PANEL(depth)                                                                               \
    skinny_panel(tile, ld, a + (size_t)k * (ta ? lda : 1), lda, b + (size_t)k * ldb, ldb, M, N,    \
                 depth, ta)
    int k = 0;
    for (; k + DEPTH <= K; k += DEPTH) PANEL(DEPTH);
    for (; k + 4 <= K; k += 4) PANEL(4);
    for (; k < K; k++) PANEL(1);
#undef PANEL
}

/* from NULL: zeros. Inline, because rows are often as short as a head. */
static inline void copy_rows(float *to, size_t ld_to, const float *from, size_t ld_from, int rows,
                             int cols) {
    for (int i = 0; i < rows; i++, to += ld_to) {
        int c = 0;
        for (; c + LANES <= cols; c += LANES)
            vstore(to + c, from ? vload(from + (size_t)i * ld_from + c) : (vf){0});
        for (; c < cols; c++) to[c] = from ? from[(size_t)i * ld_from + c] : 0;
    }
}

/* The result is built in a dense tile of 16 rows: rows of out are often a multiple of 4 KB apart and would evict each other. The
 * part of b that a tile needs stays in the second cache for the next 16 rows. */
void TG_KERNEL(skinny)(float *out, size_t ldo, const float *a, size_t lda, bool ta, const float *b,
                       size_t ldb, int M, int N, int K, bool accumulate) {
    float tile[TILE_FLOATS];
    if (M <= 0) return;
    const int height = M < 16 ? M : 16, width = TILE_FLOATS / height & ~15;
    const int k_block = M > 16 ? K_BLOCK : K;
    for (int n = 0; n < N; n += width) {
        const int cols = N - n < width ? N - n : width;
        const size_t ld = (size_t)((cols + 15) & ~15);
        for (int k = 0; k < K; k += k_block) {
            const int depth = K - k < k_block ? K - k : k_block;
            for (int m = 0; m < M; m += height) {
                const int rows = M - m < height ? M - m : height;
                float *o = out + (size_t)m * ldo + n;
                const float *x =
                    a + (ta ? (size_t)k * lda + (size_t)m : (size_t)m * lda + (size_t)k);
                const float *y = b + (size_t)k * ldb + n;
                copy_rows(tile, ld, accumulate || k ? o : NULL, ldo, rows, cols);
                if (ta)
                    skinny_tile(tile, ld, x, lda, y, ldb, rows, cols, depth, true);
                else
                    skinny_tile(tile, ld, x, lda, y, ldb, rows, cols, depth, false);
                copy_rows(o, ldo, tile, ld, rows, cols);
            }
        }
    }
}
