/* Logits with a bias and with soft capping (op/head.h). */
#include "common/nn/cpu/kernels/kernels_isa.h"

void TG_KERNEL(logit_shape)(const tg_logit_tile *t, const float *bias, float softcap) {
    const int n = t->cols;
    const float inverse = softcap > 0 ? 1.0f / softcap : 0;
    for (int r = 0; r < t->rows; r++) {
        float *l = t->logits + (size_t)r * t->ld;
        if (bias) {
#pragma omp simd
            for (int j = 0; j < n; j++) l[j] += bias[j];
        }
        if (softcap > 0) {
#pragma omp simd
            for (int j = 0; j < n; j++) l[j] = softcap * tanh_f32(l[j] * inverse);
        }
    }
}

void TG_KERNEL(head_grad_capped)(const tg_logit_tile *t, const float *lse, const float *entropy,
                                 const float *dlogp, const float *dentropy, float softcap) {
    const float inverse = 1.0f / softcap;
    for (int r = 0; r < t->rows; r++) {
        float *l = t->logits + (size_t)r * t->ld;
        const int n = t->cols, at = t->tokens[r] - t->first;
        const float z = lse[r], de = dentropy[r], dl = dlogp[r], h = entropy[r];
        const bool here = at >= 0 && at < n;
        const float token = here ? l[at] * inverse : 0;
#pragma omp simd
        for (int j = 0; j < n; j++) {
            float lp = l[j] - z, c = l[j] * inverse;
            l[j] = -exp_f32(lp) * (dl + de * (lp + h)) * (1.0f - c * c);
        }
        if (here) l[at] += dl * (1.0f - token * token);
    }
}
