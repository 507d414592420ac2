/* Sums run in a fixed order: four lanes over blocks of 64, then the blocks in double. */
#include "learner/policy/row_math.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

typedef float v4f __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

static inline v4f load(const float *x) {
    v4f v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline v4f choose(v4i mask, v4f yes, v4f no) {
    return (v4f)((mask & (v4i)yes) | (~mask & (v4i)no));
}

/* exp of x <= 0 (NaN stays NaN, below -87 it is 0): 2^n times a polynomial of the rest (Cephes' coefficients). */
static inline v4f exp4(v4f x) {
    const v4f least = {-87.0f, -87.0f, -87.0f, -87.0f};
    v4i small = x < least;
    v4f y = choose(small, least, x);
    v4f shifted = y * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to the nearest integer */
    v4i n = (v4i)shifted - 0x4b400000;
    v4f whole = shifted - 12582912.0f;
    v4f r = y - whole * 0.693359375f + whole * 2.12194440e-4f;
    v4f p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    v4f scale = (v4f)((n + 127) << 23);
    return choose(small, (v4f){0}, p * scale);
}

float tg_row_max(const float *x, int n) {
    v4f top = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    v4i bad = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        v4f v = load(x + i);
        bad |= v != v;
        top = choose(v > top, v, top);
    }
    float most = -INFINITY;
    for (int k = 0; k < 4; k++) {
        if (bad[k]) return (float)NAN;
        most = top[k] > most ? top[k] : most;
    }
    for (; i < n; i++) {
        if (isnan(x[i])) return (float)NAN;
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

/* One block of at most 64; the rest of a vector counts as -inf. */
static inline float exp_block(const float *x, int n, v4f top, float *e) {
    v4f sum = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        v4f y = exp4(load(x + i) - top);
        if (e) memcpy(e + i, &y, sizeof y);
        sum += y;
    }
    if (i < n) {
        float rest[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        memcpy(rest, x + i, (size_t)(n - i) * sizeof *x);
        v4f y = exp4(load(rest) - top);
        if (e) memcpy(e + i, &y, (size_t)(n - i) * sizeof *e);
        sum += y;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double tg_row_exp(const float *x, int n, float top, float *e, float *blocks) {
    const v4f tops = {top, top, top, top};
    double total = 0;
    for (int i = 0; i < n; i += TG_ROW_BLOCK) {
        float sum = exp_block(x + i, TG_MIN(TG_ROW_BLOCK, n - i), tops, e ? e + i : NULL);
        if (blocks) blocks[i / TG_ROW_BLOCK] = sum;
        total += (double)sum;
    }
    return total;
}

int tg_row_find(const float *e, const float *blocks, int n, double target) {
    double seen = 0;
    int last = -1;
    for (int i = 0; i < n; i += TG_ROW_BLOCK) {
        double sum = (double)blocks[i / TG_ROW_BLOCK];
        if (seen + sum <= target && i + TG_ROW_BLOCK < n) {
            seen += sum;
            continue;
        }
        double within = seen;
        for (int k = i; k < TG_MIN(i + TG_ROW_BLOCK, n); k++) {
            within += (double)e[k];
            if (e[k] > 0) last = k;
            if (within > target && e[k] > 0) return k;
        }
        seen += sum; /* rounding: the block's own sum was a little larger */
    }
    for (int k = n - 1; last < 0 && k >= 0; k--)
        if (e[k] > 0) last = k;
    return last;
}

/* Restores the heap below `at`: the smallest is at 0. */
static void sift_down(float *heap, int n, int at) {
    float value = heap[at];
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (!(heap[child] < value)) break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

/* By a heap of the k largest so far: nearly every element costs one comparison. */
static float kth_by_heap(const float *x, int n, int k, float *heap) {
    memcpy(heap, x, (size_t)k * sizeof *heap);
    for (int i = k / 2 - 1; i >= 0; i--) sift_down(heap, k, i);
    for (int i = k; i < n; i++) {
        if (!(x[i] > heap[0])) continue;
        heap[0] = x[i];
        sift_down(heap, k, 0);
    }
    return heap[0];
}

static float kth_by_partition(float *a, int n, int k) {
    int lo = 0, hi = n - 1;
    while (lo < hi) {
        float pivot = a[lo + (hi - lo) / 2];
        int i = lo, j = hi;
        while (i <= j) {
            while (a[i] > pivot) i++;
            while (a[j] < pivot) j--;
            if (i <= j) {
                float t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            break;
    }
    return a[k - 1];
}

float tg_row_kth_largest(const float *x, int n, int k, float *work) {
    TG_ASSERT(k >= 1 && k <= n);
    if (k <= TG_ROW_FEW) return kth_by_heap(x, n, k, work);
    memcpy(work, x, (size_t)n * sizeof *work);
    return kth_by_partition(work, n, k);
}

/* ---- mass -------------------------------------------------------------------------------------- */

/* Floats that are not negative are ordered as their bits are: three passes over the keys, each settling some bits, find the place
 * without sorting. */
static const struct level { int shift, bits; } levels[] = {{20, 12}, {10, 10}, {0, 10}};

static inline uint32_t bits_of(float key) {
    uint32_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits;
}

static inline bool reaches(double sum, double mass, bool inclusive) {
    return inclusive ? sum >= mass : sum > mass;
}

/* The bucket at this level in which the running sum gets there; *seen becomes the sum before it. `prefix` are the bits settled so far. */
static uint32_t mass_bucket(const float *key, const float *weight, int n, double mass,
                            bool inclusive, struct level level, uint32_t prefix, double *seen) {
    enum { MOST = 4096 };
    double sums[MOST] = {0};
    bool there[MOST] = {0};
    const uint32_t mask = (1u << level.bits) - 1;
    uint32_t highest = 0, bucket = 0;
    for (int i = 0; i < n; i++) {
        uint32_t bits = bits_of(key[i]);
        if ((uint64_t)bits >> (level.shift + level.bits) != prefix) continue;
        uint32_t b = bits >> level.shift & mask;
        sums[b] += (double)weight[i];
        there[b] = true;
        highest = b > highest ? b : highest;
    }
    while (bucket < highest && (!there[bucket] || !reaches(*seen + sums[bucket], mass, inclusive)))
        *seen += sums[bucket++];
    return bucket;
}

void tg_row_mass(const float *key, const float *weight, int n, double mass, bool inclusive,
                 float *at, int *skipped) {
    double seen = 0;
    uint32_t prefix = 0;
    for (size_t l = 0; l < TG_COUNT_OF(levels); l++)
        prefix = prefix << levels[l].bits |
                 mass_bucket(key, weight, n, mass, inclusive, levels[l], prefix, &seen);
    memcpy(at, &prefix, sizeof *at);
    *skipped = 0;
    int left = -1; /* with this key, behind the first */
    for (int i = 0; i < n; i++) left += bits_of(key[i]) == prefix;
    for (int i = 0; i < n && left > 0; i++) {
        if (bits_of(key[i]) != prefix) continue;
        seen += (double)weight[i];
        if (reaches(seen, mass, inclusive)) break;
        (*skipped)++;
        left--;
    }
}
