/* Blocks of a matrix product from packed panels: R rows of a as [k][R], TG_GEMM_COLS columns of b as [k][columns], zeros behind the
 * last one.
 *
 * An element is summed over k in order by one chain of multiply-adds, whatever the number of rows or the edge it lies at: it
 * depends on its row and its column alone. */
#include "common/nn/cpu/kernels/gemm_isa.h"

#include "common/nn/bf16.h"

const int TG_KERNEL(gemm_rows) = ROWS, TG_KERNEL(gemm_cols) = COLS;

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

/* Pairs of steps: a word holds step k of a column in its lower half and step k + 1 in its upper one; 0 behind the last. */
void TG_KERNEL(halve_cols)(uint16_t *to, const float *from, int K) {
    for (int k = 0; k < K; k += 2, to += 2 * COLS, from += 2 * COLS)
#pragma omp simd
        for (int i = 0; i < COLS; i++) {
            to[2 * i] = tg_bf16_of_f32(from[i]);
            to[2 * i + 1] = k + 1 < K ? tg_bf16_of_f32(from[COLS + i]) : 0;
        }
}

INLINE void multiply(vf (*sum)[2], const float *a, vf b0, vf b1, const int R) {
    for (int i = 0; i < R; i++) {
        sum[i][0] += b0 * a[i];
        sum[i][1] += b1 * a[i];
    }
}

/* Rows come from the second cache, the third or, packed by another thread, from a core that may share none: far enough ahead for that. Panels
 * lie behind each other. */
INLINE void fetch_rows(const float *a) {
    enum { AHEAD = 448 };
    __builtin_prefetch(a + AHEAD, 0, 3);
}

/* Rows of b as they lie in memory are too far apart for the processor to find the next one by itself. */
INLINE void fetch_cols(const float *b, size_t ldb) {
    enum { AHEAD = 8 };
    __builtin_prefetch(b + AHEAD * ldb, 0, 3);
    if (COLS > 16) __builtin_prefetch(b + AHEAD * ldb + 16, 0, 3);
}

INLINE void multiply_full(const tg_gemm_block *g, vf (*sum)[2], const int R, const bool packing) {
    const float *a = g->a, *b = g->b, *row = g->c;
    const size_t ldb = packing ? g->ldb : COLS;
    const char *ahead = g->fetch.at;
    float *to = g->pack;
    for (int k = 0; k < g->depth; k++, a += R, b += ldb) {
        const vf b0 = vload(b), b1 = vload(b + LANES);
        if (packing) {
            vstore(to, b0);
            vstore(to + LANES, b1);
            to += COLS;
            fetch_cols(b, ldb);
        }
        FETCH_NEXT(k);
        FETCH_ROW(k, R);
        fetch_rows(a);
        multiply(sum, a, b0, b1, R);
    }
}

/* The same where nothing is packed, and nothing fetched but rows: most blocks. Where a block has few sums, what else a step does is half of
 * its instructions; so here are two steps. */
INLINE void multiply_only(const tg_gemm_block *g, vf (*sum)[2], const int R) {
    const float *a = g->a, *b = g->b;
    int k = 0;
    for (; k + 1 < g->depth; k += 2, a += 2 * R, b += 2 * COLS) {
        fetch_rows(a);
        multiply(sum, a, vload(b), vload(b + LANES), R);
        multiply(sum, a + R, vload(b + COLS), vload(b + COLS + LANES), R);
    }
    if (k < g->depth) multiply(sum, a, vload(b), vload(b + LANES), R);
}

typedef uint32_t vu __attribute__((vector_size(LANES * sizeof(uint32_t))));

INLINE vu words(const uint32_t *p) {
    vu w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* The floats of the lower halves of words, and of the upper ones. */
INLINE vf lower(vu w) {
    return (vf)(w << 16);
}

INLINE vf upper(vu w) {
    return (vf)(w & 0xffff0000u);
}

/* The inverse of halve_cols, for a panel that many rows are multiplied with. */
void TG_KERNEL(widen_cols)(float *to, const uint16_t *from, int K) {
    const uint32_t *word = (const void *)from;
    for (int k = 0; k < K; k += 2, to += 2 * COLS, word += COLS) {
        const vu w0 = words(word), w1 = words(word + LANES);
        vstore(to, lower(w0));
        vstore(to + LANES, lower(w1));
        if (k + 1 == K) break;
        vstore(to + COLS, upper(w0));
        vstore(to + COLS + LANES, upper(w1));
    }
}

/* The words are loaded again for their upper halves: kept, they would drive sums out of the registers. */
INLINE void multiply_half(const tg_gemm_block *g, vf (*sum)[2], const int R) {
    const float *a = g->a, *row = g->c;
    const uint32_t *b = g->b;
    const char *ahead = g->fetch.at;
    for (int k = 0; k < g->depth; k += 2, a += 2 * R, b += COLS) {
        const uint32_t *again = b;
        FETCH_NEXT(k / 2);
        FETCH_ROW(k / 2, R);
        multiply(sum, a, lower(words(b)), lower(words(b + LANES)), R);
        __asm__("" : "+r"(again));
        if (k + 1 < g->depth)
            multiply(sum, a + R, upper(words(again)), upper(words(again + LANES)), R);
    }
}

typedef enum { PACKED, ONLY, HALF, PACKING } form; /* of b; ONLY: PACKED, and nothing to fetch */

INLINE void block(const tg_gemm_block *g, const int R, const form b) {
    vf sum[ROWS][2];
    begin_rows(g, sum, R);
    if (b == HALF)
        multiply_half(g, sum, R);
    else if (b == ONLY)
        multiply_only(g, sum, R);
    else
        multiply_full(g, sum, R, b == PACKING);
    finish_rows(g, sum, R);
}

INLINE void packed_block(const tg_gemm_block *g, const int R) {
    block(g, R, PACKED);
}

INLINE void only_block(const tg_gemm_block *g, const int R) {
    block(g, R, ONLY);
}

INLINE void half_block(const tg_gemm_block *g, const int R) {
    block(g, R, HALF);
}

INLINE void packing_block(const tg_gemm_block *g, const int R) {
    block(g, R, PACKING);
}

void TG_KERNEL(gemm_block)(const tg_gemm_block *g) {
    if (g->half) {
        BY_ROWS(half_block, g)
    } else if (g->pack) {
        BY_ROWS(packing_block, g)
    } else if ((int)ROWS < (int)MANY_ROWS && !g->fetch.step) {
        BY_ROWS(only_block, g)
    } else {
        BY_ROWS(packed_block, g)
    }
}
