/* Matrix product and bias, naive. */
#include "common/nn/ref/ref.h"

void tg_ref_matmul(tg_backend *be, float *out, const float *a, const float *b, int M, int N, int K,
                   bool ta, bool tb, bool accumulate, bool rounded) {
    (void)be;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) {
                float x = ta ? a[(size_t)k * M + i] : a[(size_t)i * K + k];
                float y = tb ? b[(size_t)j * K + k] : b[(size_t)k * N + j];
                sum += rounded ? tg_ref_product(x, y) : (double)x * (double)y;
            }
            float *o = &out[(size_t)i * N + j];
            *o = accumulate ? (float)((double)*o + sum) : (float)sum;
        }
    }
}

void tg_ref_bias_forward(tg_backend *be, float *y, const float *b, int N, int C) {
    (void)be;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < C; c++) y[(size_t)i * C + c] += b[c];
}

void tg_ref_bias_backward(tg_backend *be, float *db, const float *dy, int N, int C) {
    (void)be;
    for (int c = 0; c < C; c++) {
        double sum = 0;
        for (int i = 0; i < N; i++) sum += (double)dy[(size_t)i * C + c];
        db[c] = (float)((double)db[c] + sum);
    }
}
