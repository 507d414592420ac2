/* Element by element, naive. */
#include "common/nn/ref/ref.h"

#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC 0.044715

void tg_ref_gelu_forward(tg_backend *be, float *y, const float *x, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        y[i] = (float)(0.5 * v * (1 + tanh(SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v))));
    }
}

/* d/dx: 0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2). */
void tg_ref_gelu_backward(tg_backend *be, float *dx, const float *dy, const float *x, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        double t = tanh(SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v));
        double slope = SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * v * v);
        dx[i] = (float)((double)dy[i] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * slope));
    }
}

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
