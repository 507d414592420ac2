/* Attention tiles. Scores are kept transposed: a row holds one key for 16 or 32 queries, so that every step of the softmax is the
 * same operation on neighbouring lanes, and masking touches only the keys on the diagonal. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

enum { GROUP = TG_SCORE_GROUP };

/* Keys that all queries of the tile see; those behind may be hidden from some. */
static inline int seen_by_all(const tg_score_tile *t) {
    int n = t->causal ? t->limit : t->cols;
    return n < 0 ? 0 : n > t->cols ? t->cols : n;
}

/* Hides key j from query r of the group at q0 when it lies ahead of it. */
static inline void hide(const tg_score_tile *t, float *s, int j, int q0) {
#pragma omp simd
    for (int r = 0; r < GROUP; r++) s[r] = j < t->limit + q0 + r ? s[r] : -INFINITY;
}

/* And when a window has passed it. */
static inline void hide_passed(const tg_score_tile *t, float *s, int j, int q0) {
#pragma omp simd
    for (int r = 0; r < GROUP; r++) s[r] = j < t->limit + q0 + r - t->window ? -INFINITY : s[r];
}

static inline void softmax_group(const tg_score_tile *t, int q0, float *top, float *sum,
                                 float *fix) {
    const int clear = seen_by_all(t);
    const float scale = t->scale;
    float high[GROUP], total[GROUP] = {0};
    for (int r = 0; r < GROUP; r++) high[r] = -INFINITY;
    for (int j = 0; j < t->cols; j++) {
        float *s = t->s + (size_t)j * TG_SCORE_LD + q0;
        if (j >= clear) hide(t, s, j, q0);
        if (t->window > 0) hide_passed(t, s, j, q0);
#pragma omp simd
        for (int r = 0; r < GROUP; r++) high[r] = s[r] > high[r] ? s[r] : high[r];
    }
    for (int r = 0; r < GROUP; r++) {
        high[r] *= scale; /* scale > 0 */
        if (!(high[r] > top[r])) high[r] = top[r];
        fix[r] = high[r] == top[r] ? 1.0f : exp_f32(top[r] - high[r]);
        top[r] = high[r];
        if (high[r] == -INFINITY) high[r] = 0; /* nothing seen yet: all weights are 0 */
    }
    for (int j = 0; j < t->cols; j++) {
        float *s = t->s + (size_t)j * TG_SCORE_LD + q0;
#pragma omp simd
        for (int r = 0; r < GROUP; r++) {
            float e = exp_f32(s[r] * scale - high[r]);
            s[r] = e;
            total[r] += e;
        }
    }
    for (int r = 0; r < GROUP; r++) sum[r] = sum[r] * fix[r] + total[r];
}

void TG_KERNEL(softmax_tile)(const tg_score_tile *t, float *top, float *sum, float *fix) {
    for (int q0 = 0; q0 < t->rows; q0 += GROUP) softmax_group(t, q0, top + q0, sum + q0, fix + q0);
}

static inline void softmax_grad_group(const tg_score_tile *t, float *dp, int q0, const float *lse,
                                      const float *delta) {
    const int clear = seen_by_all(t);
    const float scale = t->scale;
    for (int j = 0; j < t->cols; j++) {
        float *s = t->s + (size_t)j * TG_SCORE_LD + q0, *d = dp + (size_t)j * TG_SCORE_LD + q0;
        if (j >= clear) hide(t, s, j, q0);
        if (t->window > 0) hide_passed(t, s, j, q0);
#pragma omp simd
        for (int r = 0; r < GROUP; r++) {
            float p = exp_f32(s[r] * scale - lse[r]);
            s[r] = p;
            d[r] = scale * p * (d[r] - delta[r]);
        }
    }
}

void TG_KERNEL(softmax_grad_tile)(const tg_score_tile *t, float *dp, const float *lse,
                                  const float *delta) {
    for (int q0 = 0; q0 < t->rows; q0 += GROUP) softmax_grad_group(t, dp, q0, lse + q0, delta + q0);
}

float TG_KERNEL(dot)(const float *a, const float *b, int n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
