/* One step of Adam on n parameters, in one pass; also clears the gradient.
 *
 *   g = grad * grad_scale (gradient clipping);
 *   decoupled (AdamW): p -= lr * weight_decay * p;   coupled (Adam): g += weight_decay * p;
 *   m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;
 *   p -= lr * (m / (1-beta1^t)) / (sqrt(v / (1-beta2^t)) + eps);   grad = 0.
 * The same arithmetic as torch.optim.AdamW and Adam (single tensor): step size and bias corrections in double, elements in f32. */
#ifndef TG_NN_OP_ADAMW_H
#define TG_NN_OP_ADAMW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tg_backend;

typedef struct tg_adamw_step {
    double lr, beta1, beta2, eps, weight_decay;
    int64_t t; /* 1 at the first step */
    float grad_scale;
    bool coupled;
} tg_adamw_step;

typedef void tg_op_adamw(struct tg_backend *be, float *param, float *grad, float *m, float *v,
                         size_t n, const tg_adamw_step *step);

#endif
