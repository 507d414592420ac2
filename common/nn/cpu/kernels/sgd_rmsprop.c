/* Gradient descent and RMSprop. Compiled without contraction: the fused multiply-adds are those of torch's add_, lerp_ and
 * addcmul_, no others. */
#include "common/nn/cpu/kernels/fused.h"
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

void TG_KERNEL(sgd)(float *restrict param, float *restrict grad, float *restrict buf, size_t n,
                    const tg_descent_consts *c) {
    const tg_descent_consts k = *c;
    if (!buf) {
#pragma omp simd
        for (size_t i = 0; i < n; i++) {
            float g = tg_fused(k.l2, param[i], grad[i] * k.grad_scale);
            param[i] = tg_fused(k.lr, g, param[i]);
            grad[i] = 0;
        }
        return;
    }
    const bool first = k.first, nesterov = k.nesterov;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float g = tg_fused(k.l2, param[i], grad[i] * k.grad_scale);
        float b = first ? g : tg_fused(k.fresh, g, buf[i] * k.momentum);
        float d = nesterov ? tg_fused(k.momentum, b, g) : b;
        buf[i] = b;
        param[i] = tg_fused(k.lr, d, param[i]);
        grad[i] = 0;
    }
}

/* One element up to g / root; mean NULL: not centered. */
static inline float scaled(const tg_descent_consts *k, float param, float grad, float *square,
                           float *mean, float *root) {
    float g = tg_fused(k->l2, param, grad * k->grad_scale);
    float s = tg_fused(k->w * g, g, *square * k->alpha), under = s;
    if (mean) {
        float w = k->w < 0.5f ? k->w : k->w - 1.0f;
        float a = tg_fused(w, g - *mean, k->w < 0.5f ? *mean : g);
        *mean = a;
        under = tg_fused(-a, a, s);
    }
    *square = s;
    *root = sqrtf(under) + k->eps;
    return g;
}

void TG_KERNEL(rmsprop)(float *restrict param, float *restrict grad, float *restrict square,
                        float *restrict mean, float *restrict buf, size_t n,
                        const tg_descent_consts *c) {
    const tg_descent_consts k = *c;
    float root;
    if (mean && buf) {
#pragma omp simd private(root)
        for (size_t i = 0; i < n; i++) {
            float g = scaled(&k, param[i], grad[i], square + i, mean + i, &root);
            buf[i] = buf[i] * k.momentum + g / root;
            param[i] = tg_fused(k.lr, buf[i], param[i]);
            grad[i] = 0;
        }
    } else if (buf) {
#pragma omp simd private(root)
        for (size_t i = 0; i < n; i++) {
            float g = scaled(&k, param[i], grad[i], square + i, NULL, &root);
            buf[i] = buf[i] * k.momentum + g / root;
            param[i] = tg_fused(k.lr, buf[i], param[i]);
            grad[i] = 0;
        }
    } else if (mean) {
#pragma omp simd private(root)
        for (size_t i = 0; i < n; i++) {
            float g = scaled(&k, param[i], grad[i], square + i, mean + i, &root);
            param[i] = param[i] + k.lr * g / root;
            grad[i] = 0;
        }
    } else {
#pragma omp simd private(root)
        for (size_t i = 0; i < n; i++) {
            float g = scaled(&k, param[i], grad[i], square + i, NULL, &root);
            param[i] = param[i] + k.lr * g / root;
            grad[i] = 0;
        }
    }
}
