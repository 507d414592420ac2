/* The kinds of optimizers: how much state, and one step of a run of elements. Private to learner/optim. */
#ifndef TG_OPTIM_KINDS_H
#define TG_OPTIM_KINDS_H

#include "learner/optim/optim.h"

/* n neighbouring elements that are stepped alike. */
typedef struct tg_optim_run {
    float *param, *grad;
    float *state[TG_OPTIM_MOMENTS];           /* f32 */
    tg_quant8_state state8[TG_OPTIM_MOMENTS]; /* in place of it where code is not NULL */
    size_t n;
    double weight_decay;
} tg_optim_run;

typedef struct tg_optim_kind {
    const char *name;
    bool eight_bits;
    int (*n_moments)(const tg_optim_opts *o);
    void (*step)(tg_backend *be, const tg_optim_opts *o, const tg_optim_run *r, double lr,
                 float grad_scale, int64_t t);
} tg_optim_kind;

const tg_optim_kind *tg_optim_kind_find(const char *name); /* NULL: none */

#endif
