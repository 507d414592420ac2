/* Root-mean-square normalisation, naive. */
#include "common/nn/ref/ref.h"

#include <math.h>

static size_t place(tg_rms_dims d, int i, int h) {
    return (size_t)i * (size_t)d.ld + (size_t)h * (size_t)d.step;
}

void tg_ref_rmsnorm_forward(tg_backend *be, float *y, float *rstd, const float *x,
                            const float *gamma, float eps, tg_rms_dims d) {
    (void)be;
    for (int i = 0; i < d.N; i++) {
        for (int h = 0; h < d.H; h++) {
            const size_t at = place(d, i, h);
            double sum = 0;
            for (int c = 0; c < d.C; c++)
                sum += (double)x[at + (size_t)c] * (double)x[at + (size_t)c];
            double r = 1 / sqrt(sum / d.C + (double)eps);
            for (int c = 0; c < d.C; c++)
                y[at + (size_t)c] =
                    (float)((double)x[at + (size_t)c] * r * ((double)gamma[c] + (double)d.offset));
            rstd[(size_t)i * (size_t)d.H + (size_t)h] = (float)r;
        }
    }
}

/* With xhat = x rstd and g = dy (gamma + offset):  dx = rstd (g - xhat mean(g xhat)). */
void tg_ref_rmsnorm_backward(tg_backend *be, float *dx, float *dgamma, const float *dy,
                             const float *x, const float *rstd, const float *gamma, bool accumulate,
                             tg_rms_dims d) {
    (void)be;
    for (int c = 0; c < d.C && dgamma; c++) {
        double sum = 0;
        for (int i = 0; i < d.N; i++)
            for (int h = 0; h < d.H; h++) {
                const size_t at = place(d, i, h) + (size_t)c;
                sum += (double)dy[at] * (double)x[at] *
                       (double)rstd[(size_t)i * (size_t)d.H + (size_t)h];
            }
        dgamma[c] = (float)((double)dgamma[c] + sum);
    }
    for (int i = 0; i < d.N; i++) {
        for (int h = 0; h < d.H; h++) {
            const float *xi = x + place(d, i, h), *dyi = dy + place(d, i, h);
            float *dxi = dx + place(d, i, h);
            double r = (double)rstd[(size_t)i * (size_t)d.H + (size_t)h], mean_gx = 0;
            for (int c = 0; c < d.C; c++)
                mean_gx += (double)dyi[c] * ((double)gamma[c] + (double)d.offset) * (double)xi[c] *
                           r / d.C;
            for (int c = 0; c < d.C; c++) {
                double g = (double)dyi[c] * ((double)gamma[c] + (double)d.offset);
                double v = r * (g - (double)xi[c] * r * mean_gx);
                dxi[c] = (float)(accumulate ? (double)dxi[c] + v : v);
            }
        }
    }
}
