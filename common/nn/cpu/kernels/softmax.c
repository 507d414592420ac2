/* Softmax of logits: the language-model head. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

static inline float row_max(const float *x, int n) {
    float top = -INFINITY;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

void TG_KERNEL(head_stats)(const tg_logit_tile *t, tg_softmax_part *part, size_t ld_part,
                           float *token) {
    for (int r = 0; r < t->rows; r++) {
        const float *l = t->logits + (size_t)r * t->ld;
        const int n = t->cols, at = t->tokens[r] - t->first;
        const float top = row_max(l, n);
        float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
        for (int j = 0; j < n; j++) {
            float d = l[j] - top, e = exp_f32(d);
            sum += e;
            weighted += e * d;
        }
        part[(size_t)r * ld_part] = (tg_softmax_part){top, sum, weighted};
        if (at >= 0 && at < n) token[r] = l[at];
    }
}

/* op/head.h: dlogit_j = dlogp (1[j = token] - p_j) - dentropy p_j (log p_j + H). */
void TG_KERNEL(head_grad)(const tg_logit_tile *t, const float *lse, const float *entropy,
                          const float *dlogp, const float *dentropy) {
    for (int r = 0; r < t->rows; r++) {
        float *l = t->logits + (size_t)r * t->ld;
        const int n = t->cols, at = t->tokens[r] - t->first;
        const float z = lse[r], de = dentropy[r], dl = dlogp[r], h = entropy[r];
#pragma omp simd
        for (int j = 0; j < n; j++) {
            float lp = l[j] - z;
            l[j] = -exp_f32(lp) * (dl + de * (lp + h));
        }
        if (at >= 0 && at < n) l[at] += dl;
    }
}
