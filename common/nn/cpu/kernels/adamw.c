/* AdamW. Compiled without contraction: the fused multiply-adds are those of torch's lerp_ and
 * addcmul_, no others. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

static inline float fused(float a, float b, float c) {
#if defined(TG_ISA_AVX512) || defined(TG_ISA_AVX2) || defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

void TG_KERNEL(adamw)(float *restrict param, float *restrict grad, float *restrict m,
                      float *restrict v, size_t n, const tg_adamw_consts *c) {
    const tg_adamw_consts k = *c;
    const float w1 = k.w1 < 0.5f ? k.w1 : k.w1 - 1.0f;
    const bool from_m = k.w1 < 0.5f;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] * k.grad_scale, m0 = m[i];
        float p = param[i] * k.decay;
        float m1 = fused(w1, g - m0, from_m ? m0 : g);
        float v1 = fused(k.w2 * g, g, v[i] * k.beta2);
        float denom = sqrtf(v1) / k.root2 + k.eps;
        m[i] = m1;
        v[i] = v1;
        param[i] = p + k.step_size * m1 / denom;
        grad[i] = 0;
    }
}
