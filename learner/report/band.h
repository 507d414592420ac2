/* Several runs of one quantity as one curve: the mean at every x, and a 95 % confidence band. */
#ifndef TG_REPORT_BAND_H
#define TG_REPORT_BAND_H

#include "common/base/status.h"
#include "learner/track/series.h"

typedef struct tg_band {
    double *x, *mean, *lo, *hi; /* (n), x ascending; one block, owned */
    int n;
    int n_runs; /* that have the quantity at all; 1: lo and hi equal the mean */
} tg_band;

/* A point for every x of the longest series, over the series that have it. lo and hi: mean -+
 * t(0.975, k - 1) s / sqrt(k) for k values there, s unbiased; the mean itself for k = 1. */
tg_status tg_band_make(tg_band *out, const tg_series *const *series, int n,
                       tg_error *err) TG_MUST_CHECK;
void tg_band_fini(tg_band *b);

/* 97.5 % quantile of Student's t. */
double tg_student_t(int degrees);

#endif
