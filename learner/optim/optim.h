/* Optimizers over one or two models' parameter blocks, with RL4LMs's weight-decay groups.
 *
 * A tensor decays unless its name contains "bias" (A7 of RL4LMs: norm gains do decay). State is one
 * block per model and moment, same layout as the parameters. */
#ifndef TG_OPTIM_OPTIM_H
#define TG_OPTIM_OPTIM_H

#include "common/nn/model.h"

#include <stdint.h>

typedef struct tg_optim_opts {
    const char *kind; /* "adamw" */
    double beta1, beta2, eps, weight_decay;
} tg_optim_opts;

typedef struct tg_optim tg_optim;

/* models are borrowed. */
tg_status tg_optim_create(tg_optim **out, tg_model *const *models, int n_models,
                          const tg_optim_opts *opts, tg_error *err) TG_MUST_CHECK;
void tg_optim_destroy(tg_optim **o);
double tg_optim_grad_norm(tg_optim *o); /* global, over all models, before scaling */
void tg_optim_step(tg_optim *o, double lr, float grad_scale); /* and clears the gradients */
void tg_optim_clear(tg_optim *o);                             /* gradients only */

/* For checkpoints: moment k (0: m, 1: v) of model i as a device block of params.total floats, and
 * the step count. */
int tg_optim_n_moments(const tg_optim *o);
float *tg_optim_moment(tg_optim *o, int model, int k);
int64_t tg_optim_steps(const tg_optim *o);
void tg_optim_set_steps(tg_optim *o, int64_t steps);

#endif
