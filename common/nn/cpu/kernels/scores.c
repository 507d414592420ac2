/* Attention scores with soft capping, ALiBi slopes or biases by distance (op/attention.h). A row of a tile holds one key for all queries. */
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
