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

static inline float vsum(vf v) {
    float t[LANES];
    vstore(t, v);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
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

#endif
