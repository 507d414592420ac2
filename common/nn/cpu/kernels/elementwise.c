/* Element by element.
 *
 * gelu uses tanh(u) = 2 s(2u) - 1 with the logistic function s, so that y = x s(2u): no
 * cancellation for negative x. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#define TWO_SQRT_2_OVER_PI 1.5957691216f
#define GELU_CUBIC 0.044715f

void TG_KERNEL(gelu)(float *y, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        float u2 = TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v);
        y[i] = v / (1.0f + exp_f32(-u2));
    }
}

/* gelu' = s + x 2 s (1 - s) u', 2u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2). */
void TG_KERNEL(gelu_grad)(float *dx, const float *dy, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = x[i], v2 = v * v;
        float u2 = TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v2 * v);
        float s = 1.0f / (1.0f + exp_f32(-u2));
        float slope = TWO_SQRT_2_OVER_PI * (1.0f + 3.0f * GELU_CUBIC * v2);
        dx[i] = dy[i] * (s + v * s * (1.0f - s) * slope);
    }
}

void TG_KERNEL(add)(float *y, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void TG_KERNEL(scale)(float *y, float a, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] *= a;
}

void TG_KERNEL(fill)(float *y, float a, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = a;
}

double TG_KERNEL(sumsq)(const float *x, size_t n) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}
