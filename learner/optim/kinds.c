/* The table of kinds. Adding one is a row here and its op in common/nn. */
#include "learner/optim/kinds.h"

#include <string.h>

static int two(const tg_optim_opts *o) {
    (void)o;
    return 2;
}

static tg_adamw_step adam_step(const tg_optim_opts *o, const tg_optim_run *r, double lr,
                               float grad_scale, int64_t t) {
    return (tg_adamw_step){.lr = lr,
                           .beta1 = o->beta1,
                           .beta2 = o->beta2,
                           .eps = o->eps,
                           .weight_decay = r->weight_decay,
                           .t = t,
                           .grad_scale = grad_scale};
}

static void step_adamw(tg_backend *be, const tg_optim_opts *o, const tg_optim_run *r, double lr,
                       float grad_scale, int64_t t) {
    tg_adamw_step s = adam_step(o, r, lr, grad_scale, t);
    if (r->state8[0].code)
        be->ops->adam8(be, r->param, r->grad, &r->state8[0], &r->state8[1], r->n, &s);
    else
        be->ops->adamw(be, r->param, r->grad, r->state[0], r->state[1], r->n, &s);
}

static void step_adam(tg_backend *be, const tg_optim_opts *o, const tg_optim_run *r, double lr,
                      float grad_scale, int64_t t) {
    tg_adamw_step s = adam_step(o, r, lr, grad_scale, t);
    s.coupled = true;
    be->ops->adamw(be, r->param, r->grad, r->state[0], r->state[1], r->n, &s);
}

static int rmsprop_moments(const tg_optim_opts *o) {
    return 1 + (o->momentum > 0) + o->centered;
}

static void step_rmsprop(tg_backend *be, const tg_optim_opts *o, const tg_optim_run *r, double lr,
                         float grad_scale, int64_t t) {
    (void)t;
    int next = 1;
    float *buf = o->momentum > 0 ? r->state[next++] : NULL;
    float *mean = o->centered ? r->state[next] : NULL;
    be->ops->rmsprop(be, r->param, r->grad, r->state[0], mean, buf, r->n,
                     &(tg_rmsprop_step){.lr = lr,
                                        .alpha = o->alpha,
                                        .eps = o->eps,
                                        .weight_decay = r->weight_decay,
                                        .momentum = o->momentum,
                                        .grad_scale = grad_scale});
}

static int sgd_moments(const tg_optim_opts *o) {
    return o->momentum != 0;
}

static void step_sgd(tg_backend *be, const tg_optim_opts *o, const tg_optim_run *r, double lr,
                     float grad_scale, int64_t t) {
    be->ops->sgd(be, r->param, r->grad, o->momentum != 0 ? r->state[0] : NULL, r->n,
                 &(tg_sgd_step){.lr = lr,
                                .weight_decay = r->weight_decay,
                                .momentum = o->momentum,
                                .dampening = o->dampening,
                                .grad_scale = grad_scale,
                                .nesterov = o->nesterov,
                                .first = t == 1});
}

const tg_optim_kind *tg_optim_kind_find(const char *name) {
    static const tg_optim_kind all[] = {
        {"adamw", false, two, step_adamw},     {"adamw_8bit", true, two, step_adamw},
        {"adam", false, two, step_adam},       {"rmsprop", false, rmsprop_moments, step_rmsprop},
        {"sgd", false, sgd_moments, step_sgd},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (name && !strcmp(all[i].name, name)) return &all[i];
    return NULL;
}
