/* One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) or Adam, in the order of operations of torch.optim; with moments in
 * f32, or in 8 bits. */
#include "common/nn/ref/ref.h"

#include <math.h>

typedef struct consts {
    float grad_scale, l2, decay, w1, beta2, w2, root2, eps, step_size;
} consts;

static consts constants(const tg_adamw_step *s) {
    return (consts){
        .grad_scale = s->grad_scale,
        .l2 = s->coupled ? (float)s->weight_decay : 0,
        .decay = s->coupled ? 1 : (float)(1 - s->lr * s->weight_decay),
        .w1 = (float)(1 - s->beta1),
        .beta2 = (float)s->beta2,
        .w2 = (float)(1 - s->beta2),
        .root2 = (float)sqrt(1 - pow(s->beta2, (double)s->t)),
        .eps = (float)s->eps,
        .step_size = (float)(-s->lr / (1 - pow(s->beta1, (double)s->t))),
    };
}

static void step_one(const consts *c, float *param, float *grad, float *m, float *v) {
    float g = *grad * c->grad_scale;
    if (c->l2 != 0) g = fmaf(c->l2, *param, g);
    float p = *param * c->decay;
    *m = c->w1 < 0.5f ? fmaf(c->w1, g - *m, *m) : fmaf(c->w1 - 1, g - *m, g); /* torch.lerp */
    *v = fmaf(c->w2 * g, g, *v * c->beta2);                                   /* mul_, addcmul_ */
    float denom = sqrtf(*v) / c->root2 + c->eps;
    *param = p + c->step_size * *m / denom;
    *grad = 0;
}

void tg_ref_adamw(tg_backend *be, float *param, float *grad, float *m, float *v, size_t n,
                  const tg_adamw_step *s) {
    (void)be;
    const consts c = constants(s);
    for (size_t i = 0; i < n; i++) step_one(&c, param + i, grad + i, m + i, v + i);
}

static float largest_of(const float *x, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(x[i]));
    return largest;
}

void tg_ref_adam8(tg_backend *be, float *param, float *grad, const tg_quant8_state *m,
                  const tg_quant8_state *v, size_t n, const tg_adamw_step *s) {
    (void)be;
    const consts c = constants(s);
    for (size_t first = 0; first < n; first += TG_QUANT8_BLOCK) {
        size_t block = first / TG_QUANT8_BLOCK;
        size_t count = n - first < TG_QUANT8_BLOCK ? n - first : TG_QUANT8_BLOCK;
        float m1[TG_QUANT8_BLOCK], v1[TG_QUANT8_BLOCK];
        uint8_t *m_code = m->code + first, *v_code = v->code + first;
        for (size_t i = 0; i < count; i++) {
            m1[i] = tg_quant8_decode_signed(m_code[i]) * m->largest[block];
            v1[i] = tg_quant8_decode_unsigned(v_code[i]) * v->largest[block];
            step_one(&c, param + first + i, grad + first + i, m1 + i, v1 + i);
        }
        float m_top = m->largest[block] = largest_of(m1, count);
        float v_top = v->largest[block] = largest_of(v1, count);
        for (size_t i = 0; i < count; i++) {
            m_code[i] = m_top > 0 ? tg_quant8_encode_signed(m1[i] / m_top) : 0;
            v_code[i] = v_top > 0 ? tg_quant8_encode_unsigned(v1[i] / v_top) : 0;
        }
    }
}
