/* Vectors as wide as the instruction set this file is compiled for, and exp. Private to kernels/.
 */
#ifndef TG_NN_CPU_KERNELS_SIMD_H
#define TG_NN_CPU_KERNELS_SIMD_H

#include "common/nn/cpu/kernels.h"

#include <string.h>

#if defined(TG_ISA_AVX512)
#define TG_KERNEL(name) tg_avx512_##name
#define TG_ISA_NAME "avx512"
enum { LANES = 16 };
#elif defined(TG_ISA_AVX2)
#define TG_KERNEL(name) tg_avx2_##name
#define TG_ISA_NAME "avx2"
enum { LANES = 8 };
#else
#define TG_KERNEL(name) tg_plain_##name
#define TG_ISA_NAME "plain"
enum { LANES = 4 };
#endif

typedef float vf __attribute__((vector_size(LANES * sizeof(float))));

static inline vf vload(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vstore(float *p, vf v) {
    memcpy(p, &v, sizeof v);
}

static inline vf vsplat(float x) {
    return x - (vf){0};
}

/* Halves are added to halves: a fixed order, a few shuffles. */
static inline float vsum(vf v) {
#if defined(TG_ISA_AVX512)
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3);
#elif defined(TG_ISA_AVX2)
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
#endif
    return (v[0] + v[2]) + (v[1] + v[3]);
}

static inline float float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* e^x without branches, so that a loop over it is vectorised. x = n ln 2 + r, |r| <= ln(2)/2; e^r -
 * 1 - r = r^2 q(r) with q a minimax polynomial of degree 4 (relative error of e^r 3e-9); about 1
 * ulp in all. Below -87.3 the result is 0, above 88.37 it is e^88.37; NaN stays NaN. */
static inline float exp_f32(float x) {
    const float round =
        12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    float c = x > 88.37f ? 88.37f : x;
    float t = c * 1.44269504f + round;
    float n = t - round;
    float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float q = 1.38145401768e-3f;
    q = q * r + 8.36874510894e-3f;
    q = q * r + 4.16683907835e-2f;
    q = q * r + 1.6666520399e-1f;
    q = q * r + 4.99999934321e-1f;
    float e = (q * r * r + r) + 1.0f;
    float y = e * float_of_bits((bits_of_float(t) + 127u) << 23);
    return x < -87.3f ? 0.0f : y;
}

/* The normal distribution function: erfc(z) = e^(-z^2) t p(t), t = 1 / (1 + 0.35 z), with p fitted for equal relative error (1e-8) on
 * 0 <= z <= 14; absolute error below 1e-7. */
static inline float normal_cdf_f32(float x) {
    float z = (x < 0 ? -x : x) * 0.707106781f;
    float t = 1.0f / (1.0f + 0.35f * z);
    float p = 0.0418460808f;
    p = p * t - 0.177909088f;
    p = p * t + 0.226788167f;
    p = p * t - 0.0891586737f;
    p = p * t + 0.139037164f;
    p = p * t + 0.117593836f;
    p = p * t + 0.161216727f;
    p = p * t + 0.18570802f;
    p = p * t + 0.197408194f;
    p = p * t + 0.197469585f;
    float half = 0.5f * exp_f32(-z * z) * p * t;
    return x < 0 ? half : 1.0f - half;
}

/* tanh: for |u| < 0.625 u + u^3 q(u^2) (relative error 4e-9), beyond that from exp. */
static inline float tanh_f32(float u) {
    float a = u < 0 ? -u : u, u2 = u * u;
    float q = -0.00571730977f;
    q = q * u2 + 0.020650818f;
    q = q * u2 - 0.0537435666f;
    q = q * u2 + 0.133314921f;
    q = q * u2 - 0.33333284f;
    float small = u + u * u2 * q;
    float large = 1.0f - 2.0f / (1.0f + exp_f32(2.0f * a));
    return a < 0.625f ? small : u < 0 ? -large : large;
}

#endif
