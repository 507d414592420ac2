/* Option tables of the algorithms that configs may name and this version cannot run: `check
 * --schema-only` still checks their keys. */
#include "learner/rl/planned.h"

#include "learner/rl/ppo.h"

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
    TG_RL_IGNORED_FIELDS
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
    TG_RL_IGNORED_ROWS(O),
    TG_OPT_END,
};
#undef O

const tg_algo_ops tg_algo_trpo = {
    .name = "trpo",
    .summary = "Trust region policy optimisation: natural gradient with a line search.",
    .options = trpo_options,
    .options_size = sizeof(trpo_opts),
};
