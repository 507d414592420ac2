/* The contract of an on-policy algorithm: from a finished rollout to updated networks.
 *
 * Registered in learner/rl/registry.c: one file and one line each. `options` is the table of
 * alg.args. */
#ifndef TG_RL_ALGO_H
#define TG_RL_ALGO_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/minibatch.h"
#include "learner/rl/rollout.h"

#include <stdbool.h>
#include <stdint.h>

/* What every algorithm's rollout needs to know. */
typedef struct tg_algo_plan {
    int n_steps; /* per environment */
    double gamma, gae_lambda;
    tg_pass_caps caps; /* of the training passes, given the longest sequence */
    /* How the update visits the rows: epochs of minibatches, of which the first may be one of an n-th of all rows, first_share; 0: it is not. */
    int epochs, batch_size, first_share;
    tg_minibatch_mode mode;
} tg_algo_plan;

/* Named statistics of one update, e.g. "ppo/policy_gradient_loss", in a fixed order. */
enum { TG_STATS_MAX = 32 };
typedef struct tg_update_stats {
    int n;
    const char *name[TG_STATS_MAX]; /* static strings */
    double value[TG_STATS_MAX];
    int minibatches, skipped; /* optimizer steps taken; left out as non-finite */
    bool stopped;             /* early, by target_kl */
    double first_ratio_error; /* max |ratio - 1| of the first minibatch */
    double first_clip_fraction;
} tg_update_stats;

struct tg_minibatch_report;
struct tg_trust_region_report;

/* A look at every minibatch between its backward pass and its step: for tests and debugging. The
 * gradients are in the models. */
typedef struct tg_update_probe {
    void *arg;
    void (*minibatch)(void *arg, const struct tg_minibatch_report *report);
    void (*trust_region)(void *arg, const struct tg_trust_region_report *report); /* may be NULL */
} tg_update_probe;

typedef struct tg_minibatch_report {
    int epoch, batch;                          /* batch: within the epoch */
    int n;                                     /* transitions */
    const int32_t *rows;                       /* (n) */
    const float *logp, *entropy, *value, *adv; /* (n); adv as used, after normalisation */
    double policy_loss, value_loss, entropy_loss, loss, approx_kl, clip_fraction;
} tg_minibatch_report;

/* A step of TRPO. Vectors are over the policy's parameters, in the layout of its gradients. */
typedef struct tg_trust_region_report {
    int n;            /* rows */
    const float *adv; /* (n) as used */
    const float *gradient, *direction;
    size_t n_params;
    double objective, longest;   /* before the step; the longest step */
    const double (*products)[2]; /* v.v, v.Av of the solver's products */
    int n_products;
    const double (*trials)[3]; /* share of the longest step, objective, KL */
    int n_trials;
} tg_trust_region_report;

typedef struct tg_algo_ops {
    const char *name, *summary;
    const tg_opt *options;
    size_t options_size;
    bool critic_only; /* the optimizer is the critic's, which is a network of its own */
    bool masked;      /* needs a maskable policy */
    bool built;       /* false: known by name, not in this version */
    /* NULL: the policy's optimizer as configured. Otherwise what this algorithm makes of it. */
    void (*optimizer)(const void *opts, tg_optim_opts *optim);
    void (*plan)(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out);
    /* NULL: next to nothing. Otherwise what an update takes besides networks, passes and optimizer. params: the policy's. */
    size_t (*workspace)(const tg_arch *arch, const tg_params *params, tg_pass_caps caps);
    /* probe may be NULL. TG_OK also when minibatches were left out as non-finite: stats says so. */
    tg_status (*update)(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                        const tg_order *order, const tg_update_probe *probe, tg_update_stats *stats,
                        tg_error *err);
} tg_algo_ops;

const tg_algo_ops *const *tg_algo_list(void); /* NULL-terminated */
/* TG_CONFIG naming the nearest ids. */
tg_status tg_algo_find(const char *name, const tg_algo_ops **out, tg_error *err) TG_MUST_CHECK;

#endif
