/* Series of one reward function. */
#include "env-server/reward/meter.h"

#include <stdio.h>
#include <string.h>

void tg_reward_meter_init(tg_reward_meter *m, tg_stats *stats, const char *name) {
    static const char *const statuses[] = {NULL, "ok", "pending", "failed", "timeout", "invalid"};
    char fn[128], values[160];
    snprintf(fn, sizeof fn, "%s", name);
    for (char *c = fn; (c = strchr(c, ','));) *c = '_'; /* it parts labels there */
    m->seconds = tg_stats_histogram(stats, "textgen_reward_duration_seconds",
                                    "One call of a reward function.", "fn", fn);
    for (int i = TG_REWARD_OK; i <= TG_REWARD_INVALID; i++) {
        snprintf(values, sizeof values, "%s,%s", fn, statuses[i]);
        m->results[i] = tg_stats_counter(stats, "textgen_reward_results_total",
                                         "Texts judged by a reward function.", "fn,status", values);
    }
}

void tg_reward_meter_count(tg_reward_meter *m, tg_reward_status status, uint64_t n) {
    if (m && status >= TG_REWARD_OK && status <= TG_REWARD_INVALID)
        tg_stat_add(m->results[status], n);
}
