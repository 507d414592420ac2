/* Options of PPO (alg.args), shared with NLPO, which takes the same. */
#ifndef TG_RL_PPO_H
#define TG_RL_PPO_H

#include "learner/rl/algo.h"

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
    /* accepted, without effect here */
    bool use_sde, create_eval_env;
    int64_t sde_sample_freq, verbose, seed;
    const char *tensorboard_log, *device;
    const tg_node *policy_kwargs;
} tg_ppo_opts;

extern const tg_opt tg_ppo_options[];
extern const tg_algo_ops tg_algo_ppo;

#endif
