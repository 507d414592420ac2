/* Activation functions, naive. */
#include "common/nn/ref/ref.h"

#include "common/base/check.h"

#include <math.h>

#define SQRT_2_OVER_PI 0.79788456080286535588
#define SQRT_HALF 0.70710678118654752440
#define INV_SQRT_2_PI 0.39894228040143267794
#define GELU_CUBIC 0.044715
#define QUICK 1.702

static double logistic(double v) {
    return 1 / (1 + exp(-v));
}

static double act(double v, tg_act kind) {
    switch (kind) {
    case TG_ACT_GELU_TANH:
        return 0.5 * v * (1 + tanh(SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v)));
    case TG_ACT_GELU: return 0.5 * v * erfc(-v * SQRT_HALF);
    case TG_ACT_RELU: return v > 0 ? v : 0;
    case TG_ACT_SILU: return v * logistic(v);
    case TG_ACT_QUICK_GELU: return v * logistic(QUICK * v);
    case TG_ACT_TANH: return tanh(v);
    case TG_N_ACTS: break;
    }
    TG_UNREACHABLE();
}

/* gelu_tanh: 0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2). */
static double slope(double v, tg_act kind) {
    switch (kind) {
    case TG_ACT_GELU_TANH: {
        double t = tanh(SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v));
        return 0.5 * (1 + t) +
               0.5 * v * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * v * v);
    }
    case TG_ACT_GELU: return 0.5 * erfc(-v * SQRT_HALF) + v * INV_SQRT_2_PI * exp(-0.5 * v * v);
    case TG_ACT_RELU: return v > 0;
    case TG_ACT_SILU: return logistic(v) + v * logistic(v) * logistic(-v);
    case TG_ACT_QUICK_GELU:
        return logistic(QUICK * v) + v * QUICK * logistic(QUICK * v) * logistic(-QUICK * v);
    case TG_ACT_TANH: return 1 / (cosh(v) * cosh(v));
    case TG_N_ACTS: break;
    }
    TG_UNREACHABLE();
}

void tg_ref_act_forward(tg_backend *be, float *y, const float *x, size_t n, tg_act kind) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] = (float)act((double)x[i], kind);
}

void tg_ref_act_backward(tg_backend *be, float *dx, const float *dy, const float *x, size_t n,
                         tg_act kind) {
    (void)be;
    for (size_t i = 0; i < n; i++) dx[i] = (float)((double)dy[i] * slope((double)x[i], kind));
}

void tg_ref_gated_forward(tg_backend *be, float *y, const float *x, int N, int F, tg_act kind) {
    (void)be;
    for (size_t i = 0; i < (size_t)N; i++) {
        const float *g = x + i * 2 * (size_t)F, *u = g + F;
        for (int j = 0; j < F; j++)
            y[i * (size_t)F + (size_t)j] = (float)(act((double)g[j], kind) * (double)u[j]);
    }
}

void tg_ref_gated_backward(tg_backend *be, float *dx, const float *dy, const float *x, int N, int F,
                           tg_act kind) {
    (void)be;
    for (size_t i = 0; i < (size_t)N; i++) {
        const float *g = x + i * 2 * (size_t)F, *u = g + F, *d = dy + i * (size_t)F;
        float *dg = dx + i * 2 * (size_t)F, *du = dg + F;
        for (int j = 0; j < F; j++) {
            dg[j] = (float)((double)d[j] * (double)u[j] * slope((double)g[j], kind));
            du[j] = (float)((double)d[j] * act((double)g[j], kind));
        }
    }
}

void tg_ref_softcap(tg_backend *be, float *y, float cap, size_t n) {
    (void)be;
    for (size_t i = 0; i < n; i++) y[i] = (float)((double)cap * tanh((double)y[i] / (double)cap));
}
