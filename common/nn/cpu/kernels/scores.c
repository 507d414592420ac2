/* Attention scores with soft capping or ALiBi slopes (op/attention.h). In tiles a row holds one key for all queries, in decoding
 * all keys for one query. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

/* Score of a product: `ahead` is how far the key lies behind the query, negative before it. */
static inline float shape(float s, float scale, float softcap, float inverse, float slope,
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
            s[r] = shape(s[r], scale, softcap, inverse, slope, (float)(first - r), &f[r]);
    }
}

void TG_KERNEL(score_factor)(const tg_score_tile *t, float *d, const float *factor) {
    const size_t n = (size_t)t->cols * TG_SCORE_LD;
#pragma omp simd
    for (size_t i = 0; i < n; i++) d[i] *= factor[i];
}

static inline void shape_row(float *s, int n, float scale, float softcap, float slope,
                             int distance) {
    const float inverse = softcap > 0 ? 1.0f / softcap : 0;
    float unused[256];
#pragma omp simd
    for (int j = 0; j < n; j++)
        s[j] = shape(s[j], scale, softcap, inverse, slope, (float)(j - distance), &unused[j]);
}

static inline float high_of(const float *s, int n, float high) {
#pragma omp simd reduction(max : high)
    for (int j = 0; j < n; j++) high = s[j] > high ? s[j] : high;
    return high;
}

/* Keys in blocks with a running softmax, as in decode. */
void TG_KERNEL(decode_shaped)(float *out, const float *q, const float *k, const float *v, int n,
                              size_t ld, int D, float scale, float softcap, float slope) {
    enum { BLOCK = 256 };
    float s[BLOCK], top = -INFINITY, sum = 0;
    for (int d = 0; d < D; d++) out[d] = 0;
    for (int j0 = 0; j0 < n; j0 += BLOCK) {
        const int m = n - j0 < BLOCK ? n - j0 : BLOCK;
        TG_KERNEL(dots)(s, 0, 1, q, 0, k + (size_t)j0 * ld, ld, 1, m, D, false);
        shape_row(s, m, scale, softcap, slope, n - 1 - j0);
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
