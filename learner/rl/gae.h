/* Generalised advantage estimation (Schulman et al. 2016, eq. 16) over a flat buffer of episodes.
 *
 *   delta_t = r_t + gamma * V_{t+1} * (1 - start_{t+1}) - V_t
 *   A_t     = delta_t + gamma * lambda * (1 - start_{t+1}) * A_{t+1};   R_t = A_t + V_t
 * start (n): 1 where a row begins an episode. The state after the last row has value last_value and
 * ends if last_done. */
#ifndef TG_RL_GAE_H
#define TG_RL_GAE_H

#include <stdbool.h>

void tg_gae(float *adv, float *ret, const float *reward, const float *value,
            const unsigned char *start, int n, float last_value, bool last_done, double gamma,
            double lambda);

#endif
