/* Buckets: the first 64 are one nanosecond wide, then every power of two is cut into 64. */
#include "env-server/load/histogram.h"

enum { SUB_BITS = 6 };

static unsigned bucket_of(uint64_t ns) {
    if (ns < TG_HISTOGRAM_SUB) return (unsigned)ns;
    unsigned top = 63u - (unsigned)__builtin_clzll(ns);
    unsigned shift = top - SUB_BITS;
    unsigned b = (shift + 1) * TG_HISTOGRAM_SUB + (unsigned)((ns >> shift) - TG_HISTOGRAM_SUB);
    return b < TG_HISTOGRAM_BUCKETS ? b : TG_HISTOGRAM_BUCKETS - 1;
}

/* The largest time of a bucket. */
static uint64_t top_of(unsigned bucket) {
    if (bucket < TG_HISTOGRAM_SUB) return bucket;
    unsigned shift = bucket / TG_HISTOGRAM_SUB - 1;
    uint64_t low = ((uint64_t)(bucket % TG_HISTOGRAM_SUB) + TG_HISTOGRAM_SUB) << shift;
    return low + ((uint64_t)1 << shift) - 1;
}

void tg_histogram_add(tg_histogram *h, uint64_t ns) {
    h->counts[bucket_of(ns)]++;
    h->n++;
    h->sum += ns;
    if (ns > h->max) h->max = ns;
}

uint64_t tg_histogram_at(const tg_histogram *h, double q) {
    uint64_t wanted = (uint64_t)(q * (double)h->n), seen = 0;
    if (wanted >= h->n) return h->max;
    for (unsigned b = 0; b < TG_HISTOGRAM_BUCKETS; b++) {
        seen += h->counts[b];
        if (seen > wanted) return top_of(b) < h->max ? top_of(b) : h->max;
    }
    return h->max;
}

double tg_histogram_mean(const tg_histogram *h) {
    return h->n ? (double)h->sum / (double)h->n : 0;
}
