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

INLINE float product(const float *q, const void *row, size_t at, int D, const bool half) {
    vf even = {0}, odd = {0};
    int d = 0;
    for (; d + 2 * LANES <= D; d += 2 * LANES) {
        even += vload(q + d) * load(row, at + (size_t)d, half);
        odd += vload(q + d + LANES) * load(row, at + (size_t)d + LANES, half);
    }
    float sum = vsum(even + odd);
    for (; d < D; d++) sum += q[d] * load_one(row, at + (size_t)d, half);
    return sum;
}

/* out += p row, for two rows. */
INLINE void add_rows(float *out, float p0, const void *r0, float p1, const void *r1, size_t at,
                     int D, const bool half) {
    int d = 0;
    for (; d + LANES <= D; d += LANES) {
        vf sum = vload(out + d) + load(r0, at + (size_t)d, half) * p0;
        vstore(out + d, sum + load(r1, at + (size_t)d, half) * p1);
    }
    for (; d < D; d++) {
        float sum = out[d] + load_one(r0, at + (size_t)d, half) * p0;
        out[d] = sum + load_one(r1, at + (size_t)d, half) * p1;
    }
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

INLINE size_t head_at(const tg_decode_task *t, int h) {
    return (size_t)((t->first + h) / t->share) * (size_t)t->D;
}

INLINE void decode(const tg_decode_task *t, const bool half) {
    float s[HEADS][BLOCK], top[HEADS], sum[HEADS] = {0};
    for (int h = 0; h < t->heads; h++) top[h] = -INFINITY;
    memset(t->out, 0, (size_t)t->heads * (size_t)t->D * sizeof *t->out);
    for (int j0 = 0; j0 < t->n; j0 += BLOCK) {
        const int m = t->n - j0 < BLOCK ? t->n - j0 : BLOCK;
        for (int j = 0; j < m; j++) {
            const void *row = row_at(t->k, (size_t)(j0 + j), t->ld, half);
            for (int h = 0; h < t->heads; h++)
                s[h][j] = product(t->q + (size_t)h * t->q_step, row, head_at(t, h), t->D, half);
        }
        for (int h = 0; h < t->heads; h++) {
            shape_scores(s[h], m, &t->shape[h], t->n - 1 - j0);
            softmax_block(s[h], m, &top[h], &sum[h], t->out + (size_t)h * (size_t)t->D, t->D);
            if (m % 2) s[h][m] = 0; /* m < BLOCK: rows are added two by two */
        }
        for (int j = 0; j < m; j += 2) {
            const void *r0 = row_at(t->v, (size_t)(j0 + j), t->ld, half);
            const void *r1 = j + 1 < m ? row_at(t->v, (size_t)(j0 + j + 1), t->ld, half) : r0;
            for (int h = 0; h < t->heads; h++)
                add_rows(t->out + (size_t)h * (size_t)t->D, s[h][j], r0, s[h][j + 1], r1,
                         head_at(t, h), t->D, half);
        }
    }
    for (int h = 0; h < t->heads && t->n > 0; h++)
        TG_KERNEL(scale)(t->out + (size_t)h * (size_t)t->D, 1.0f / sum[h], (size_t)t->D);
}

void TG_KERNEL(decode)(const tg_decode_task *t) {
    if (t->half)
        decode(t, true);
    else
        decode(t, false);
}
