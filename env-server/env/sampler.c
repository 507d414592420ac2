/* The choice of prompts. Read-only after init: any thread. */
#include "env-server/env/sampler.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/rng.h"

#include <math.h>
#include <string.h>

tg_status tg_sampler_init(tg_sampler *s, const tg_datapool *pool, double priority_scale,
                          tg_error *err) {
    *s = (tg_sampler){.n = pool->count};
    if (priority_scale == 0 || !pool->ops->weight || s->n == 0) return TG_OK;
    double *sums = tg_alloc_array(s->n, sizeof *sums), total = 0;
    if (!sums) return tg_fail_nomem(err, s->n * sizeof *sums);
    bool equal = true;
    double first = 0, w = 0;
    tg_status st = TG_OK;
    for (uint64_t i = 0; i < s->n && st == TG_OK; i++) {
        st = pool->ops->weight(pool->state, i, &w, err);
        if (i == 0) first = w;
        equal = equal && w == first;
        total += pow(w, priority_scale);
        sums[i] = total;
    }
    if (st == TG_OK && !(total > 0 && isfinite(total)))
        st = tg_fail(err, TG_DATA,
                     "datapool: the weights of the samples sum to %g with priority_scale %g", total,
                     priority_scale);
    if (st != TG_OK || equal) {
        tg_free(sums);
        return st;
    }
    s->cumulative = sums;
    return TG_OK;
}

void tg_sampler_fini(tg_sampler *s) {
    tg_free(s->cumulative);
    memset(s, 0, sizeof *s);
}

uint64_t tg_sampler_pick(const tg_sampler *s, uint64_t seed, uint64_t episode) {
    TG_ASSERT(s->n > 0);
    if (!s->cumulative)
        return tg_permute(seed, TG_RNG_PROMPT, episode / s->n, episode % s->n, s->n);
    tg_rng r = tg_rng_at(seed, TG_RNG_PROMPT, episode, 0);
    double u = tg_rng_uniform(&r) * s->cumulative[s->n - 1];
    uint64_t low = 0, high = s->n - 1; /* the first sample whose sum exceeds u */
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (s->cumulative[mid] > u)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}
