/* Statistics of a function as series of the process. */
#include "env-server/reward/score_stats.h"

#include <stdio.h>
#include <string.h>

static void show_results(const tg_score_stats *s, const char *fn, tg_stats *to) {
    static const char *const names[TG_SCORE_STATUSES] = {NULL,     NULL,      NULL,
                                                         "failed", "timeout", "invalid"};
    for (int k = TG_REWARD_OK; k < TG_SCORE_STATUSES; k++) {
        char values[160];
        if (k == TG_REWARD_PENDING) continue;
        snprintf(values, sizeof values, "%s,%s", fn, k == TG_REWARD_OK ? "ok" : names[k]);
        tg_stat_set(tg_stats_counter(to, "textgen_reward_fn_results_total",
                                     "Texts judged by a function outside this program.",
                                     "fn,status", values),
                    (double)s->results[k]);
    }
}

void tg_score_stats_show(const tg_score_stats *s, const char *name, tg_stats *to) {
    char fn[128];
    snprintf(fn, sizeof fn, "%s", name);
    for (char *c = fn; (c = strchr(c, ','));) *c = '_'; /* it parts labels there */
#define COUNTER(id, help, value)                                                                   \
    tg_stat_set(tg_stats_counter(to, "textgen_reward_fn_" id, help, "fn", fn), (double)(value))
#define GAUGE(id, help, value)                                                                     \
    tg_stat_set(tg_stats_gauge(to, "textgen_reward_fn_" id, help, "fn", fn), (double)(value))
    show_results(s, fn, to);
    COUNTER("calls_total", "Calls of the function.", s->calls);
    COUNTER("call_seconds_total", "Time of these calls.", s->seconds);
    COUNTER("retries_total", "Calls made again after a failure.", s->retries);
    COUNTER("refused_total", "Texts that found the queue full.", s->refused);
    COUNTER("skipped_total", "Calls not made because the breaker was open.", s->refused_open);
    COUNTER("cache_hits_total", "Texts answered from the cache.", s->cache_hits);
    COUNTER("breaker_opened_total", "Times the circuit breaker opened.", s->breaker_opened);
    GAUGE("queue_depth", "Texts waiting for a call.", s->queued);
    GAUGE("calls_active", "Calls under way.", s->active);
    GAUGE("breaker_state", "Circuit breaker: 0 closed, 1 open, 2 half open.", s->breaker);
#undef COUNTER
#undef GAUGE
}
