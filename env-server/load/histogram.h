/* Times in nanoseconds, counted in buckets of about 1 % width from 1 ns to 18 minutes: percentiles without keeping the
 * times. */
#ifndef TG_LOAD_HISTOGRAM_H
#define TG_LOAD_HISTOGRAM_H

#include <stdint.h>

enum { TG_HISTOGRAM_SUB = 64, TG_HISTOGRAM_BUCKETS = 40 * TG_HISTOGRAM_SUB };

typedef struct tg_histogram {
    uint64_t counts[TG_HISTOGRAM_BUCKETS];
    uint64_t n, sum, max;
} tg_histogram;

void tg_histogram_add(tg_histogram *h, uint64_t ns);
/* The time that the share q (0 to 1) of all does not exceed, to 1.6 %; 0 when empty. */
uint64_t tg_histogram_at(const tg_histogram *h, double q);
double tg_histogram_mean(const tg_histogram *h);

#endif
