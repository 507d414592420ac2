/* Root-mean-square normalisation and rotary positions. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

void TG_KERNEL(rmsnorm)(float *y, float *rstd, const float *x, const float *gamma, size_t rows,
                        size_t ld, int C, float eps, float offset) {
    for (size_t r = 0; r < rows; r++) {
        const float *xr = x + r * ld;
        float *yr = y + r * ld;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < C; c++) sum += xr[c] * xr[c];
        float rs = 1.0f / sqrtf(sum / (float)C + eps);
#pragma omp simd
        for (int c = 0; c < C; c++) yr[c] = xr[c] * rs * (gamma[c] + offset);
        rstd[r] = rs;
    }
}

/* dx may alias dy: dgamma takes dy before dx is written. */
void TG_KERNEL(rmsnorm_grad)(float *dx, float *dgamma, const float *dy, const float *x,
                             const float *rstd, const float *gamma, size_t rows, size_t ld, int C,
                             float offset, bool accumulate) {
    for (size_t r = 0; r < rows; r++) {
        const float *xr = x + r * ld, *dyr = dy + r * ld;
        float *dxr = dx + r * ld;
        const float rs = rstd[r];
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < C; c++) sum += dyr[c] * (gamma[c] + offset) * xr[c];
        const float back = sum * rs * rs / (float)C;
        if (dgamma) {
#pragma omp simd
            for (int c = 0; c < C; c++) dgamma[c] += dyr[c] * xr[c] * rs;
        }
        if (accumulate) {
#pragma omp simd
            for (int c = 0; c < C; c++)
                dxr[c] += rs * (dyr[c] * (gamma[c] + offset) - xr[c] * back);
        } else {
#pragma omp simd
            for (int c = 0; c < C; c++) dxr[c] = rs * (dyr[c] * (gamma[c] + offset) - xr[c] * back);
        }
    }
}

void TG_KERNEL(rope_half)(float *x, const float *cos, const float *sin, int R, float sign) {
    const int half = R / 2;
    float *y = x + half;
#pragma omp simd
    for (int j = 0; j < half; j++) {
        float a = x[j], b = y[j], s = sin[j] * sign;
        x[j] = a * cos[j] - b * s;
        y[j] = b * cos[j] + a * s;
    }
}

void TG_KERNEL(rope_pairs)(float *x, const float *cos, const float *sin, int R, float sign) {
#pragma omp simd
    for (int j = 0; j < R / 2; j++) {
        float a = x[2 * j], b = x[2 * j + 1], s = sin[j] * sign;
        x[2 * j] = a * cos[j] - b * s;
        x[2 * j + 1] = b * cos[j] + a * s;
    }
}
