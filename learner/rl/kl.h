/* The KL reward and its coefficient.
 *
 * kl_t = logp - ref_logp (k1 estimator); kl_reward = -coeff * kl_t. With a target the coefficient
 * follows the mean per-token KL of the rollout: e = clip((kl - target) / target, -0.2, 0.2); coeff
 * *= 1 + 0.1 e. Without: it stays. */
#ifndef TG_RL_KL_H
#define TG_RL_KL_H

#include <stdbool.h>

typedef struct tg_kl_controller {
    double coeff;
    double target; /* NaN: fixed coefficient */
} tg_kl_controller;

void tg_kl_controller_step(tg_kl_controller *c, double mean_kl);

#endif
