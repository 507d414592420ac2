/* Rows that the option tables of several algorithms share. O is the options struct, which has the fields. */
#ifndef TG_RL_OPTIONS_H
#define TG_RL_OPTIONS_H

#include "common/config/option.h"

/* How a rate falls over the iterations of a run; names and formulas of transformers. */
#define TG_RL_SCHEDULE_FIELDS                                                                      \
    const char *lr_scheduler_type;                                                                 \
    int64_t warmup_iters;
#define TG_RL_SCHEDULE_ROWS(O)                                                                     \
    TG_OPT_STR_ONE_OF(O, lr_scheduler_type, "constant",                                            \
                      "constant|linear|cosine|constant_with_warmup",                               \
                      "How the learning rate changes over the iterations."),                       \
        TG_OPT_INT(O, warmup_iters, "0", 0, 1e8,                                                   \
                   "Iterations in which the learning rate rises from 0, unless constant.")

/* What RL4LMs accepts and has no meaning here. */
#define TG_RL_IGNORED_FIELDS                                                                       \
    bool use_sde, create_eval_env;                                                                 \
    int64_t sde_sample_freq, verbose, seed;                                                        \
    const char *tensorboard_log, *device;                                                          \
    const tg_node *policy_kwargs;
#define TG_RL_IGNORED(O, f, T, d, h)                                                               \
    TG_OPT_ROW(O, f, T, TG_OPT_NULLABLE | TG_OPT_IGNORED, d, 0, 0, NULL, h)
#define TG_RL_IGNORED_ROWS(O)                                                                      \
    TG_RL_IGNORED(O, use_sde, TG_T_BOOL, "false",                                                  \
                  "No effect: state-dependent exploration is for continuous actions."),            \
        TG_RL_IGNORED(O, sde_sample_freq, TG_T_INT, "-1", "No effect, as use_sde."),               \
        TG_RL_IGNORED(O, create_eval_env, TG_T_BOOL, "false",                                      \
                      "No effect: evaluation is set by train_evaluation."),                        \
        TG_RL_IGNORED(O, verbose, TG_T_INT, "0", "No effect: TEXTGEN_LOG sets what is logged."),   \
        TG_RL_IGNORED(O, seed, TG_T_INT, NULL,                                                     \
                      "No effect: the top-level key `seed` fixes all random numbers."),            \
        TG_RL_IGNORED(O, device, TG_T_STR, "auto",                                                 \
                      "No effect: the backend decides where networks live."),                      \
        TG_RL_IGNORED(O, tensorboard_log, TG_T_STR, NULL,                                          \
                      "No effect: trackers write into the run folder."),                           \
        TG_RL_IGNORED(O, policy_kwargs, TG_T_NODE, NULL,                                           \
                      "No effect: alg.policy.args describes the policy.")

#endif
