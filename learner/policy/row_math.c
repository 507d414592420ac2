#include "learner/policy/row_math.h"

#include "common/base/check.h"

#include <math.h>
#include <stdlib.h>
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

int tg_row_first(const float *x, int n, float value) {
    const v4f wanted = {value, value, value, value};
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v4i hit = load(x + i) == wanted;
        for (int k = 4; k < 16; k += 4) hit |= load(x + i + k) == wanted;
        if (hit[0] | hit[1] | hit[2] | hit[3]) break;
    }
    while (i + 1 < n && x[i] != value) i++;
    return i < n ? i : n - 1;
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

int tg_row_count(const float *x, int n, float least) {
    const v4f bound = {least, least, least, least};
    v4i count = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4) count -= load(x + i) >= bound;
    int total = count[0] + count[1] + count[2] + count[3];
    for (; i < n; i++) total += x[i] >= least;
    return total;
}

void tg_row_drop(float *x, const float *by, int n, float least) {
    const v4f bound = {least, least, least, least};
    const v4f none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        v4f kept = choose(load(by + i) < bound, none, load(x + i));
        memcpy(x + i, &kept, sizeof kept);
    }
    for (; i < n; i++)
        if (by[i] < least) x[i] = -INFINITY;
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

/* Floats that are not negative are ordered as their bits are: passes over the keys, each settling some bits, find the place without
 * sorting, until few are left. */
static const struct level { int shift, bits; } levels[] = {{20, 12}, {10, 10}, {0, 10}};
enum { MOST_BUCKETS = 4096, FEW = 2048 };

static inline uint32_t bits_of(float key) {
    uint32_t bits;
    memcpy(&bits, &key, sizeof bits);
    return bits;
}

typedef struct mass {
    const float *key, *weight;
    int n;
    double target;
    bool inclusive;
    double seen;     /* weight of all keys below those with the prefix */
    uint32_t prefix; /* bits of the key that are settled */
    int members;     /* keys with this prefix */
} mass;

static inline bool reaches(const mass *m, double sum) {
    return m->inclusive ? sum >= m->target : sum > m->target;
}

/* Settles the level's bits: those of the bucket in which the running sum gets there. */
static void settle(mass *m, struct level level) {
    double sums[MOST_BUCKETS] = {0};
    int counts[MOST_BUCKETS] = {0};
    const uint32_t mask = (1u << level.bits) - 1;
    uint32_t highest = 0, bucket = 0;
    for (int i = 0; i < m->n; i++) {
        uint32_t bits = bits_of(m->key[i]);
        if ((uint64_t)bits >> (level.shift + level.bits) != m->prefix) continue;
        uint32_t b = bits >> level.shift & mask;
        sums[b] += (double)m->weight[i];
        counts[b]++;
        highest = b > highest ? b : highest;
    }
    while (bucket < highest && (!counts[bucket] || !reaches(m, m->seen + sums[bucket])))
        m->seen += sums[bucket++];
    m->prefix = m->prefix << level.bits | bucket;
    m->members = counts[bucket];
}

typedef struct member {
    float key;
    int32_t index;
} member;

static int by_key(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* The place among the members, all of which fit. `shift`: of the bits that are not settled. */
static void find_among_few(mass *m, int shift, float *at, int *skipped) {
    member few[FEW];
    int n = 0, i = 0;
    for (int k = 0; k < m->n; k++)
        if (bits_of(m->key[k]) >> shift == m->prefix) few[n++] = (member){m->key[k], k};
    qsort(few, (size_t)n, sizeof *few, by_key);
    for (; i + 1 < n; i++) {
        m->seen += (double)m->weight[few[i].index];
        if (reaches(m, m->seen)) break;
    }
    *at = few[i].key;
    *skipped = 0;
    while (i > 0 && few[i - 1].key == *at) (*skipped)++, i--;
}

/* The place among members with one and the same key. */
static void find_among_equals(mass *m, float *at, int *skipped) {
    memcpy(at, &m->prefix, sizeof *at);
    *skipped = 0;
    for (int i = 0, left = m->members; i < m->n && left > 1; i++) {
        if (bits_of(m->key[i]) != m->prefix) continue;
        m->seen += (double)m->weight[i];
        if (reaches(m, m->seen)) return;
        (*skipped)++;
        left--;
    }
}

void tg_row_mass(const float *key, const float *weight, int n, double target, bool inclusive,
                 float *at, int *skipped) {
    mass m = {.key = key, .weight = weight, .n = n, .target = target, .inclusive = inclusive};
    for (size_t l = 0; l < TG_COUNT_OF(levels); l++) {
        settle(&m, levels[l]);
        if (m.members > FEW) continue;
        find_among_few(&m, levels[l].shift, at, skipped);
        return;
    }
    find_among_equals(&m, at, skipped);
}
