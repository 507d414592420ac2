/* Attention scores with soft capping, ALiBi slopes or biases by distance (op/attention.h). In tiles a row holds one key for all queries, in decoding
 * all keys for one query. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

/* Score of a product: `ahead` is how far the key lies behind the query, negative before it. */
static inline float score_of(float s, float scale, float softcap, float inverse, float slope,
                             float ahead, float *factor) {
    s *= scale;
    *factor = scale;
    if (softcap > 0) {
        float t = tanh_f32(s * inverse);
        s = softcap * t;
        *factor = scale * (1.0f - t * t);
    }
    return s + slope * ahead;
}

void TG_KERNEL(score_shape)(const tg_score_tile *t, float softcap, float slope, float *factor) {
    const float inverse = softcap > 0 ? 1.0f / softcap : 0, scale = t->scale;
    const int lanes = (t->rows + TG_SCORE_GROUP - 1) / TG_SCORE_GROUP * TG_SCORE_GROUP;
    float unused[TG_SCORE_LD];
    for (int j = 0; j < t->cols; j++) {
        float *s = t->s + (size_t)j * TG_SCORE_LD;
        /* cppcheck-suppress legacyUninitvar ; only written to */
        float *f = factor ? factor + (size_t)j * TG_SCORE_LD : unused;
        const int first = j - (t->limit - 1);
#pragma omp simd
        for (int r = 0; r < lanes; r++)
            s[r] = score_of(s[r], scale, softcap, inverse, slope, (float)(first - r), &f[r]);
    }
}

void TG_KERNEL(score_factor)(const tg_score_tile *t, float *d, const float *factor) {
    const size_t n = (size_t)t->cols * TG_SCORE_LD;
#pragma omp simd
    for (size_t i = 0; i < n; i++) d[i] *= factor[i];
}

void TG_KERNEL(score_bias)(const tg_score_tile *t, const float *line) {
    const int lanes = (t->rows + TG_SCORE_GROUP - 1) / TG_SCORE_GROUP * TG_SCORE_GROUP;
    const float scale = t->scale;
    for (int j = 0; j < t->cols; j++) {
        float *s = t->s + (size_t)j * TG_SCORE_LD;
        const float *b = line + (t->cols - 1 - j);
#pragma omp simd
        for (int r = 0; r < lanes; r++) s[r] = s[r] * scale + b[r];
    }
}

void TG_KERNEL(score_bias_grad)(const tg_score_tile *t, const float *d, float *line) {
    const int rows = t->rows;
    for (int j = 0; j < t->cols; j++) {
        const float *from = d + (size_t)j * TG_SCORE_LD;
        float *b = line + (t->cols - 1 - j);
#pragma omp simd
        for (int r = 0; r < rows; r++) b[r] += from[r];
    }
}

/* Key 0 of the row lies `distance` rows before the query. */
static inline void shape_row(float *s, int n, const tg_score_shape *h, int distance) {
    const float softcap = h->softcap, inverse = softcap > 0 ? 1.0f / softcap : 0;
    const float scale = h->scale, slope = h->slope;
    float unused[256];
#pragma omp simd
    for (int j = 0; j < n; j++)
        s[j] = score_of(s[j], scale, softcap, inverse, slope, (float)(j - distance), &unused[j]);
    for (int j = 0; h->bias && j < n; j++) {
        int far = distance - j < h->reach ? distance - j : h->reach; /* never negative */
        s[j] += h->bias[(size_t)(far + h->reach) * h->bias_step];
    }
}

static inline float high_of(const float *s, int n, float high) {
#pragma omp simd reduction(max : high)
    for (int j = 0; j < n; j++) high = s[j] > high ? s[j] : high;
    return high;
}

/* Keys in blocks with a running softmax, as in decode. */
void TG_KERNEL(decode_shaped)(float *out, const float *q, const float *k, const float *v, int n,
                              size_t ld, int D, const tg_score_shape *shape) {
    enum { BLOCK = 256 };
    float s[BLOCK], top = -INFINITY, sum = 0;
    for (int d = 0; d < D; d++) out[d] = 0;
    for (int j0 = 0; j0 < n; j0 += BLOCK) {
        const int m = n - j0 < BLOCK ? n - j0 : BLOCK;
        TG_KERNEL(dots)(s, 0, 1, q, 0, k + (size_t)j0 * ld, ld, 1, m, D, false);
        shape_row(s, m, shape, n - 1 - j0);
        const float high = high_of(s, m, top), fix = j0 ? exp_f32(top - high) : 0;
        top = high;
        sum *= fix;
        if (j0 && fix < 1.0f) TG_KERNEL(scale)(out, fix, (size_t)D);
        for (int j = 0; j < m; j++) {
            const float p = exp_f32(s[j] - high), *row = v + (size_t)(j0 + j) * ld;
            sum += p;
#pragma omp simd
            for (int d = 0; d < D; d++) out[d] += p * row[d];
        }
    }
    if (n > 0) TG_KERNEL(scale)(out, 1.0f / sum, (size_t)D);
}
