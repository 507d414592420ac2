/* Options of A2C (alg.args). */
#ifndef TG_RL_A2C_H
#define TG_RL_A2C_H

#include "learner/rl/algo.h"
#include "learner/rl/options.h"

typedef struct tg_a2c_opts {
    double learning_rate;
    int64_t n_steps;
    double gamma, gae_lambda, ent_coef, vf_coef, max_grad_norm, rms_prop_eps;
    bool use_rms_prop, normalize_advantage;
    const char *minibatch;
    int64_t microbatch_tokens;
    TG_RL_SCHEDULE_FIELDS
    TG_RL_IGNORED_FIELDS
} tg_a2c_opts;

extern const tg_opt tg_a2c_options[];
extern const tg_algo_ops tg_algo_a2c;

#endif
