/* Counters, gauges and histograms of a process, and their text in Prometheus's format (0.0.4).
 *
 *     tg_stats *stats = tg_stats_create();
 *     tg_stat *steps = tg_stats_counter(stats, "textgen_env_steps_total", "Tokens stepped.", NULL, NULL);
 *     tg_stat_add(steps, 5);                       // any thread, no lock, no memory
 *     tg_stats_write(stats, &buf);
 *     tg_stats_destroy(&stats);
 *
 * Series are made at the start; making one twice gives the same one. Out of memory, a series is made that
 * counts but is not shown, so that callers need no check. Names and help texts are borrowed (literals);
 * label values are copied. */
#ifndef TG_NET_STATS_H
#define TG_NET_STATS_H

#include "common/base/buf.h"

#include <stdint.h>

typedef struct tg_stats tg_stats;
typedef struct tg_stat tg_stat;

tg_stats *tg_stats_create(void); /* NULL: out of memory */
void tg_stats_destroy(tg_stats **stats);

/* label_name NULL: none. Two labels: "a,b" with the values "x,y" (no value holds a comma). */
tg_stat *tg_stats_counter(tg_stats *stats, const char *name, const char *help,
                          const char *label_name, const char *label_value);
tg_stat *tg_stats_gauge(tg_stats *stats, const char *name, const char *help, const char *label_name,
                        const char *label_value);
/* Of seconds, with fixed limits from 10 us to 60 s. */
tg_stat *tg_stats_histogram(tg_stats *stats, const char *name, const char *help,
                            const char *label_name, const char *label_value);

void tg_stat_add(tg_stat *counter, uint64_t n);
void tg_stat_set(tg_stat *stat, double value); /* a gauge, or a counter kept elsewhere */
void tg_stat_observe(tg_stat *histogram, double seconds);
double tg_stat_value(const tg_stat *stat); /* of a histogram: how many */

void tg_stats_write(tg_stats *stats, tg_buf *out);
/* CPU time, memory, file descriptors, start time: read now, written as process_… */
void tg_stats_write_process(tg_buf *out);
uint64_t tg_process_rss(void); /* bytes; 0: unknown */

#endif
