/* Natural language policy optimisation (Ramamurthy et al. 2022, "Is Reinforcement Learning (Not) for Natural Language Processing?",
 * algorithm 1). PPO on a smaller action space: a masking policy pi_psi, a lagging copy of the policy, allows in each state the
 * top-p tokens of its own distribution, and the policy acts within them:
 *
 *     pi_theta(a|s)  restricted to  V^p_psi(s) = smallest set with  sum pi_psi(a|s) >= p           (section 4)
 *     every mu iterations:  pi_psi <- pi_theta                                        (algorithm 1, the last step)
 *
 * Rollouts record the sets they drew from; log-probs, entropies and the KL to the reference are those of the distributions
 * over the same sets, renormalised, so that the first ratio of an iteration is 1.
 *
 * RL4LMs's published code differs: the copy is replaced where generation no longer looks, so its masks stay those of the initial
 * model; and its log-probs are not renormalised. Under `compat: rl4lms` so are ours (learner/policy/mask.h). */
#include "learner/rl/nlpo.h"

#include "learner/rl/ppo.h"

static tg_status nlpo_update(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                             const tg_order *order, const tg_update_probe *probe,
                             tg_update_stats *stats, tg_error *err) {
    /* The last step, at RL4LMs's place: after the rollout, before the update; iterations count from 1. */
    if ((order->iteration + 1) % (uint64_t)ac->mask.every == 0) tg_actor_critic_renew_mask(ac);
    return tg_algo_ppo.update(ac, opts, r, order, probe, stats, err);
}

const tg_algo_ops tg_algo_nlpo = {
    .name = "nlpo",
    .summary = "Natural language policy optimisation: PPO with actions masked by a lagging copy of "
               "the policy.",
    .options = tg_ppo_options,
    .options_size = sizeof(tg_ppo_opts),
    .masked = true,
    .plan = tg_ppo_plan,
    .update = nlpo_update,
};
