/* One RMSprop step on n parameters, in one pass, with the arithmetic of torch.optim.RMSprop; also clears the gradient.
 *
 *   g = grad * grad_scale + weight_decay * p;   square = alpha square + (1-alpha) g^2;
 *   mean given (centered):  mean += (1-alpha) (g - mean);  root = sqrt(square - mean^2) + eps;   else root = sqrt(square) + eps;
 *   buf given (momentum):   buf = momentum buf + g / root;  p -= lr buf;   else p -= lr g / root;   grad = 0.
 * mean, buf: NULL when not wanted. */
#ifndef TG_NN_OP_RMSPROP_H
#define TG_NN_OP_RMSPROP_H

#include <stddef.h>

struct tg_backend;

typedef struct tg_rmsprop_step {
    double lr, alpha, eps, weight_decay, momentum;
    float grad_scale;
} tg_rmsprop_step;

typedef void tg_op_rmsprop(struct tg_backend *be, float *param, float *grad, float *square,
                           float *mean, float *buf, size_t n, const tg_rmsprop_step *step);

#endif
