/* Blocks of a matrix product of bf16 by bf16 with f32 sums, for processors that multiply pairs of them: both operands hold steps k and
 * k + 1 in one word, R rows of a as [k / 2][R]. Twice the speed of f32 where it is there.
 *
 * As in gemm.c, an element depends on its row and its column alone. */
#include "common/nn/cpu/kernels/gemm_isa.h"

#if defined(TG_ISA_AVX512)
#include <immintrin.h>

#define PAIRS __attribute__((target("avx512bf16")))

/* Rows that lie along k: n of them, rounded, then turned. Words are moved as floats, unchanged. */
PAIRS INLINE void pair_along(uint32_t *to, size_t ld_to, const float *from, size_t ld_from, int n,
                             int K) {
    enum { RUN = 64 }; /* pairs */
    _Alignas(64) float words[COLS][RUN];
    for (int k = 0; k < K; k += 2 * RUN) {
        const int run = K - k < 2 * RUN ? K - k : 2 * RUN;
        for (int i = 0; i < n; i++) {
            const float *x = from + (size_t)i * ld_from + k;
            int at = 0;
            for (; at + 2 * LANES <= run; at += 2 * LANES)
                _mm512_store_si512(words[i] + at / 2,
                                   (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + at + LANES),
                                                                _mm512_loadu_ps(x + at)));
            if (at == run) continue;
            const uint32_t left = (1u << (run - at)) - 1u;
            const __m512 low = _mm512_maskz_loadu_ps((__mmask16)left, x + at);
            const __m512 high =
                left >> LANES ? _mm512_maskz_loadu_ps((__mmask16)(left >> LANES), x + at + LANES)
                              : _mm512_setzero_ps();
            _mm512_store_si512(words[i] + at / 2, (__m512i)_mm512_cvtne2ps_pbh(high, low));
        }
        transpose((float *)(void *)(to + (size_t)(k / 2) * ld_to), ld_to, words[0], RUN, n,
                  (run + 1) / 2);
    }
}

/* Rows k of n floats each, n <= COLS; words behind the n-th are left alone. */
PAIRS INLINE void pair_across(uint32_t *to, size_t ld_to, const float *from, size_t ld_from, int n,
                              int K) {
    const __m512i zip = _mm512_add_epi16(
        _mm512_set1_epi32(16 << 16), /* words 0 16 1 17 ...: low, high, ... */
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(0x10001)));
    const uint64_t all = (1ull << n) - 1;
    for (int c = 0; c < n; c += LANES) {
        const __mmask16 some = (__mmask16)(all >> c);
        const float *x = from + c;
        uint32_t *word = to + c;
        for (int k = 0; k < K; k += 2, x += 2 * ld_from, word += ld_to) {
            const __m512 low = _mm512_maskz_loadu_ps(some, x);
            const __m512 high =
                k + 1 < K ? _mm512_maskz_loadu_ps(some, x + ld_from) : _mm512_setzero_ps();
            const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_mask_storeu_epi32(word, some, _mm512_permutexvar_epi16(zip, both));
        }
    }
}

PAIRS void TG_KERNEL(pack_pairs)(uint32_t *to, const float *a, size_t lda, bool ta, int rows,
                                 int K) {
    if (ta)
        pair_across(to, (size_t)rows, a, lda, rows, K);
    else
        pair_along(to, (size_t)rows, a, lda, rows, K);
}

PAIRS void TG_KERNEL(pair_cols)(uint32_t *to, const float *b, size_t ldb, bool tb, int cols,
                                int K) {
    if (cols < COLS) memset(to, 0, (size_t)((K + 1) / 2) * COLS * sizeof *to);
    if (tb)
        pair_along(to, COLS, b, ldb, cols, K);
    else
        pair_across(to, COLS, b, ldb, cols, K);
}

PAIRS INLINE void pairs_block(const tg_gemm_block *g, const int R) {
    vf sum[ROWS][2];
    begin_rows(g, sum, R);
    const int *a = g->a;
    const char *b = g->b, *ahead = g->fetch.at;
    const float *row = g->c;
    for (int k = 0; k < g->depth; k += 2, a += R, b += 2 * sizeof(__m512)) {
        const __m512bh b0 = (__m512bh)_mm512_load_si512(b);
        const __m512bh b1 = (__m512bh)_mm512_load_si512(b + sizeof(__m512));
        FETCH_NEXT(k / 2);
        FETCH_ROW(k / 2, R);
        for (int i = 0; i < R; i++) {
            const __m512bh x = (__m512bh)_mm512_set1_epi32(a[i]);
            sum[i][0] = (vf)_mm512_dpbf16_ps((__m512)sum[i][0], x, b0);
            sum[i][1] = (vf)_mm512_dpbf16_ps((__m512)sum[i][1], x, b1);
        }
    }
    finish_rows(g, sum, R);
}

PAIRS void TG_KERNEL(gemm_pairs)(const tg_gemm_block *g) {
    BY_ROWS(pairs_block, g)
}
#else
typedef int tg_no_pairs; /* a file must not be empty */
#endif
