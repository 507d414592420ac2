/* Linear layers, naive. A packed weight is (N,K). */
#include "common/nn/ref/ref.h"

#include "common/nn/bf16.h"

void tg_ref_weight_pack(tg_backend *be, void *packed, const float *w, int N, int K, bool tb,
                        tg_weight_form form) {
    (void)be;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            size_t at = (size_t)n * (size_t)K + (size_t)k;
            float value = tb ? w[at] : w[(size_t)k * (size_t)N + (size_t)n];
            if (form == TG_WEIGHT_PACKED_BF16)
                ((uint16_t *)packed)[at] = tg_bf16_of_f32(value);
            else
                ((float *)packed)[at] = value;
        }
}

float tg_ref_weight_at(tg_weight w, int n, int k, int N, int K) {
    size_t at = (size_t)n * (size_t)K + (size_t)k;
    if (w.form == TG_WEIGHT_PACKED_BF16) return tg_f32_of_bf16(((const uint16_t *)w.data)[at]);
    if (w.form == TG_WEIGHT_PLAIN && !w.tb) at = (size_t)k * (size_t)N + (size_t)n;
    return ((const float *)w.data)[at];
}

void tg_ref_linear(tg_backend *be, float *y, const float *x, tg_weight w, const float *bias, int M,
                   int N, int K, bool accumulate) {
    (void)be;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float *out = &y[(size_t)m * (size_t)N + (size_t)n];
            double sum = bias ? (double)bias[n] : 0;
            if (accumulate) sum += (double)*out;
            for (int k = 0; k < K; k++) {
                const float a = x[(size_t)m * (size_t)K + (size_t)k];
                const float b = tg_ref_weight_at(w, n, k, N, K);
                sum += w.rounded ? tg_ref_product(a, b) : (double)a * (double)b;
            }
            *out = (float)sum;
        }
}

void tg_ref_weight_rows(tg_backend *be, float *y, tg_weight w, const int32_t *ids, int n, int N,
                        int K) {
    (void)be;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < K; k++)
            y[(size_t)i * (size_t)K + (size_t)k] = tg_ref_weight_at(w, ids[i], k, N, K);
}
