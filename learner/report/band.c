/* See band.h. Runs that ended early simply stop counting. */
#include "learner/report/band.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>

double tg_student_t(int degrees) {
    static const double table[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912,
                                   2.364624,  2.306004, 2.262157, 2.228139, 2.200985, 2.178813,
                                   2.160369,  2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
                                   2.093024,  2.085963, 2.079614, 2.073873, 2.068658, 2.063899,
                                   2.059539,  2.055529, 2.051831, 2.048407, 2.045230, 2.042272};
    int n = (int)TG_COUNT_OF(table);
    if (degrees <= n) return table[TG_MAX(degrees, 1) - 1];
    /* Cornish-Fisher expansion around the normal quantile: within 2e-6 from here on. */
    double z = 1.959963985, v = degrees, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

static tg_status band_alloc(tg_band *b, int n, tg_error *err) {
    double *p = tg_alloc_array(4 * (size_t)n, sizeof *p);
    if (!p) return tg_fail_nomem(err, 4 * (size_t)n * sizeof *p);
    *b = (tg_band){.x = p, .mean = p + n, .lo = p + 2 * n, .hi = p + 3 * n, .n = n};
    return TG_OK;
}

tg_status tg_band_make(tg_band *out, const tg_series *const *series, int n, tg_error *err) {
    *out = (tg_band){0};
    const tg_series *longest = NULL;
    int n_runs = 0;
    for (int i = 0; i < n; i++) {
        n_runs += series[i]->n > 0;
        if (!longest || series[i]->n > longest->n) longest = series[i];
    }
    if (!longest || longest->n == 0) return TG_OK;
    int *at = tg_alloc_array((size_t)n, sizeof *at); /* where each series stands */
    if (!at) return tg_fail_nomem(err, (size_t)n * sizeof *at);
    tg_status st = band_alloc(out, longest->n, err);
    for (int p = 0; st == TG_OK && p < longest->n; p++) {
        double x = longest->x[p], sum = 0, squares = 0;
        int k = 0;
        for (int i = 0; i < n; i++) {
            while (at[i] < series[i]->n && series[i]->x[at[i]] < x) at[i]++;
            if (at[i] == series[i]->n || series[i]->x[at[i]] != x) continue;
            double y = series[i]->y[at[i]], old = k ? sum / k : 0;
            k++;
            sum += y;
            if (k > 1) squares += (y - old) * (y - sum / k); /* Welford */
        }
        double mean = sum / k,
               half = k > 1 ? tg_student_t(k - 1) * sqrt(squares / (k - 1)) / sqrt(k) : 0;
        out->x[p] = x;
        out->mean[p] = mean;
        out->lo[p] = mean - half;
        out->hi[p] = mean + half;
    }
    out->n_runs = n_runs;
    tg_free(at);
    return st;
}

void tg_band_fini(tg_band *b) {
    tg_free(b->x);
    *b = (tg_band){0};
}
