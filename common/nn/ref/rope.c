/* Rotary positions, naive. */
#include "common/nn/ref/ref.h"

void tg_ref_rope(tg_backend *be, float *x, const int32_t *positions, const float *table,
                 tg_rope_dims d) {
    (void)be;
    const int half = d.R / 2;
    for (int i = 0; i < d.N; i++) {
        const float *row = table + (size_t)positions[i] * (size_t)d.R;
        for (int h = 0; h < d.H; h++) {
            float *head = x + (size_t)i * (size_t)d.ld + (size_t)h * (size_t)d.step;
            for (int j = 0; j < half; j++) {
                float *a = &head[d.pairs ? 2 * j : j], *b = &head[d.pairs ? 2 * j + 1 : j + half];
                double c = (double)row[j], s = (double)row[half + j] * (d.inverse ? -1 : 1);
                double u = (double)*a, v = (double)*b;
                *a = (float)(u * c - v * s);
                *b = (float)(v * c + u * s);
            }
        }
    }
}
