/* What a reward function did, for /metrics: textgen_reward_duration_seconds{fn} and
 * textgen_reward_results_total{fn,status}. Any thread, no lock, no memory. */
#ifndef TG_ENV_REWARD_METER_H
#define TG_ENV_REWARD_METER_H

#include "common/net/stats.h"
#include "proto/types.h"

typedef struct tg_reward_meter {
    tg_stat *seconds; /* of one call, which may judge many texts */
    tg_stat *results[TG_REWARD_INVALID + 1];
} tg_reward_meter;

void tg_reward_meter_init(tg_reward_meter *m, tg_stats *stats, const char *fn);
/* So many texts have this status. m may be NULL. */
void tg_reward_meter_count(tg_reward_meter *m, tg_reward_status status, uint64_t n);

#endif
