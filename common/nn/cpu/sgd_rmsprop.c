/* Gradient descent and RMSprop in runs; the constants are rounded from double to f32 where torch rounds them. */
#include "common/nn/cpu/cpu.h"

enum { RUN = 16384 };

typedef struct job {
    const tg_cpu_kernels *k;
    float *param, *grad, *square, *mean, *buf;
    tg_descent_consts consts;
} job;

static float *at(float *x, size_t i) {
    return x ? x + i : NULL;
}

static void sgd_range(void *arg, size_t i, size_t n) {
    const job *j = arg;
    j->k->sgd(j->param + i, j->grad + i, at(j->buf, i), n, &j->consts);
}

void tg_cpu_sgd(tg_backend *be, float *param, float *grad, float *buf, size_t n,
                const tg_sgd_step *s) {
    job j = {.k = be->kernels, .param = param, .grad = grad, .buf = buf};
    j.consts = (tg_descent_consts){.grad_scale = s->grad_scale,
                                   .l2 = (float)s->weight_decay,
                                   .lr = (float)-s->lr,
                                   .momentum = (float)s->momentum,
                                   .fresh = (float)(1 - s->dampening),
                                   .nesterov = s->nesterov,
                                   .first = s->first};
    tg_cpu_for(be, n, RUN, sgd_range, &j);
}

static void rmsprop_range(void *arg, size_t i, size_t n) {
    const job *j = arg;
    j->k->rmsprop(j->param + i, j->grad + i, j->square + i, at(j->mean, i), at(j->buf, i), n,
                  &j->consts);
}

void tg_cpu_rmsprop(tg_backend *be, float *param, float *grad, float *square, float *mean,
                    float *buf, size_t n, const tg_rmsprop_step *s) {
    job j = {
        .k = be->kernels, .param = param, .grad = grad, .square = square, .mean = mean, .buf = buf};
    j.consts = (tg_descent_consts){.grad_scale = s->grad_scale,
                                   .l2 = (float)s->weight_decay,
                                   .lr = (float)-s->lr,
                                   .momentum = (float)s->momentum,
                                   .alpha = (float)s->alpha,
                                   .w = (float)(1 - s->alpha),
                                   .eps = (float)s->eps};
    tg_cpu_for(be, n, RUN, rmsprop_range, &j);
}
