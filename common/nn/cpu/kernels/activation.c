/* Activation functions.
 *
 * gelu_tanh uses tanh(u) = 2 s(2u) - 1 with the logistic function s, so that y = x s(2u): no
 * cancellation for negative x. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include "common/nn/op/activation.h"

#define TWO_SQRT_2_OVER_PI 1.5957691216f
#define GELU_CUBIC 0.044715f

static void gelu_tanh(float *y, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        float u2 = TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v);
        y[i] = v / (1.0f + exp_f32(-u2));
    }
}

/* gelu' = s + x 2 s (1 - s) u', 2u' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2). */
static void gelu_tanh_grad(float *dx, const float *dy, const float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        float v = x[i], v2 = v * v;
        float u2 = TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v2 * v);
        float s = 1.0f / (1.0f + exp_f32(-u2));
        float slope = TWO_SQRT_2_OVER_PI * (1.0f + 3.0f * GELU_CUBIC * v2);
        dx[i] = dy[i] * (s + v * s * (1.0f - s) * slope);
    }
}

static inline float logistic(float v) {
    return 1.0f / (1.0f + exp_f32(-v));
}

/* Each function and its slope, for the loops below. The normal distribution function is simd.h's. */
static inline float of_gelu_tanh(float v) {
    return v / (1.0f + exp_f32(-TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v)));
}
static inline float slope_gelu_tanh(float v) {
    float s = logistic(TWO_SQRT_2_OVER_PI * (v + GELU_CUBIC * v * v * v));
    return s + v * s * (1.0f - s) * TWO_SQRT_2_OVER_PI * (1.0f + 3.0f * GELU_CUBIC * v * v);
}
static inline float of_gelu(float v) {
    return v * normal_cdf_f32(v);
}
static inline float slope_gelu(float v) {
    return normal_cdf_f32(v) + v * 0.3989422804f * exp_f32(-0.5f * v * v);
}
static inline float of_relu(float v) {
    return v > 0 ? v : 0;
}
static inline float slope_relu(float v) {
    return v > 0 ? 1.0f : 0.0f;
}
static inline float of_silu(float v) {
    return v * logistic(v);
}
static inline float slope_silu(float v) {
    float s = logistic(v);
    return s + v * s * (1.0f - s);
}
static inline float of_quick_gelu(float v) {
    return v * logistic(1.702f * v);
}
static inline float slope_quick_gelu(float v) {
    float s = logistic(1.702f * v);
    return s + 1.702f * v * s * (1.0f - s);
}

static inline float of_tanh(float v) {
    return tanh_f32(v);
}
/* 1 - tanh^2 = 4 s (1 - s) with s of 2v: no cancellation where tanh is near 1. */
static inline float slope_tanh(float v) {
    float e = exp_f32(v < 0 ? 2.0f * v : -2.0f * v), d = 1.0f + e;
    return 4.0f * e / (d * d);
}

#define GATES(name)                                                                                \
    static void gate_##name(float *y, const float *g, const float *u, size_t n) {                  \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) y[i] = of_##name(g[i]) * u[i];          \
    }                                                                                              \
    static void gate_grad_##name(float *dg, float *du, const float *dy, const float *g,            \
                                 const float *u, size_t n) {                                       \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) {                                       \
            dg[i] = dy[i] * u[i] * slope_##name(g[i]);                                             \
            du[i] = dy[i] * of_##name(g[i]);                                                       \
        }                                                                                          \
    }
#define MAPS(name)                                                                                 \
    static void map_##name(float *y, const float *x, size_t n) {                                   \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) y[i] = of_##name(x[i]);                 \
    }                                                                                              \
    static void grad_##name(float *dx, const float *dy, const float *x, size_t n) {                \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) dx[i] = dy[i] * slope_##name(x[i]);     \
    }
GATES(gelu_tanh)
GATES(gelu)
GATES(relu)
GATES(silu)
GATES(quick_gelu)
GATES(tanh)
MAPS(gelu)
MAPS(relu)
MAPS(silu)
MAPS(quick_gelu)
MAPS(tanh)

static const struct {
    void (*map)(float *y, const float *x, size_t n);
    void (*grad)(float *dx, const float *dy, const float *x, size_t n);
    void (*gate)(float *y, const float *g, const float *u, size_t n);
    void (*gate_grad)(float *dg, float *du, const float *dy, const float *g, const float *u,
                      size_t n);
} loops[TG_N_ACTS] = {
    [TG_ACT_GELU_TANH] = {gelu_tanh, gelu_tanh_grad, gate_gelu_tanh, gate_grad_gelu_tanh},
    [TG_ACT_GELU] = {map_gelu, grad_gelu, gate_gelu, gate_grad_gelu},
    [TG_ACT_RELU] = {map_relu, grad_relu, gate_relu, gate_grad_relu},
    [TG_ACT_SILU] = {map_silu, grad_silu, gate_silu, gate_grad_silu},
    [TG_ACT_QUICK_GELU] = {map_quick_gelu, grad_quick_gelu, gate_quick_gelu, gate_grad_quick_gelu},
    [TG_ACT_TANH] = {map_tanh, grad_tanh, gate_tanh, gate_grad_tanh},
};

void TG_KERNEL(act)(float *y, const float *x, size_t n, int kind) {
    loops[kind].map(y, x, n);
}

void TG_KERNEL(act_grad)(float *dx, const float *dy, const float *x, size_t n, int kind) {
    loops[kind].grad(dx, dy, x, n);
}

void TG_KERNEL(gated)(float *y, const float *x, size_t rows, size_t F, int kind) {
    for (size_t r = 0; r < rows; r++)
        loops[kind].gate(y + r * F, x + r * 2 * F, x + r * 2 * F + F, F);
}

void TG_KERNEL(gated_grad)(float *dx, const float *dy, const float *x, size_t rows, size_t F,
                           int kind) {
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r * 2 * F;
        loops[kind].gate_grad(dx + at, dx + at + F, dy + r * F, x + at, x + at + F, F);
    }
}

void TG_KERNEL(softcap)(float *y, float cap, size_t n) {
    const float inverse = 1.0f / cap;
#pragma omp simd
    for (size_t i = 0; i < n; i++) y[i] = cap * tanh_f32(y[i] * inverse);
}
