/* Attention of one token to a cache, several heads at once: a row of the cache holds the keys (or values) of all heads, and is read from
 * one end to the other. Keys come in blocks with a running softmax.
 *
 * What a head gets does not depend on the heads beside it. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))
enum { BLOCK = 64, HEADS = TG_DECODE_HEADS };

/* LANES elements of the cache. */
INLINE vf load(const void *row, size_t at, const bool half) {
    if (!half) return vload((const float *)row + at);
    typedef uint16_t vh __attribute__((vector_size(LANES * sizeof(uint16_t))));
    typedef uint32_t vu __attribute__((vector_size(LANES * sizeof(uint32_t))));
    vh h;
    memcpy(&h, (const uint16_t *)row + at, sizeof h);
    vu wide = __builtin_convertvector(h, vu) << 16;
    vf f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

INLINE float load_one(const void *row, size_t at, const bool half) {
    return half ? float_of_bits((uint32_t)((const uint16_t *)row)[at] << 16)
                : ((const float *)row)[at];
}

INLINE const void *row_at(const void *cache, size_t row, size_t ld, const bool half) {
    return half ? (const void *)((const uint16_t *)cache + row * ld)
                : (const void *)((const float *)cache + row * ld);
}

enum { ROWS = 4 }; /* of the cache, at a time */

/* The sums of four vectors: those of pairs of lanes meet, then of quarters. */
INLINE void sum_rows(float out[ROWS], const vf v[ROWS]) {
#if defined(TG_ISA_AVX512)
#define SHUFFLE(x, y, a, b, c, d)                                                                  \
    __builtin_shufflevector(x, y, a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8,     \
                            d + 8, a + 12, b + 12, c + 12, d + 12)
    enum { SECOND = 16 };
#elif defined(TG_ISA_AVX2)
#define SHUFFLE(x, y, a, b, c, d)                                                                  \
    __builtin_shufflevector(x, y, a, b, c, d, a + 4, b + 4, c + 4, d + 4)
    enum { SECOND = 8 };
#else
#define SHUFFLE(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
    enum { SECOND = 4 };
#endif
    enum { T = SECOND };
    vf a = SHUFFLE(v[0], v[1], 0, T, 1, T + 1) + SHUFFLE(v[0], v[1], 2, T + 2, 3, T + 3);
    vf b = SHUFFLE(v[2], v[3], 0, T, 1, T + 1) + SHUFFLE(v[2], v[3], 2, T + 2, 3, T + 3);
    vf all = SHUFFLE(a, b, 0, 1, T, T + 1) + SHUFFLE(a, b, 2, 3, T + 2, T + 3);
#undef SHUFFLE
#if defined(TG_ISA_AVX512)
    all += __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
#if defined(TG_ISA_AVX512) || defined(TG_ISA_AVX2)
    all += __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3
#if defined(TG_ISA_AVX512)
                                   ,
                                   4, 5, 6, 7, 0, 1, 2, 3
#endif
    );
#endif
    memcpy(out, &all, ROWS * sizeof *out);
}

enum { AHEAD = 2 * ROWS, LINE = 64 };

/* One head's part of the ROWS rows from `row` on goes to the second cache: a row is read in pieces too short for the processor to see
 * what comes, and the first cache has not as many misses under way as the memory could answer. */
INLINE void fetch_rows(const void *row, size_t at, size_t ld, int D, const bool half) {
    const size_t size = half ? sizeof(uint16_t) : sizeof(float);
    for (size_t i = 0; i < ROWS; i++) {
        const char *p = (const char *)row + (i * ld + at) * size;
        for (size_t d = 0; d < (size_t)D * size; d += LINE) __builtin_prefetch(p + d, 0, 2);
    }
}

/* out[i] = q . row i */
INLINE void products(float out[ROWS], const float *q, const void *const row[ROWS], size_t at, int D,
                     const bool half) {
    vf sum[ROWS] = {{0}};
    int d = 0;
    for (; d + LANES <= D; d += LANES) {
        const vf x = vload(q + d);
        for (int i = 0; i < ROWS; i++) sum[i] += x * load(row[i], at + (size_t)d, half);
    }
    sum_rows(out, sum);
    for (; d < D; d++)
        for (int i = 0; i < ROWS; i++) out[i] += q[d] * load_one(row[i], at + (size_t)d, half);
}

/* out += p[i] row i */
INLINE void add_rows(float *out, const float p[ROWS], const void *const row[ROWS], size_t at, int D,
                     const bool half) {
    int d = 0;
    for (; d + LANES <= D; d += LANES) {
        vf sum = vload(out + d);
        for (int i = 0; i < ROWS; i++) sum += load(row[i], at + (size_t)d, half) * p[i];
        vstore(out + d, sum);
    }
    for (; d < D; d++)
        for (int i = 0; i < ROWS; i++) out[d] += load_one(row[i], at + (size_t)d, half) * p[i];
}

/* Rows j .. j + ROWS - 1 of n; behind the last one it comes again. */
INLINE void find_rows(const void *row[ROWS], const void *cache, int j, int n, size_t ld,
                      const bool half) {
    for (int i = 0; i < ROWS; i++)
        row[i] = row_at(cache, (size_t)(j + i < n ? j + i : n - 1), ld, half);
}

/* Products become scores; key 0 of them lies `distance` rows before the query. */
static inline void shape_scores(float *s, int n, const tg_score_shape *h, int distance) {
    const float softcap = h->softcap, inverse = softcap > 0 ? 1.0f / softcap : 0;
    const float scale = h->scale, slope = h->slope;
#pragma omp simd
    for (int j = 0; j < n; j++) s[j] *= scale;
    if (softcap > 0)
#pragma omp simd
        for (int j = 0; j < n; j++) s[j] = softcap * tanh_f32(s[j] * inverse);
    if (slope != 0)
#pragma omp simd
        for (int j = 0; j < n; j++) s[j] += slope * (float)(j - distance);
    for (int j = 0; h->bias && j < n; j++) {
        int far = distance - j < h->reach ? distance - j : h->reach; /* never negative */
        s[j] += h->bias[(size_t)(far + h->reach) * h->bias_step];
    }
}

/* s becomes exp(s - top); what was summed before is scaled to the new top. */
static inline void softmax_block(float *s, int n, float *top, float *sum, float *out, int D) {
    float high = *top, total = 0;
#pragma omp simd reduction(max : high)
    for (int j = 0; j < n; j++) high = s[j] > high ? s[j] : high;
    if (high > *top && *sum > 0) {
        const float fix = exp_f32(*top - high);
        *sum *= fix;
        TG_KERNEL(scale)(out, fix, (size_t)D);
    }
    *top = high;
#pragma omp simd reduction(+ : total)
    for (int j = 0; j < n; j++) {
        float e = exp_f32(s[j] - high);
        s[j] = e;
        total += e;
    }
    *sum += total;
}

INLINE size_t head_at(const tg_decode_task *t, int h, const int D) {
    return (size_t)((t->first + h) / t->share) * (size_t)D;
}

/* Whether the head's part of a row is not that of the one before. */
INLINE bool is_new(const tg_decode_task *t, int h) {
    return h == 0 || (t->first + h) % t->share == 0;
}

INLINE void decode(const tg_decode_task *t, const bool half, const int D) {
    float s[HEADS][BLOCK], top[HEADS], sum[HEADS] = {0};
    for (int h = 0; h < t->heads; h++) top[h] = -INFINITY;
    memset(t->out, 0, (size_t)t->heads * (size_t)D * sizeof *t->out);
    for (int j0 = 0; j0 < t->n; j0 += BLOCK) {
        const int m = t->n - j0 < BLOCK ? t->n - j0 : BLOCK;
        const void *row[ROWS];
        for (int j = 0; j < m; j += ROWS) {
            find_rows(row, t->k, j0 + j, t->n, t->ld, half);
            const void *next = j + AHEAD < m ? row_at(t->k, (size_t)(j0 + j + AHEAD), t->ld, half)
                                             : row_at(t->v, (size_t)(j0 + j % AHEAD), t->ld, half);
            for (int h = 0; h < t->heads; h++) {
                if (is_new(t, h)) fetch_rows(next, head_at(t, h, D), t->ld, D, half);
                products(s[h] + j, t->q + (size_t)h * t->q_step, row, head_at(t, h, D), D, half);
            }
        }
        for (int h = 0; h < t->heads; h++) {
            shape_scores(s[h], m, &t->shape[h], t->n - 1 - j0);
            softmax_block(s[h], m, &top[h], &sum[h], t->out + (size_t)h * (size_t)D, D);
            for (int j = m; j % ROWS; j++) s[h][j] = 0; /* rows that came again */
        }
        for (int j = 0; j < m; j += ROWS) {
            find_rows(row, t->v, j0 + j, t->n, t->ld, half);
            const void *next =
                row_at(j + AHEAD < m ? t->v : t->k, (size_t)(j0 + j + AHEAD), t->ld, half);
            for (int h = 0; h < t->heads; h++) {
                if (is_new(t, h)) fetch_rows(next, head_at(t, h, D), t->ld, D, half);
                add_rows(t->out + (size_t)h * (size_t)D, s[h] + j, row, head_at(t, h, D), D, half);
            }
        }
    }
    for (int h = 0; h < t->heads && t->n > 0; h++)
        TG_KERNEL(scale)(t->out + (size_t)h * (size_t)D, 1.0f / sum[h], (size_t)D);
}

/* Where the compiler knows the size of a head, as the usual one, its loops over it become straight lines. */
INLINE void by_size(const tg_decode_task *t, const bool half) {
    if (t->D == 64)
        decode(t, half, 64);
    else
        decode(t, half, t->D);
}

void TG_KERNEL(decode)(const tg_decode_task *t) {
    if (t->half)
        by_size(t, true);
    else
        by_size(t, false);
}
