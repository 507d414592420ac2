/* Layer normalisation (Ba et al. 2016, eq. 3), naive. */
#include "common/nn/ref/ref.h"

#include <math.h>

void tg_ref_layernorm_forward(tg_backend *be, float *y, float *mean, float *rstd, const float *x,
                              const float *gamma, const float *beta, int N, int C, float eps) {
    (void)be;
    for (int i = 0; i < N; i++) {
        const float *xi = x + (size_t)i * C;
        float *yi = y + (size_t)i * C;
        double sum = 0, var = 0;
        for (int c = 0; c < C; c++) sum += (double)xi[c];
        double mu = sum / C;
        for (int c = 0; c < C; c++) var += ((double)xi[c] - mu) * ((double)xi[c] - mu);
        double r = 1 / sqrt(var / C + (double)eps);
        for (int c = 0; c < C; c++)
            yi[c] = (float)(((double)xi[c] - mu) * r * (double)gamma[c] + (double)beta[c]);
        mean[i] = (float)mu;
        rstd[i] = (float)r;
    }
}

/* With xhat = (x - mean) rstd and g = dy gamma:  dx = rstd (g - mean(g) - xhat mean(g xhat)). */
void tg_ref_layernorm_backward(tg_backend *be, float *dx, float *dgamma, float *dbeta,
                               const float *dy, const float *x, const float *mean,
                               const float *rstd, const float *gamma, int N, int C) {
    (void)be;
    for (int i = 0; i < N; i++) {
        const float *xi = x + (size_t)i * C, *dyi = dy + (size_t)i * C;
        float *dxi = dx + (size_t)i * C;
        double mean_g = 0, mean_gx = 0;
        for (int c = 0; c < C; c++) {
            double xhat = ((double)xi[c] - (double)mean[i]) * (double)rstd[i];
            double g = (double)dyi[c] * (double)gamma[c];
            mean_g += g / C;
            mean_gx += g * xhat / C;
        }
        for (int c = 0; c < C; c++) {
            double xhat = ((double)xi[c] - (double)mean[i]) * (double)rstd[i];
            double g = (double)dyi[c] * (double)gamma[c];
            dxi[c] = (float)((double)dxi[c] + (double)rstd[i] * (g - mean_g - xhat * mean_gx));
        }
    }
    if (!dgamma) return;
    for (int c = 0; c < C; c++) {
        double dg = 0, db = 0;
        for (int i = 0; i < N; i++) {
            double xhat = ((double)x[(size_t)i * C + c] - (double)mean[i]) * (double)rstd[i];
            dg += (double)dy[(size_t)i * C + c] * xhat;
            db += (double)dy[(size_t)i * C + c];
        }
        dgamma[c] = (float)((double)dgamma[c] + dg);
        dbeta[c] = (float)((double)dbeta[c] + db);
    }
}
