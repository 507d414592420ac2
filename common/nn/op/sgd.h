/* One step of gradient descent on n parameters, in one pass, with the arithmetic of torch.optim.SGD; also clears the gradient.
 *
 *   g = grad * grad_scale + weight_decay * p;
 *   buf given (momentum):  buf = first ? g : momentum buf + (1-dampening) g;   g = nesterov ? g + momentum buf : buf;
 *   p -= lr g;   grad = 0.
 * buf: NULL when there is no momentum. */
#ifndef TG_NN_OP_SGD_H
#define TG_NN_OP_SGD_H

#include <stdbool.h>
#include <stddef.h>

struct tg_backend;

typedef struct tg_sgd_step {
    double lr, weight_decay, momentum, dampening;
    float grad_scale;
    bool nesterov, first;
} tg_sgd_step;

typedef void tg_op_sgd(struct tg_backend *be, float *param, float *grad, float *buf, size_t n,
                       const tg_sgd_step *step);

#endif
