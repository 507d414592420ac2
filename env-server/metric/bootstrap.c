/* Bootstrap resampling with a fixed stream. Pure but for the state passed in.
 *
 * numpy's stream is MT19937 (Matsumoto and Nishimura 1998) seeded by
 * init_genrand; an index below n is a 32-bit draw under the smallest mask that
 * holds n - 1, drawn again while it is too large. */
#include "env-server/metric/bootstrap.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/threads.h"
#include "common/base/rng.h"

#include <stdlib.h>

enum { ROUNDS = 1000, MT_N = 624, MT_M = 397 };

void tg_bootstrap_init(tg_bootstrap *b, int64_t seed) {
    b->numpy = seed != INT64_MIN;
    b->mt[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < MT_N; i++)
        b->mt[i] = 1812433253u * (b->mt[i - 1] ^ (b->mt[i - 1] >> 30)) + i;
    b->at = MT_N;
}

static uint32_t mt_u32(tg_bootstrap *b) {
    if (b->at == MT_N) {
        for (unsigned i = 0; i < MT_N; i++) {
            uint32_t y = (b->mt[i] & 0x80000000u) | (b->mt[(i + 1) % MT_N] & 0x7fffffffu);
            b->mt[i] = b->mt[(i + MT_M) % MT_N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        b->at = 0;
    }
    uint32_t y = b->mt[b->at++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static size_t numpy_below(tg_bootstrap *b, size_t n) {
    uint32_t largest = (uint32_t)(n - 1), mask = largest, draw;
    if (!largest) return 0;
    for (unsigned shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do draw = mt_u32(b) & mask;
    while (draw > largest);
    return draw;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *means) {
    qsort(means, ROUNDS, sizeof *means, by_value);
    double low = means[ROUNDS / 2 - 1], high = means[ROUNDS / 2];
    return high - (high - low) * 0.5;
}

enum { MAX_SERIES = 4 };

/* Rounds draw from streams of their own, so that any thread can do any of them. */
typedef struct together {
    const double *rows; /* a sample's values of all series, MAX_SERIES beside each other */
    size_t n, n_series;
    double *means; /* ROUNDS of each series */
} together;

static void resample_round(void *arg, int k) {
    const together *t = arg;
    tg_rng rng = tg_rng_at(0, TG_RNG_BOOTSTRAP, (uint64_t)k, 0);
    double sum[MAX_SERIES] = {0}; /* the means of neighbouring rounds share a cache line */
    for (size_t i = 0; i < t->n; i++) {
        /* a number below n; for n samples it is off evenness by n / 2^32 */
        const double *row = t->rows + MAX_SERIES * (tg_rng_u32(&rng) * (uint64_t)t->n >> 32);
        for (size_t s = 0; s < MAX_SERIES; s++) sum[s] += row[s];
    }
    for (size_t s = 0; s < t->n_series; s++)
        t->means[s * ROUNDS + (size_t)k] = sum[s] / (double)t->n;
}

static tg_status run_rounds(together *t, int threads, tg_error *err) {
    tg_team *team = NULL;
    if (threads != 0 && threads != 1) {
        tg_status st = tg_team_create(&team, threads > 0 ? threads : 0, err);
        if (st != TG_OK) return st;
        tg_team_run(team, ROUNDS, resample_round, t);
        tg_team_destroy(&team);
        return TG_OK;
    }
    for (int k = 0; k < ROUNDS; k++) resample_round(t, k);
    return TG_OK;
}

static tg_status resample_together(const double *x, size_t n, size_t n_series, double *means,
                                   int threads, tg_error *err) {
    double *rows = tg_alloc_array(n, MAX_SERIES * sizeof *rows);
    if (!rows) return tg_fail_nomem(err, n * MAX_SERIES * sizeof *rows);
    for (size_t s = 0; s < n_series; s++)
        for (size_t i = 0; i < n; i++) rows[MAX_SERIES * i + s] = x[s * n + i];
    tg_status st = run_rounds(&(together){rows, n, n_series, means}, threads, err);
    tg_free(rows);
    return st;
}

static void resample_as_numpy(tg_bootstrap *b, const double *x, size_t n, double *means) {
    for (size_t k = 0; k < ROUNDS; k++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += x[numpy_below(b, n)];
        means[k] = sum / (double)n;
    }
}

tg_status tg_bootstrap_mids(tg_bootstrap *b, const double *x, size_t n, size_t n_series,
                            int threads, double *mid, tg_error *err) {
    TG_ASSERT(n_series <= MAX_SERIES);
    double *means = tg_alloc_array(ROUNDS * n_series, sizeof *means);
    if (!means) return tg_fail_nomem(err, ROUNDS * n_series * sizeof *means);
    tg_status st = TG_OK;
    if (!b->numpy) st = resample_together(x, n, n_series, means, threads, err);
    for (size_t s = 0; s < n_series && st == TG_OK; s++) {
        if (b->numpy) resample_as_numpy(b, x + s * n, n, means + s * ROUNDS);
        mid[s] = median(means + s * ROUNDS);
    }
    tg_free(means);
    return st;
}
