/* Adam. Compiled without contraction: the fused multiply-adds are those of torch's lerp_ and
 * addcmul_, no others. */
#include "common/nn/cpu/kernels/fused.h"
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

void TG_KERNEL(adamw)(float *restrict param, float *restrict grad, float *restrict m,
                      float *restrict v, size_t n, const tg_adamw_consts *c) {
    const tg_adamw_consts k = *c;
    const float w1 = k.w1 < 0.5f ? k.w1 : k.w1 - 1.0f;
    const bool from_m = k.w1 < 0.5f;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float g = tg_fused(k.l2, param[i], grad[i] * k.grad_scale), m0 = m[i];
        float p = param[i] * k.decay;
        float m1 = tg_fused(w1, g - m0, from_m ? m0 : g);
        float v1 = tg_fused(k.w2 * g, g, v[i] * k.beta2);
        float denom = sqrtf(v1) / k.root2 + k.eps;
        m[i] = m1;
        v[i] = v1;
        param[i] = p + k.step_size * m1 / denom;
        grad[i] = 0;
    }
}

static float largest_of(const float *x, size_t n) {
    float largest = 0;
#pragma omp simd reduction(max : largest)
    for (size_t i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        largest = a > largest ? a : largest;
    }
    return largest;
}

void TG_KERNEL(adam8)(float *param, float *grad, const tg_quant8_state *m, const tg_quant8_state *v,
                      size_t n, const tg_adamw_consts *c) {
    for (size_t first = 0; first < n; first += TG_QUANT8_BLOCK) {
        size_t block = first / TG_QUANT8_BLOCK;
        size_t count = n - first < TG_QUANT8_BLOCK ? n - first : TG_QUANT8_BLOCK;
        float m1[TG_QUANT8_BLOCK], v1[TG_QUANT8_BLOCK];
        uint8_t *restrict m_code = m->code + first, *restrict v_code = v->code + first;
        const float m_old = m->largest[block], v_old = v->largest[block];
#pragma omp simd
        for (size_t i = 0; i < count; i++) m1[i] = tg_quant8_decode_signed(m_code[i]) * m_old;
#pragma omp simd
        for (size_t i = 0; i < count; i++) v1[i] = tg_quant8_decode_unsigned(v_code[i]) * v_old;
        TG_KERNEL(adamw)(param + first, grad + first, m1, v1, count, c);
        const float m_top = largest_of(m1, count), v_top = largest_of(v1, count);
        const float m_under = m_top > 0 ? m_top : 1, v_under = v_top > 0 ? v_top : 1;
        m->largest[block] = m_top;
        v->largest[block] = v_top;
#pragma omp simd
        for (size_t i = 0; i < count; i++) m_code[i] = tg_quant8_encode_signed(m1[i] / m_under);
#pragma omp simd
        for (size_t i = 0; i < count; i++) v_code[i] = tg_quant8_encode_unsigned(v1[i] / v_under);
    }
}
