/* Which sample an episode gets: a pure function of (seed, episode), the same on every worker.
 *
 * With equal weights (priority_scale 0, or a pool without weights) a keyed permutation of the pool,
 * a new one in each pass: every sample once per pass. Otherwise a draw with replacement in
 * proportion to weight^priority_scale, as RL4LMs's sample queue. */
#ifndef TG_ENV_SAMPLER_H
#define TG_ENV_SAMPLER_H

#include "common/base/status.h"
#include "env-server/datapool/datapool.h"

#include <stdint.h>

typedef struct tg_sampler {
    uint64_t n;
    double *cumulative; /* (n), or NULL: permutation */
} tg_sampler;

/* Reads the pool's weights when they matter. An empty pool gives a sampler with n 0. */
tg_status tg_sampler_init(tg_sampler *s, const tg_datapool *pool, double priority_scale,
                          tg_error *err) TG_MUST_CHECK;
void tg_sampler_fini(tg_sampler *s);
uint64_t tg_sampler_pick(const tg_sampler *s, uint64_t seed, uint64_t episode); /* n > 0 */

#endif
