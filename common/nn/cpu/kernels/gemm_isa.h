/* What the kernels of matrix products have in common: the size of a block, transposing, the ends of a block. Private to kernels/. */
#ifndef TG_NN_CPU_KERNELS_GEMM_ISA_H
#define TG_NN_CPU_KERNELS_GEMM_ISA_H

#include "common/nn/cpu/kernels/kernels_isa.h"

#if defined(TG_ISA_AVX512)
enum { ROWS = 14 }; /* 28 sums, two vectors of b and a broadcast fill the 32 registers */
#else
enum { ROWS = 6 };
#endif
enum { COLS = 2 * LANES };

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

/* The lines of c that many rows need are fetched in the course of the loop, FETCH_ROW: all at once they would keep waiting what the loop
 * itself reads. */
enum { MANY_ROWS = 8, STEPS_A_ROW = 8 };

INLINE bool fetched_in_loop(const tg_gemm_block *g, const int R) {
    return R >= MANY_ROWS && g->depth >= R * STEPS_A_ROW;
}

INLINE void begin_rows(const tg_gemm_block *g, vf (*sum)[2], const int R) {
    for (int i = 0; i < R; i++) sum[i][0] = sum[i][1] = (vf){0};
    for (int i = 0; i < R && !fetched_in_loop(g, R); i++) {
        __builtin_prefetch(g->c + (size_t)i * g->ldc, 1, 3);
        if (COLS > 16) __builtin_prefetch(g->c + (size_t)i * g->ldc + 16, 1, 3);
    }
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

/* Fetches what comes next, two lines; one is as much as a step of a narrow panel. */
#define FETCH_NEXT(turns)                                                                          \
    __builtin_prefetch(ahead, 0, 2);                                                               \
    if (COLS > 16) __builtin_prefetch(ahead + g->fetch.pair, 0, 2);                                \
    ahead += ((turns)&g->fetch.turn) == g->fetch.turn ? g->fetch.jump : g->fetch.step

/* The same of c, in step `turn` of the loop. Beyond the last row the rows of the next block are fetched. */
#define FETCH_ROW(turn, R)                                                                         \
    if ((R) >= MANY_ROWS) {                                                                        \
        __builtin_prefetch(row, 1, 3);                                                             \
        __builtin_prefetch(row + 16, 1, 3);                                                        \
        row += ((turn) + 1) % STEPS_A_ROW ? 0 : g->ldc;                                            \
    }

/* block(g, R) with the number of rows as a constant. */
#define ROWS_CASE(block, g, R)                                                                     \
    case R:                                                                                        \
        block(g, R);                                                                               \
        break;
#define BY_ROWS_6(block, g)                                                                        \
    ROWS_CASE(block, g, 1)                                                                         \
    ROWS_CASE(block, g, 2)                                                                         \
    ROWS_CASE(block, g, 3)                                                                         \
    ROWS_CASE(block, g, 4)                                                                         \
    ROWS_CASE(block, g, 5)                                                                         \
    ROWS_CASE(block, g, 6)
#if defined(TG_ISA_AVX512)
#define BY_ROWS(block, g)                                                                          \
    switch ((g)->rows) {                                                                           \
        BY_ROWS_6(block, g)                                                                        \
        ROWS_CASE(block, g, 7)                                                                     \
        ROWS_CASE(block, g, 8)                                                                     \
        ROWS_CASE(block, g, 9)                                                                     \
        ROWS_CASE(block, g, 10)                                                                    \
        ROWS_CASE(block, g, 11)                                                                    \
        ROWS_CASE(block, g, 12)                                                                    \
        ROWS_CASE(block, g, 13)                                                                    \
        ROWS_CASE(block, g, 14)                                                                    \
    }
#else
#define BY_ROWS(block, g)                                                                          \
    switch ((g)->rows) { BY_ROWS_6(block, g) }
#endif

#endif
