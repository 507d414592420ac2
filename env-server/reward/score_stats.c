/* Statistics as Prometheus text. Label values are escaped as that format asks. */
#include "env-server/reward/score_stats.h"

#include <stdio.h>

const double tg_score_bounds[TG_SCORE_BUCKETS - 1] = {0.001, 0.002, 0.005, 0.01, 0.05, 0.1,
                                                      0.5,   1,     5,     10,   30};

static const char *const statuses[TG_SCORE_STATUSES] = {NULL,     "ok",      "pending",
                                                        "failed", "timeout", "invalid"};

void tg_score_stats_duration(tg_score_stats *s, double seconds) {
    size_t i = 0;
    while (i < TG_SCORE_BUCKETS - 1 && seconds > tg_score_bounds[i]) i++;
    s->durations[i]++;
    s->duration_sum += seconds;
}

static void label(tg_buf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') tg_buf_putc(out, '\\');
        if (*text == '\n')
            tg_buf_puts(out, "\\n");
        else
            tg_buf_putc(out, *text);
    }
}

static void line(tg_buf *out, const char *family, const char *fn, const char *more, double value) {
    tg_buf_printf(out, "textgen_reward_%s{fn=\"", family);
    label(out, fn);
    tg_buf_printf(out, "\"%s} %.17g\n", more, value);
}

static void head(tg_buf *out, const char *family, const char *type, const char *help) {
    tg_buf_printf(out, "# HELP textgen_reward_%s %s\n# TYPE textgen_reward_%s %s\n", family, help,
                  family, type);
}

static void write_results(const tg_score_stats *stats, const char *const *names, size_t n,
                          tg_buf *out) {
    head(out, "results_total", "counter", "Texts judged, by status.");
    for (size_t i = 0; i < n; i++)
        for (int k = TG_REWARD_OK; k < TG_SCORE_STATUSES; k++) {
            char more[32];
            if (k == TG_REWARD_PENDING) continue;
            snprintf(more, sizeof more, ",status=\"%s\"", statuses[k]);
            line(out, "results_total", names[i], more, (double)stats[i].results[k]);
        }
}

static void write_durations(const tg_score_stats *stats, const char *const *names, size_t n,
                            tg_buf *out) {
    head(out, "duration_seconds", "histogram", "Time of one call of the function.");
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < TG_SCORE_BUCKETS; k++) {
            char more[48];
            sum += stats[i].durations[k];
            if (k < TG_SCORE_BUCKETS - 1)
                snprintf(more, sizeof more, ",le=\"%g\"", tg_score_bounds[k]);
            else
                snprintf(more, sizeof more, ",le=\"+Inf\"");
            line(out, "duration_seconds_bucket", names[i], more, (double)sum);
        }
        line(out, "duration_seconds_sum", names[i], "", stats[i].duration_sum);
        line(out, "duration_seconds_count", names[i], "", (double)sum);
    }
}

void tg_score_stats_text(const tg_score_stats *stats, const char *const *names, size_t n,
                         tg_buf *out) {
#define FAMILY(name, type, help, field)                                                            \
    do {                                                                                           \
        head(out, name, type, help);                                                               \
        for (size_t i = 0; i < n; i++) line(out, name, names[i], "", (double)stats[i].field);      \
    } while (0)
    write_results(stats, names, n, out);
    write_durations(stats, names, n, out);
    FAMILY("calls_total", "counter", "Calls of the function.", calls);
    FAMILY("retries_total", "counter", "Calls made again after a failure.", retries);
    FAMILY("refused_total", "counter", "Texts that found the queue full.", refused);
    FAMILY("cache_hits_total", "counter", "Texts answered from the cache.", cache_hits);
    FAMILY("queue_depth", "gauge", "Texts waiting for a call.", queued);
    FAMILY("calls_active", "gauge", "Calls under way.", active);
    FAMILY("breaker_state", "gauge", "Circuit breaker: 0 closed, 1 open, 2 half open.", breaker);
    FAMILY("breaker_opened_total", "counter", "Times the circuit breaker opened.", breaker_opened);
#undef FAMILY
}
