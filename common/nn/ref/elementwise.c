/* Element by element, naive. */
#include "common/nn/ref/ref.h"

void tg_ref_add(tg_backend *be, float *y, const float *x, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void tg_ref_scale(tg_backend *be, float *y, float a, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] *= a;
}

void tg_ref_fill(tg_backend *be, float *y, float a, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] = a;
}

void tg_ref_copy(tg_backend *be, float *y, const float *x, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] = x[i];
}

double tg_ref_sumsq(tg_backend *be, const float *x, size_t n) {
    (void)be;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}
