/* Options of PPO (alg.args), shared with NLPO, which takes the same. */
#ifndef TG_RL_PPO_H
#define TG_RL_PPO_H

#include "learner/rl/algo.h"
#include "learner/rl/options.h"

typedef struct tg_ppo_opts {
    double learning_rate;
    int64_t n_steps, batch_size, n_epochs;
    double gamma, gae_lambda;
    double clip_range, clip_range_vf; /* clip_range_vf NaN: off */
    bool normalize_advantage;
    double ent_coef, vf_coef, max_grad_norm;
    double target_kl; /* NaN: no early stop */
    const char *minibatch;
    int64_t microbatch_tokens;
    const char *clip_range_schedule;
    TG_RL_SCHEDULE_FIELDS
    TG_RL_IGNORED_FIELDS
} tg_ppo_opts;

extern const tg_opt tg_ppo_options[];
extern const tg_algo_ops tg_algo_ppo;
void tg_ppo_plan(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out);

#endif
