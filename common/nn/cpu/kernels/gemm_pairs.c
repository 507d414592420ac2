/* Blocks of a matrix product of bf16 by bf16 with f32 sums, for processors that multiply pairs of them: both operands hold steps k and
 * k + 1 in one word, R rows of a as [k / 2][R]. Twice the speed of f32 where it is there.
 *
 * As in gemm.c, an element depends on its row and its column alone. */
#include "common/nn/cpu/kernels/gemm_isa.h"

#include "common/nn/bf16.h"

#if defined(TG_ISA_AVX512)
#include <immintrin.h>

void TG_KERNEL(pack_pairs)(uint32_t *to, const float *a, size_t lda, int rows, int K) {
    enum { RUN = 64 }; /* pairs */
    float half[ROWS][RUN];
    for (int k = 0; k < K; k += 2 * RUN) {
        const int n = K - k < 2 * RUN ? K - k : 2 * RUN;
        for (int i = 0; i < rows; i++) {
            uint16_t *h = (uint16_t *)(void *)half[i];
            TG_KERNEL(narrow)(h, a + (size_t)i * lda + k, (size_t)n);
            if (n % 2) h[n] = 0;
        }
        /* Words are moved as floats, unchanged. */
        transpose((float *)(void *)(to + (size_t)(k / 2) * (size_t)rows), (size_t)rows, half[0],
                  RUN, rows, (n + 1) / 2);
    }
}

#define PAIRS __attribute__((target("avx512bf16")))

PAIRS INLINE void pairs_block(const tg_gemm_block *g, const int R) {
    vf sum[ROWS][2];
    begin_rows(g, sum, R);
    const int *a = g->a;
    const char *b = g->b, *ahead = g->fetch.at;
    for (int k = 0; k < g->depth; k += 2, a += R, b += 2 * sizeof(__m512)) {
        const __m512bh b0 = (__m512bh)_mm512_load_si512(b);
        const __m512bh b1 = (__m512bh)_mm512_load_si512(b + sizeof(__m512));
        FETCH_NEXT(k / 2);
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
