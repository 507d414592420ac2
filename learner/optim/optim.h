/* Optimizers over one or two models' parameter blocks.
 *
 *     tg_optim *o;
 *     tg_optim_create(&o, models, n, &opts, err);
 *     double norm = tg_optim_grad_norm(o);
 *     tg_optim_step(o, lr, scale);           // clip, decay, update and clear in one pass over memory
 *
 * Kinds, with the arithmetic of torch.optim: adamw, adam, rmsprop, sgd; adamw_8bit keeps both moments of every tensor of at least
 * TG_OPTIM_8BIT_MIN elements in 8 bits (common/nn/quant8.h). Only what has a gradient is stepped: a frozen tensor has no state. */
#ifndef TG_OPTIM_OPTIM_H
#define TG_OPTIM_OPTIM_H

#include "common/nn/model.h"

#include <stdint.h>

enum { TG_OPTIM_MOMENTS = 3, TG_OPTIM_8BIT_MIN = 4096 };
/* Smallest eps: with 0, or what is 0 in f32, every number whose gradients were all 0 becomes NaN (in torch too). */
#define TG_OPTIM_EPS_MIN 1e-37

/* Which tensors decay. */
typedef enum tg_decay_rule {
    TG_DECAY_RL4LMS,  /* names without "bias" and "LayerNorm.weight": most norm gains do decay */
    TG_DECAY_TRAINER, /* as transformers' Trainer: neither biases nor norm gains */
} tg_decay_rule;

typedef struct tg_optim_opts {
    const char *kind;
    double beta1, beta2, eps, weight_decay; /* beta1, beta2: adam kinds */
    tg_decay_rule decay;
    double alpha;               /* rmsprop */
    double momentum, dampening; /* rmsprop, sgd; sgd */
    bool centered, nesterov;    /* rmsprop; sgd */
} tg_optim_opts;

typedef struct tg_optim tg_optim;

/* models are borrowed. TG_UNSUPPORTED: no such kind. */
tg_status tg_optim_create(tg_optim **out, tg_model *const *models, int n_models,
                          const tg_optim_opts *opts, tg_error *err) TG_MUST_CHECK;
void tg_optim_destroy(tg_optim **o);
/* Bytes of state for a model of these parameters: for the memory plan. 0: no such kind. */
size_t tg_optim_bytes(const tg_optim_opts *opts, const tg_params *params);

double tg_optim_grad_norm(tg_optim *o); /* global, over all models, before scaling */
void tg_optim_step(tg_optim *o, double lr, float grad_scale); /* and clears the gradients */
void tg_optim_clear(tg_optim *o);                             /* gradients only */
void tg_optim_rest(tg_optim *o); /* as clear; until the next backward they take no memory */

/* For checkpoints: the parts of moment k (0 .. n_moments - 1) of one model's tensor, and the step count. One part in f32; two in 8
 * bits, the codes and then the largest magnitude of each block; none for a frozen tensor. */
typedef struct tg_optim_part {
    void *device;
    size_t count;
    bool codes; /* bytes; otherwise f32 */
} tg_optim_part;
int tg_optim_n_moments(const tg_optim *o);
int tg_optim_parts(const tg_optim *o, int model, int k, size_t tensor, tg_optim_part out[2]);
int64_t tg_optim_steps(const tg_optim *o);
void tg_optim_set_steps(tg_optim *o, int64_t steps);

#endif
