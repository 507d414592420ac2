/* Directional derivatives, naive. */
#include "common/nn/ref/ref.h"

#include <math.h>

/* y = act(g) u:  ty = act'(g) tg u + act(g) tu. tg's place then holds act(g). */
void tg_ref_gated_tangent(tg_backend *be, float *ty, float *tx, const float *x, int N, int F,
                          tg_act kind) {
    const size_t n = (size_t)F;
    for (int i = 0; i < N; i++) {
        const float *g = x + 2 * (size_t)i * n, *u = g + n;
        float *tg = tx + 2 * (size_t)i * n, *tu = tg + n, *y = ty + (size_t)i * n;
        be->ops->act_backward(be, y, tg, g, n, kind);
        be->ops->act_forward(be, tg, g, n, kind);
        for (size_t c = 0; c < n; c++) y[c] = y[c] * u[c] + tg[c] * tu[c];
    }
}

void tg_ref_mul_heads(tg_backend *be, float *y, const float *gamma, tg_rms_dims d) {
    (void)be;
    for (int i = 0; i < d.N; i++)
        for (int h = 0; h < d.H; h++)
            for (int c = 0; c < d.C; c++)
                y[(size_t)i * (size_t)d.ld + (size_t)h * (size_t)d.step + (size_t)c] *=
                    gamma[c] + d.offset;
}

static double capped_slope(double l, double softcap) {
    double r = softcap > 0 ? l / softcap : 0;
    return 1 - r * r;
}

void tg_ref_fisher_mean(tg_backend *be, float *mean, const float *t, const float *l,
                        const float *lse, int n, int cols, float softcap) {
    (void)be;
    for (int i = 0; i < n; i++) {
        double sum = (double)mean[i];
        for (int c = 0; c < cols; c++) {
            size_t at = (size_t)i * (size_t)cols + (size_t)c;
            sum += exp((double)l[at] - (double)lse[i]) * (double)t[at] *
                   capped_slope((double)l[at], (double)softcap);
        }
        mean[i] = (float)sum;
    }
}

void tg_ref_fisher_grad(tg_backend *be, float *t, const float *l, const float *lse,
                        const float *mean, const float *weight, int n, int cols, float softcap) {
    (void)be;
    for (int i = 0; i < n; i++)
        for (int c = 0; c < cols; c++) {
            size_t at = (size_t)i * (size_t)cols + (size_t)c;
            double p = exp((double)l[at] - (double)lse[i]);
            double slope = capped_slope((double)l[at], (double)softcap);
            t[at] =
                (float)((double)weight[i] * p * ((double)t[at] * slope - (double)mean[i]) * slope);
        }
}
