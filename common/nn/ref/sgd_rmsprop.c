/* Gradient descent and RMSprop in the order of operations of torch.optim. */
#include "common/nn/ref/ref.h"

#include <math.h>

void tg_ref_sgd(tg_backend *be, float *param, float *grad, float *buf, size_t n,
                const tg_sgd_step *s) {
    (void)be;
    const float decay = (float)s->weight_decay, momentum = (float)s->momentum,
                fresh = (float)(1 - s->dampening), lr = (float)-s->lr;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] * s->grad_scale;
        if (decay != 0) g = fmaf(decay, param[i], g);
        if (buf) {
            buf[i] = s->first ? g : fmaf(fresh, g, buf[i] * momentum);
            g = s->nesterov ? fmaf(momentum, buf[i], g) : buf[i];
        }
        param[i] = fmaf(lr, g, param[i]);
        grad[i] = 0;
    }
}

void tg_ref_rmsprop(tg_backend *be, float *param, float *grad, float *square, float *mean,
                    float *buf, size_t n, const tg_rmsprop_step *s) {
    (void)be;
    const float decay = (float)s->weight_decay, alpha = (float)s->alpha, w = (float)(1 - s->alpha),
                momentum = (float)s->momentum, eps = (float)s->eps, lr = (float)-s->lr;
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] * s->grad_scale;
        if (decay != 0) g = fmaf(decay, param[i], g);
        square[i] = fmaf(w * g, g, square[i] * alpha); /* mul_, addcmul_ */
        float under = square[i];
        if (mean) {
            mean[i] = w < 0.5f ? fmaf(w, g - mean[i], mean[i]) : fmaf(w - 1, g - mean[i], g);
            under = fmaf(-mean[i], mean[i], under);
        }
        float root = sqrtf(under) + eps;
        if (buf) {
            buf[i] = buf[i] * momentum + g / root;
            param[i] = fmaf(lr, buf[i], param[i]);
        } else {
            param[i] = param[i] + lr * g / root;
        }
        grad[i] = 0;
    }
}
