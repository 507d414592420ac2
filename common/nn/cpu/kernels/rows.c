/* Reductions along and across rows: column sums, layer normalisation. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

enum { COLUMN_BLOCK = 4 * LANES, ROW_BLOCK = 64 };

/* Partial sums of at most 64 rows keep the rounding error of long columns small. */
void TG_KERNEL(column_sums)(float *sum, const float *x, int rows, size_t ld, int cols) {
    for (int r0 = 0; r0 < rows; r0 += ROW_BLOCK) {
        int r1 = r0 + ROW_BLOCK < rows ? r0 + ROW_BLOCK : rows, c = 0;
        for (; c + COLUMN_BLOCK <= cols; c += COLUMN_BLOCK) {
            vf s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            for (int r = r0; r < r1; r++) {
                const float *p = x + (size_t)r * ld + c;
                s0 += vload(p), s1 += vload(p + LANES);
                s2 += vload(p + 2 * LANES), s3 += vload(p + 3 * LANES);
            }
            vstore(sum + c, vload(sum + c) + s0);
            vstore(sum + c + LANES, vload(sum + c + LANES) + s1);
            vstore(sum + c + 2 * LANES, vload(sum + c + 2 * LANES) + s2);
            vstore(sum + c + 3 * LANES, vload(sum + c + 3 * LANES) + s3);
        }
        for (; c < cols; c++) {
            float s = 0;
            for (int r = r0; r < r1; r++) s += x[(size_t)r * ld + c];
            sum[c] += s;
        }
    }
}

void TG_KERNEL(layernorm)(float *y, float *mean, float *rstd, const float *x, const float *gamma,
                          const float *beta, int rows, int C, float eps) {
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * C;
        float *yr = y + (size_t)r * C;
        float sum = 0, var = 0;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < C; c++) sum += xr[c];
        float mu = sum / (float)C;
#pragma omp simd reduction(+ : var)
        for (int c = 0; c < C; c++) var += (xr[c] - mu) * (xr[c] - mu);
        float rs = 1.0f / sqrtf(var / (float)C + eps);
#pragma omp simd
        for (int c = 0; c < C; c++) yr[c] = (xr[c] - mu) * rs * gamma[c] + beta[c];
        mean[r] = mu;
        rstd[r] = rs;
    }
}

void TG_KERNEL(layernorm_grad)(float *restrict dx, float *restrict dgamma, float *restrict dbeta,
                               const float *restrict dy, const float *restrict x, const float *mean,
                               const float *rstd, const float *restrict gamma, int rows, int C) {
    for (int r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * C, *dyr = dy + (size_t)r * C;
        float *dxr = dx + (size_t)r * C;
        const float mu = mean[r], rs = rstd[r];
        float sum_g = 0, sum_gx = 0;
#pragma omp simd reduction(+ : sum_g, sum_gx)
        for (int c = 0; c < C; c++) {
            float g = dyr[c] * gamma[c];
            sum_g += g;
            sum_gx += g * (xr[c] - mu);
        }
        const float mean_g = sum_g / (float)C, mean_gx = sum_gx * rs / (float)C;
#pragma omp simd
        for (int c = 0; c < C; c++)
            dxr[c] += rs * (dyr[c] * gamma[c] - mean_g - (xr[c] - mu) * rs * mean_gx);
        if (!dgamma) continue;
#pragma omp simd
        for (int c = 0; c < C; c++) {
            dgamma[c] += dyr[c] * (xr[c] - mu) * rs;
            dbeta[c] += dyr[c];
        }
    }
}
