/* Figures of one reward function outside the loop, for /metrics. */
#ifndef TG_ENV_SCORE_STATS_H
#define TG_ENV_SCORE_STATS_H

#include "common/net/stats.h"
#include "env-server/reward/score_breaker.h"
#include "proto/messages.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_SCORE_STATUSES = TG_REWARD_INVALID + 1 };

typedef struct tg_score_stats {
    uint64_t results[TG_SCORE_STATUSES]; /* by tg_reward_status, texts */
    uint64_t calls, retries;
    uint64_t refused;        /* texts that found the queue full */
    uint64_t refused_open;   /* calls not made because the breaker was open */
    uint64_t cache_hits;     /* texts */
    uint64_t queued, active; /* texts now waiting; calls now under way */
    double seconds;          /* of all calls that ended */
    tg_breaker_state breaker;
    uint64_t breaker_opened;
} tg_score_stats;

/* Shows them as textgen_reward_fn_…{fn="…"}. */
void tg_score_stats_show(const tg_score_stats *s, const char *fn, tg_stats *to);

#endif
