/* Blocks of a matrix product from packed panels: R rows of a as [k][R], TG_GEMM_COLS columns of b as [k][columns], zeros behind the
 * last one.
 *
 * An element is summed over k in order by one chain of multiply-adds, whatever the number of rows or the edge it lies at: it
 * depends on its row and its column alone. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include "common/nn/bf16.h"

#if defined(TG_ISA_AVX512)
enum { ROWS = 14 }; /* 28 sums, two vectors of b and a broadcast fill the 32 registers */
#else
enum { ROWS = 6 };
#endif
enum { COLS = 2 * LANES };

const int TG_KERNEL(gemm_rows) = ROWS, TG_KERNEL(gemm_cols) = COLS;

#define INLINE static inline __attribute__((always_inline))

/* Four rows by four. */
INLINE void transpose4(float *to, size_t ld_to, const float *from, size_t ld_from) {
    typedef float v4 __attribute__((vector_size(16)));
    v4 a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + ld_from, sizeof b);
    memcpy(&c, from + 2 * ld_from, sizeof c);
    memcpy(&d, from + 3 * ld_from, sizeof d);
    v4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
       ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    v4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5),
       cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    v4 r0 = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5),
       r1 = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    v4 r2 = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5),
       r3 = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
    memcpy(to, &r0, sizeof r0);
    memcpy(to + ld_to, &r1, sizeof r1);
    memcpy(to + 2 * ld_to, &r2, sizeof r2);
    memcpy(to + 3 * ld_to, &r3, sizeof r3);
}

#if defined(TG_ISA_AVX512) || defined(TG_ISA_AVX2)
/* Eight rows by eight: pairs of floats, then of pairs, then halves change places. */
INLINE void transpose8(float *to, size_t ld_to, const float *from, size_t ld_from) {
    typedef float v8 __attribute__((vector_size(32)));
    v8 r[8], s[8];
    for (int i = 0; i < 8; i++) memcpy(&r[i], from + (size_t)i * ld_from, sizeof r[i]);
    for (int i = 0; i < 8; i += 2) {
        s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) {
            r[i + 2 * h] =
                __builtin_shufflevector(s[i + h], s[i + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * h + 1] =
                __builtin_shufflevector(s[i + h], s[i + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        v8 low = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v8 high = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        memcpy(to + (size_t)i * ld_to, &low, sizeof low);
        memcpy(to + (size_t)(i + 4) * ld_to, &high, sizeof high);
    }
}
#define BLOCK 8
#define TRANSPOSE_BLOCK transpose8
#else
#define BLOCK 4
#define TRANSPOSE_BLOCK transpose4
#endif

/* `rows` rows, BLOCK or fewer, over k0 .. k1 - 1. */
INLINE void transpose_rows(float *to, size_t ld_to, const float *from, size_t ld_from, int rows,
                           int k0, int k1) {
    int k = k0;
    if (rows == BLOCK)
        for (; k + BLOCK <= k1; k += BLOCK)
            TRANSPOSE_BLOCK(to + (size_t)k * ld_to, ld_to, from + k, ld_from);
    else if (rows == 4)
        for (; k + 4 <= k1; k += 4) transpose4(to + (size_t)k * ld_to, ld_to, from + k, ld_from);
    for (; k < k1; k++)
        for (int i = 0; i < rows; i++) to[(size_t)k * ld_to + i] = from[(size_t)i * ld_from + k];
}

/* to[k * ld_to + i] = from[i * ld_from + k], a few cache lines of a few rows at a time: rows a multiple of 4 KB apart evict each
 * other. The last rows may be done twice. */
INLINE void transpose(float *to, size_t ld_to, const float *from, size_t ld_from, int rows, int K) {
    enum { RUN = 64 };
    for (int k0 = 0, k1; k0 < K; k0 = k1) {
        k1 = K - k0 < RUN ? K : k0 + RUN;
        int i = 0;
        for (; i + BLOCK <= rows; i += BLOCK)
            transpose_rows(to + i, ld_to, from + (size_t)i * ld_from, ld_from, BLOCK, k0, k1);
        if (i == rows) continue;
        const int left = rows >= BLOCK ? BLOCK : rows >= 4 ? 4 : rows;
        for (; i < rows; i += left) {
            const int at = i + left > rows ? rows - left : i;
            transpose_rows(to + at, ld_to, from + (size_t)at * ld_from, ld_from, left, k0, k1);
        }
    }
}

void TG_KERNEL(pack_rows)(float *to, const float *a, size_t lda, bool ta, int rows, int K) {
    if (!ta)
        transpose(to, (size_t)rows, a, lda, rows, K);
    else if (rows == ROWS)
        for (int k = 0; k < K; k++)
            memcpy(to + (size_t)k * ROWS, a + (size_t)k * lda, ROWS * sizeof *to);
    else
        for (int k = 0; k < K; k++)
            for (int i = 0; i < rows; i++) to[(size_t)k * rows + i] = a[(size_t)k * lda + i];
}

void TG_KERNEL(pack_cols)(float *to, const float *b, size_t ldb, bool tb, int cols, int K) {
    if (cols < COLS) memset(to, 0, (size_t)K * COLS * sizeof *to);
    if (tb)
        transpose(to, COLS, b, ldb, cols, K);
    else if (cols == COLS)
        for (int k = 0; k < K; k++, to += COLS, b += ldb) memcpy(to, b, COLS * sizeof *to);
    else
        for (int k = 0; k < K; k++, to += COLS, b += ldb) memcpy(to, b, (size_t)cols * sizeof *to);
}

INLINE void finish_rows(const tg_gemm_block *g, vf (*sum)[2], const int R) {
    float edge[ROWS][COLS];
    for (int i = 0; i < R; i++) {
        float *c = g->c + (size_t)i * g->ldc;
        if (g->cols == COLS) {
            vf s0 = sum[i][0], s1 = sum[i][1];
            if (g->add) s0 = vload(c) + s0, s1 = vload(c + LANES) + s1;
            if (g->bias) s0 += vload(g->bias), s1 += vload(g->bias + LANES);
            vstore(c, s0);
            vstore(c + LANES, s1);
        } else {
            vstore(edge[i], sum[i][0]);
            vstore(edge[i] + LANES, sum[i][1]);
            for (int j = 0; j < g->cols; j++) {
                float s = g->add ? c[j] + edge[i][j] : edge[i][j];
                c[j] = g->bias ? s + g->bias[j] : s;
            }
        }
    }
}

/* Step k of a panel of b. In a bf16 panel column j of the first vector and of the second share a word, the first in the lower half:
 * a shift and a mask make floats of both. */
INLINE void load_b(const void *b, size_t k, const bool half, vf *b0, vf *b1) {
    if (half) {
        typedef uint32_t vu __attribute__((vector_size(LANES * sizeof(uint32_t))));
        vu both, low, high;
        memcpy(&both, (const uint32_t *)b + k * LANES, sizeof both);
        low = both << 16;
        high = both & 0xffff0000u;
        memcpy(b0, &low, sizeof low);
        memcpy(b1, &high, sizeof high);
    } else {
        *b0 = vload((const float *)b + k * COLS);
        *b1 = vload((const float *)b + k * COLS + LANES);
    }
}

void TG_KERNEL(halve_cols)(uint16_t *to, const float *from, int K) {
    for (int k = 0; k < K; k++, to += COLS, from += COLS)
#pragma omp simd
        for (int i = 0; i < LANES; i++) {
            to[2 * i] = tg_bf16_of_f32(from[i]);
            to[2 * i + 1] = tg_bf16_of_f32(from[LANES + i]);
        }
}

INLINE void block(const tg_gemm_block *g, const int R, const bool half) {
    vf sum[ROWS][2];
    for (int i = 0; i < R; i++) sum[i][0] = sum[i][1] = (vf){0};
    const float *a = g->a;
    const char *ahead = g->fetch.at;
    const size_t pair = g->fetch.pair, step = g->fetch.step, jump = g->fetch.jump;
    const int turn = g->fetch.turn;
    for (int i = 0; i < R; i++) {
        __builtin_prefetch(g->c + (size_t)i * g->ldc, 1, 3);
        if (COLS > 16) __builtin_prefetch(g->c + (size_t)i * g->ldc + 16, 1, 3);
    }
    for (int k = 0; k < g->depth; k++) {
        vf b0, b1;
        load_b(g->b, (size_t)k, half, &b0, &b1);
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(ahead + pair, 0, 2);
        ahead += (k & turn) == turn ? jump : step;
        for (int i = 0; i < R; i++) {
            sum[i][0] += b0 * a[i];
            sum[i][1] += b1 * a[i];
        }
        a += R;
    }
    finish_rows(g, sum, R);
}

INLINE void any_block(const tg_gemm_block *g, const bool half) {
    switch (g->rows) {
#define CASE(R)                                                                                    \
    case R: block(g, R, half); break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if defined(TG_ISA_AVX512)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
#endif
    }
}

void TG_KERNEL(gemm_block)(const tg_gemm_block *g) {
    if (g->half)
        any_block(g, true);
    else
        any_block(g, false);
}
