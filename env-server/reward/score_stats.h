/* Figures of one reward function outside the loop, for /metrics and `textgen top`. */
#ifndef TG_ENV_SCORE_STATS_H
#define TG_ENV_SCORE_STATS_H

#include "common/base/buf.h"
#include "env-server/reward/score_breaker.h"
#include "proto/messages.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_SCORE_STATUSES = TG_REWARD_INVALID + 1, TG_SCORE_BUCKETS = 12 };
/* Upper bounds of the duration histogram in seconds; the last bucket has none. */
extern const double tg_score_bounds[TG_SCORE_BUCKETS - 1];

typedef struct tg_score_stats {
    uint64_t results[TG_SCORE_STATUSES]; /* by tg_reward_status, texts */
    uint64_t calls, retries;
    uint64_t refused;                     /* texts that found the queue full */
    uint64_t refused_open;                /* calls not made because the breaker was open */
    uint64_t cache_hits;                  /* texts */
    uint64_t queued, active;              /* texts now waiting; calls now under way */
    uint64_t durations[TG_SCORE_BUCKETS]; /* of calls, not cumulative */
    double duration_sum;
    tg_breaker_state breaker;
    uint64_t breaker_opened;
} tg_score_stats;

void tg_score_stats_duration(tg_score_stats *s, double seconds);

/* Prometheus text of n functions: textgen_reward_results_total{fn="…",status="…"} and so on, each family once. */
void tg_score_stats_text(const tg_score_stats *stats, const char *const *names, size_t n,
                         tg_buf *out);

#endif
