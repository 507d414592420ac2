/* Option tables of the algorithms that configs may name and this version cannot run: `check
 * --schema-only` still checks their keys. */
#include "learner/rl/planned.h"

#include "learner/rl/ppo.h"

#define IGNORED(f, T, d, h) TG_OPT_ROW(O, f, T, TG_OPT_NULLABLE | TG_OPT_IGNORED, d, 0, 0, NULL, h)
#define COMMON_IGNORED                                                                             \
    IGNORED(use_sde, TG_T_BOOL, "false",                                                           \
            "No effect: state-dependent exploration is for continuous actions."),                  \
        IGNORED(sde_sample_freq, TG_T_INT, "-1", "No effect, as use_sde."),                        \
        IGNORED(create_eval_env, TG_T_BOOL, "false",                                               \
                "No effect: evaluation is set by train_evaluation."),                              \
        IGNORED(verbose, TG_T_INT, "0", "No effect: TEXTGEN_LOG sets what is logged."),            \
        IGNORED(seed, TG_T_INT, NULL,                                                              \
                "No effect: the top-level key `seed` fixes all random numbers."),                  \
        IGNORED(device, TG_T_STR, "auto", "No effect: the backend decides where networks live."),  \
        IGNORED(tensorboard_log, TG_T_STR, NULL,                                                   \
                "No effect: trackers write into the run folder."),                                 \
        IGNORED(policy_kwargs, TG_T_NODE, NULL,                                                    \
                "No effect: alg.policy.args describes the policy.")

typedef struct a2c_opts {
    double learning_rate;
    int64_t n_steps;
    double gamma, gae_lambda, ent_coef, vf_coef, max_grad_norm, rms_prop_eps;
    bool use_rms_prop, normalize_advantage;
    bool use_sde, create_eval_env;
    int64_t sde_sample_freq, verbose, seed;
    const char *tensorboard_log, *device;
    const tg_node *policy_kwargs;
} a2c_opts;

#define O a2c_opts
static const tg_opt a2c_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "7e-4", 0, 1e3, "Step size of the optimizer."),
    TG_OPT_INT(O, n_steps, "5", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_FLOAT(O, gae_lambda, "1.0", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_FLOAT(O, ent_coef, "0.0", -1e6, 1e6, "Weight of the entropy bonus."),
    TG_OPT_FLOAT(O, vf_coef, "0.5", 0, 1e6, "Weight of the value loss."),
    TG_OPT_FLOAT(O, max_grad_norm, "0.5", 0, 1e12,
                 "Gradients are scaled down to this norm; 0: not."),
    TG_OPT_FLOAT(O, rms_prop_eps, "1e-5", 0, 1, "Added to the root of RMSprop."),
    TG_OPT_BOOL(O, use_rms_prop, "true", "RMSprop instead of the policy's optimizer."),
    TG_OPT_BOOL(O, normalize_advantage, "false", "Advantages to mean 0 and deviation 1."),
    COMMON_IGNORED,
    TG_OPT_END,
};
#undef O

typedef struct trpo_opts {
    double learning_rate;
    int64_t n_steps, batch_size;
    double gamma;
    int64_t cg_max_steps;
    double cg_damping, line_search_shrinking_factor;
    int64_t line_search_max_iter, n_critic_updates;
    double gae_lambda, target_kl;
    bool normalize_advantage;
    int64_t sub_sampling_factor;
    bool use_sde, create_eval_env;
    int64_t sde_sample_freq, verbose, seed;
    const char *tensorboard_log, *device;
    const tg_node *policy_kwargs;
} trpo_opts;

#define O trpo_opts
static const tg_opt trpo_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "1e-3", 0, 1e3, "Step size of the critic's optimizer."),
    TG_OPT_INT(O, n_steps, "2048", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_INT(O, batch_size, "128", 1, 1e8, "Transitions of one minibatch of the critic."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_INT(O, cg_max_steps, "15", 1, 1e6, "Most steps of the conjugate gradient."),
    TG_OPT_FLOAT(O, cg_damping, "0.1", 0, 1e6, "Added to the diagonal of the Fisher matrix."),
    TG_OPT_FLOAT(O, line_search_shrinking_factor, "0.8", 0, 1,
                 "The step shrinks by this until it is accepted."),
    TG_OPT_INT(O, line_search_max_iter, "10", 1, 1e6, "Most trials of the line search."),
    TG_OPT_INT(O, n_critic_updates, "10", 0, 1e6, "Passes of the critic over the transitions."),
    TG_OPT_FLOAT(O, gae_lambda, "0.95", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_BOOL(O, normalize_advantage, "true", "Advantages to mean 0 and deviation 1."),
    TG_OPT_FLOAT(O, target_kl, "0.01", 0, 1e6, "The trust region: most KL of one step."),
    TG_OPT_INT(O, sub_sampling_factor, "1", 1, 1e6,
               "Use every n-th transition for the policy step."),
    COMMON_IGNORED,
    TG_OPT_END,
};
#undef O

const tg_algo_ops tg_algo_nlpo = {
    .name = "nlpo",
    .summary = "Natural language policy optimisation: PPO with actions masked by a lagging copy of "
               "the policy.",
    .options = tg_ppo_options,
    .options_size = sizeof(tg_ppo_opts),
};
const tg_algo_ops tg_algo_a2c = {
    .name = "a2c",
    .summary = "Advantage actor-critic: one step on the whole rollout.",
    .options = a2c_options,
    .options_size = sizeof(a2c_opts),
};
const tg_algo_ops tg_algo_trpo = {
    .name = "trpo",
    .summary = "Trust region policy optimisation: natural gradient with a line search.",
    .options = trpo_options,
    .options_size = sizeof(trpo_opts),
};
