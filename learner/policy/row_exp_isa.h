/* The loops of row_exp.c for vectors of LANES floats and the instruction set of FOR_ISA: included once for each, with the names of its
 * functions made by NAME. Alone, as it must compile too, it is for any machine. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef NAME
#define NAME(function) function##_any
#define LANES 4
#define FOR_ISA
#endif

#define INLINE static inline __attribute__((always_inline))
#define VF NAME(vf)
#define VI NAME(vi)

typedef float VF __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t VI __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef float NAME(v4f) __attribute__((vector_size(4 * sizeof(float))));

/* yes where the mask is set */
#define CHOOSE(mask, yes, no) ((VF)(((mask) & (VI)(yes)) | (~(mask) & (VI)(no))))

/* *x = exp of *x <= 0 (NaN stays NaN, below -87 it is 0): 2^n times a polynomial of the rest (Cephes' coefficients). */
FOR_ISA INLINE void NAME(exp_of)(VF *x) {
    const VF least = (VF){0} - 87.0f;
    const VI small = *x < least;
    const VF y = CHOOSE(small, least, *x);
    const VF shifted =
        y * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: rounds to the nearest integer */
    const VI n = (VI)shifted - 0x4b400000;
    const VF whole = shifted - 12582912.0f;
    const VF r = y - whole * 0.693359375f + whole * 2.12194440e-4f;
    VF p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const VF scale = (VF)((n + 127) << 23);
    *x = CHOOSE(small, (VF){0}, p * scale);
}

/* A vector of which `n` are there; the rest counts as -inf. Adds the exponentials to *sum, four at a time. */
FOR_ISA INLINE void NAME(exp_some)(const float *x, int n, float top, float *e, NAME(v4f) * sum) {
    VF y = (VF){0} - INFINITY;
    memcpy(&y, x, (size_t)n * sizeof *x);
    y -= top;
    NAME(exp_of)(&y);
    if (e) memcpy(e, &y, (size_t)n * sizeof *e);
    NAME(v4f) part[LANES / 4];
    memcpy(part, &y, sizeof y);
    for (int k = 0; k < LANES / 4; k++) *sum += part[k];
}

FOR_ISA INLINE float NAME(exp_block)(const float *x, int n, float top, float *e) {
    NAME(v4f) sum = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES) NAME(exp_some)(x + i, LANES, top, e ? e + i : NULL, &sum);
    if (i < n) NAME(exp_some)(x + i, n - i, top, e ? e + i : NULL, &sum);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

FOR_ISA static double NAME(exp_row)(const float *x, int n, float top, float *e, float *blocks,
                                    int block) {
    double total = 0;
    for (int i = 0; i < n; i += block) {
        const float sum =
            NAME(exp_block)(x + i, n - i < block ? n - i : block, top, e ? e + i : NULL);
        if (blocks) blocks[i / block] = sum;
        total += (double)sum;
    }
    return total;
}

FOR_ISA static float NAME(max_row)(const float *x, int n) {
    VF top = (VF){0} - INFINITY;
    VI bad = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        VF v;
        memcpy(&v, x + i, sizeof v);
        bad |= v != v;
        top = CHOOSE(v > top, v, top);
    }
    float most = -INFINITY;
    for (int k = 0; k < LANES; k++) {
        if (bad[k]) return (float)NAN;
        most = top[k] > most ? top[k] : most;
    }
    for (; i < n; i++) {
        if (isnan(x[i])) return (float)NAN;
        most = x[i] > most ? x[i] : most;
    }
    return most;
}

#undef CHOOSE
#undef VI
#undef VF
#undef INLINE
#undef FOR_ISA
#undef LANES
#undef NAME
