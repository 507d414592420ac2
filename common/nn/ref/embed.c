/* Rows by index, naive. */
#include "common/nn/ref/ref.h"

#include "common/nn/bf16.h"

void tg_ref_embed_forward(tg_backend *be, float *y, const float *table, const int32_t *ids, int N,
                          int C, bool accumulate) {
    (void)be;
    for (int i = 0; i < N; i++) {
        for (int c = 0; c < C; c++) {
            float e = table[(size_t)ids[i] * (size_t)C + (size_t)c];
            float *o = &y[(size_t)i * C + c];
            *o = accumulate ? *o + e : e;
        }
    }
}

void tg_ref_embed_backward(tg_backend *be, float *dtable, const float *dy, const int32_t *ids,
                           int N, int C) {
    (void)be;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < C; c++)
            dtable[(size_t)ids[i] * (size_t)C + (size_t)c] += dy[(size_t)i * C + c];
}

void tg_ref_gather_rows(tg_backend *be, float *y, const float *x, const int32_t *rows, int n,
                        int C) {
    tg_ref_embed_forward(be, y, x, rows, n, C, false);
}

void tg_ref_scatter_add_rows(tg_backend *be, float *dx, const float *dy, const int32_t *rows, int n,
                             int C) {
    tg_ref_embed_backward(be, dx, dy, rows, n, C);
}

void tg_ref_put_rows(tg_backend *be, void *y, bool half, const float *x, const int32_t *rows, int n,
                     int C) {
    (void)be;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < C; c++) {
            const size_t to = (size_t)(rows ? rows[i] : i) * (size_t)C + (size_t)c;
            const float value = x[(size_t)i * (size_t)C + (size_t)c];
            if (half)
                ((uint16_t *)y)[to] = tg_bf16_of_f32(value);
            else
                ((float *)y)[to] = value;
        }
}
