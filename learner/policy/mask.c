/* See mask.h. All in O(V): no sorting. */
#include "learner/policy/mask.h"

#include "learner/policy/row_math.h"

#include <math.h>
#include <string.h>

static void allow(uint32_t *bits, int t) {
    bits[t / 32] |= 1u << (t % 32);
}

/* The k largest; of equal ones those with the smaller number. */
static void allow_largest(uint32_t *bits, const float *x, int V, int k, float *work) {
    float last = tg_row_kth_largest(x, V, k, work);
    int left = k;
    for (int t = 0; t < V; t++)
        if (x[t] > last) allow(bits, t), left--;
    for (int t = 0; t < V && left > 0; t++)
        if (x[t] == last) allow(bits, t), left--;
}

/* In descending order every token that less than or exactly `share` of the probability lies before; returns how many. */
static int allow_nucleus(uint32_t *bits, const float *x, int V, double share, tg_gen_space *w) {
    float top = tg_row_max(x, V), at;
    double sum = tg_row_exp(x, V, top, w->e, w->blocks);
    int skipped, n = 0;
    for (int t = 0; t < V; t++) w->work[t] = top - x[t]; /* ascending keys: descending x */
    tg_row_mass(w->work, w->e, V, share * sum, false, &at, &skipped);
    for (int t = 0; t < V; t++) {
        bool same = w->work[t] == at;
        if (w->work[t] < at || (same && skipped >= 0)) allow(bits, t), n++;
        if (same) skipped--;
    }
    return n;
}

void tg_mask_make(const tg_mask_opts *o, const float *learned, const float *policy, int V,
                  const uint32_t *always, uint32_t *bits, tg_gen_space *w) {
    const int words = (V + 31) / 32;
    memset(bits, 0, (size_t)words * sizeof *bits);
    int least = o->min_keep < V ? (int)o->min_keep : V;
    int k = o->top > 0 && o->top < V ? (int)o->top : V; /* -1: the whole vocabulary */
    if (o->kind == TG_MASK_LEARNED_TOP_K) allow_largest(bits, learned, V, k, w->work);
    if (o->kind == TG_MASK_TOP_K) allow_largest(bits, policy, V, k, w->work);
    if (o->kind == TG_MASK_LEARNED_TOP_P && allow_nucleus(bits, learned, V, o->top, w) < least)
        allow_largest(bits, learned, V, least, w->work);
    for (int i = 0; i < words; i++) bits[i] |= always[i];
}

void tg_mask_forbid(float *scores, const uint32_t *bits, int V) {
    for (int t = 0; t < V; t++)
        if (!(bits[t / 32] >> (t % 32) & 1)) scores[t] = -INFINITY;
}
