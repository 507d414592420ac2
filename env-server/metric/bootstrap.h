/* The median of the means of 1000 resamples, which rouge-score reports as
 * `mid`.
 *
 * Resampling draws from a fixed stream, so a corpus has one value. With a seed
 * it draws as numpy's RandomState does after numpy.random.seed(seed), which
 * gives rouge-score's own numbers. */
#ifndef TG_ENV_METRIC_BOOTSTRAP_H
#define TG_ENV_METRIC_BOOTSTRAP_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_bootstrap {
    bool numpy;
    uint32_t mt[624];
    unsigned at;
} tg_bootstrap;

/* seed INT64_MIN: none. */
void tg_bootstrap_init(tg_bootstrap *b, int64_t seed);
/* x: n values (n > 0) of each of n_series, one series after the other; mid gets
 * n_series values. All series are resampled by the same draws, or, as
 * rouge-score does, one after the other with a seed. threads: as tg_metric_input has them. */
tg_status tg_bootstrap_mids(tg_bootstrap *b, const double *x, size_t n, size_t n_series,
                            int threads, double *mid, tg_error *err) TG_MUST_CHECK;

#endif
