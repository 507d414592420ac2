/* Options of TRPO (alg.args). */
#ifndef TG_RL_TRPO_H
#define TG_RL_TRPO_H

#include "learner/rl/algo.h"
#include "learner/rl/options.h"

typedef struct tg_trpo_opts {
    double learning_rate;
    int64_t n_steps, batch_size;
    double gamma;
    int64_t cg_max_steps;
    double cg_damping, line_search_shrinking_factor;
    int64_t line_search_max_iter, n_critic_updates;
    double gae_lambda, target_kl;
    bool normalize_advantage;
    int64_t sub_sampling_factor;
    const char *minibatch;
    int64_t microbatch_tokens;
    TG_RL_SCHEDULE_FIELDS
    TG_RL_IGNORED_FIELDS
} tg_trpo_opts;

extern const tg_opt tg_trpo_options[];
extern const tg_algo_ops tg_algo_trpo;

#endif
