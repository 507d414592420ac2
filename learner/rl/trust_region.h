/* The policy step of TRPO: from a batch of rows to new policy parameters.
 *
 *     tg_trust_region t;
 *     tg_trust_region_open(&t, ac, r, minibatches, &opts, err);      // the rows of minibatch 0 are the batch
 *     ... write to t.x where the conjugate gradient starts ...
 *     tg_trust_region_step(&t, probe, &result, err);
 *     tg_trust_region_close(&t);
 *
 * Vectors over the policy's parameters are host arrays in the layout of its gradients. */
#ifndef TG_RL_TRUST_REGION_H
#define TG_RL_TRUST_REGION_H

#include "common/nn/fisher.h"
#include "learner/rl/algo.h"

typedef struct tg_trust_region_opts {
    int cg_steps;
    double damping, target_kl, shrink;
    int max_trials;
    bool normalize_advantage;
} tg_trust_region_opts;

typedef struct tg_trust_region_result {
    double objective, kl; /* of the step taken, or of none */
    bool success;
    int trials;
    bool finite; /* false: nothing was changed, because a number was not */
} tg_trust_region_result;

typedef struct tg_trust_region {
    tg_actor_critic *ac;
    const tg_rollout *r;
    tg_minibatches *mb;
    tg_trust_region_opts o;
    tg_fisher *fisher;
    tg_model *old; /* the policy before the step: in the line search, when the tangents are gone */
    tg_pass *old_pass;
    int n;                  /* rows of the batch */
    size_t n_params;        /* of a vector */
    float *adv;             /* (n) as used */
    float *logp, *weight;   /* (caps.actions) of a piece */
    float *logits[2];       /* (LOGIT_ROWS, V) new and old */
    float *gradient, *x;    /* (n_params) */
    float *work;            /* (3 n_params) of the solver, then (params.total) of the line search */
    double products[64][2]; /* v.v, v.Av of each product */
    int n_products;
} tg_trust_region;

tg_status tg_trust_region_open(tg_trust_region *t, tg_actor_critic *ac, const tg_rollout *r,
                               tg_minibatches *mb, const tg_trust_region_opts *o,
                               tg_error *err) TG_MUST_CHECK;
void tg_trust_region_close(tg_trust_region *t);
/* x (n_params) is where the conjugate gradient starts. */
tg_status tg_trust_region_step(tg_trust_region *t, const tg_update_probe *probe,
                               tg_trust_region_result *result, tg_error *err) TG_MUST_CHECK;
/* The most that one takes besides the networks and their passes: for the memory plan. */
size_t tg_trust_region_bytes(const tg_arch *arch, const tg_params *params, tg_pass_caps caps);

#endif
