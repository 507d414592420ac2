/* Products with few rows, as in decoding: the large operand is read once and never packed. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

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
        int m = 0;
        for (; m + 4 <= M; m += 4)
            dots_block(o + (size_t)m * ldm, ldm, a + (size_t)m * lda, lda, bn, K, accumulate, 4);
        for (; m < M; m++)
            dots_block(o + (size_t)m * ldm, ldm, a + (size_t)m * lda, lda, bn, K, accumulate, 1);
    }
}

enum { WIDE = 16, ROWS_AT_ONCE = 8, LINE = 16 };

/* out[m][j] for 16 m and NR rows of b: the 16 values of at[k] lie in vector lanes, b is broadcast. `ahead` is where b will be read
 * next; fetching it in order of address, not row by row, keeps it one stream for the memory. */
static inline __attribute__((always_inline)) void
wide_block(float *out, size_t ldo, const float *at, const float *b, size_t ldb, int M, int K,
           bool accumulate, const float *ahead, const int NR) {
    enum { VECS = WIDE / LANES };
    vf acc[ROWS_AT_ONCE][VECS] = {{{0}}};
    const int per_line = LINE / NR;
    for (int k = 0; k < K; k++) {
        if (NR == ROWS_AT_ONCE && k % per_line == 0)
            __builtin_prefetch(ahead + (size_t)k * NR, 0, 2);
        for (int v = 0; v < VECS; v++) {
            vf x = vload(at + (size_t)k * WIDE + v * LANES);
            for (int j = 0; j < NR; j++) acc[j][v] += x * b[(size_t)j * ldb + k];
        }
    }
    for (int j = 0; j < NR; j++) {
        float sums[WIDE];
        memcpy(sums, acc[j], sizeof sums);
        for (int m = 0; m < M; m++) put(out + (size_t)m * ldo + j, sums[m], accumulate);
    }
}

void TG_KERNEL(wide)(float *out, size_t ldo, const float *at, const float *b, size_t ldb, int M,
                     int N, int K, bool accumulate) {
    for (int j = 0, step; j < N; j += step) {
        step = N - j >= ROWS_AT_ONCE ? ROWS_AT_ONCE : 1;
        for (int m = 0; m < M; m += WIDE) {
            const int rows = M - m < WIDE ? M - m : WIDE;
            const float *x = at + (size_t)m * (size_t)K, *y = b + (size_t)j * ldb;
            float *o = out + (size_t)m * ldo + j;
            const float *ahead = j + 2 * ROWS_AT_ONCE <= N ? y + ROWS_AT_ONCE * ldb : y;
            if (step == 1)
                wide_block(o, ldo, x, y, ldb, rows, K, accumulate, y, 1);
            else
                wide_block(o, ldo, x, y, ldb, rows, K, accumulate, ahead, ROWS_AT_ONCE);
        }
    }
}

enum { DEPTH = 8, TILE_FLOATS = 4096 };

/* tile (M rows, ld apart) += a[., 0..depth) b[0..depth, 0..N). The rows of b are held in registers for all rows of a. */
static inline __attribute__((always_inline)) void
skinny_panel(float *tile, size_t ld, const float *a, size_t lda, const float *b, size_t ldb, int M,
             int N, const int depth, const bool fetch) {
    const float *ahead = b + (size_t)depth * ldb;
    int n = 0, at = 0;
    for (; n + LANES <= N; n += LANES) {
        vf y[DEPTH];
        /* The next rows of b, in order of address: one stream for the memory, not one for each row. */
        for (int k = 0; fetch && k < depth * LANES; k += LINE) {
            __builtin_prefetch(ahead + at, 0, 2);
            at += LINE;
            if (at >= N) at = 0, ahead += ldb;
        }
        for (int k = 0; k < depth; k++) y[k] = vload(b + (size_t)k * ldb + n);
        for (int m = 0; m < M; m++) {
            const float *am = a + (size_t)m * lda;
            float *o = tile + (size_t)m * ld + n;
            vf s0 = vload(o), s1 = {0};
            for (int k = 0; k + 1 < depth; k += 2) s0 += y[k] * am[k], s1 += y[k + 1] * am[k + 1];
            if (depth % 2) s0 += y[depth - 1] * am[depth - 1];
            vstore(o, s0 + s1);
        }
    }
    for (; n < N; n++) {
        for (int m = 0; m < M; m++) {
            float s = tile[(size_t)m * ld + n];
            for (int k = 0; k < depth; k++) s += a[(size_t)m * lda + k] * b[(size_t)k * ldb + n];
            tile[(size_t)m * ld + n] = s;
        }
    }
}

static void skinny_tile(float *tile, size_t ld, const float *a, size_t lda, const float *b,
                        size_t ldb, int M, int N, int K) {
    int k = 0;
    for (; k + DEPTH <= K; k += DEPTH)
        skinny_panel(tile, ld, a + k, lda, b + (size_t)k * ldb, ldb, M, N, DEPTH, true);
    for (; k < K; k++) skinny_panel(tile, ld, a + k, lda, b + (size_t)k * ldb, ldb, M, N, 1, false);
}

/* The result is built in a dense tile of 16 rows: rows of out are often a multiple of 4 KB apart and would evict each other. The
 * part of b that a tile needs stays in the second cache for the next 16 rows. */
void TG_KERNEL(skinny)(float *out, size_t ldo, const float *a, size_t lda, const float *b,
                       size_t ldb, int M, int N, int K, bool accumulate) {
    float tile[TILE_FLOATS];
    const int height = M < 16 ? M : 16, width = M > 0 ? TILE_FLOATS / height & ~15 : 0;
    for (int n = 0; n < N && width > 0; n += width) {
        const int cols = N - n < width ? N - n : width;
        const size_t ld = (size_t)((cols + 15) & ~15), bytes = (size_t)cols * sizeof *out;
        for (int m0 = 0; m0 < M; m0 += height) {
            const int rows = M - m0 < height ? M - m0 : height;
            float *o = out + (size_t)m0 * ldo + n;
            for (int m = 0; m < rows; m++) {
                if (accumulate)
                    memcpy(tile + (size_t)m * ld, o + (size_t)m * ldo, bytes);
                else
                    memset(tile + (size_t)m * ld, 0, bytes);
            }
            skinny_tile(tile, ld, a + (size_t)m0 * lda, lda, b + n, ldb, rows, cols, K);
            for (int m = 0; m < rows; m++)
                memcpy(o + (size_t)m * ldo, tile + (size_t)m * ld, bytes);
        }
    }
}
