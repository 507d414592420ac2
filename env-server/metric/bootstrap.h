/* The median of the means of 1000 resamples, which rouge-score reports as `mid`.
 *
 * Resampling draws from a fixed stream, so a corpus has one value. With a seed it draws as numpy's
 * RandomState does after numpy.random.seed(seed), which gives rouge-score's own numbers. */
#ifndef TG_ENV_METRIC_BOOTSTRAP_H
#define TG_ENV_METRIC_BOOTSTRAP_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_bootstrap {
    bool numpy;
    unsigned series; /* values resampled so far; each has a stream of its own */
    uint32_t mt[624];
    unsigned at;
} tg_bootstrap;

/* seed INT64_MIN: none. */
void tg_bootstrap_init(tg_bootstrap *b, int64_t seed);
/* n > 0. */
tg_status tg_bootstrap_mid(tg_bootstrap *b, const double *x, size_t n, double *mid,
                           tg_error *err) TG_MUST_CHECK;

#endif
