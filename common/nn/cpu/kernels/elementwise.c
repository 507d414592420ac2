/* Element by element. */
#include "common/nn/cpu/kernels/kernels_isa.h"

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
