/* The adaptive coefficient of Ziegler et al. 2019 (section 2.2), in RL4LMs's form. A KL that is not
 * a number leaves it as it is. */
#include "learner/rl/kl.h"

#include <math.h>

void tg_kl_controller_step(tg_kl_controller *c, double mean_kl) {
    if (isnan(c->target) || isnan(mean_kl)) return;
    double e = (mean_kl - c->target) / c->target;
    if (e > 0.2) e = 0.2;
    if (e < -0.2) e = -0.2;
    c->coeff *= 1 + 0.1 * e;
}
