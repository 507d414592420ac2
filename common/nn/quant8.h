/* Numbers in 8 bits, dense near zero: the dynamic data type of 8-bit optimizers (Dettmers et al. 2022), by blocks.
 *
 * A number of a block is the value of its code, at most 1, times the largest magnitude of the block. A code spends its leading zeros
 * on the decade and the bits behind the first one on the place within it:  decade i = 0 .. 6, the numbers in [0.1, 1) 10^(i - 6), is
 * cut into n equal parts of which part k has the code n + k and its middle as value.
 *
 *   signed:    n = 2^i,     codes 1 .. 127 and with bit 7 set their negatives;  0 is 0, 128 is 1.
 *   unsigned:  n = 2^(i+1), codes 2 .. 255;  0 is 0, 1 is 1.
 *
 * A number gets the code of the part it lies in. Below 0.1e-6: signed, 0 or the first part, whichever is nearer; unsigned, the first
 * part unless it is 0, so that a second moment cannot vanish under a first one. All arithmetic is f32, not contracted: every backend
 * gives the same codes. */
#ifndef TG_NN_QUANT8_H
#define TG_NN_QUANT8_H

#include <stddef.h>
#include <stdint.h>

enum { TG_QUANT8_BLOCK = 256, TG_QUANT8_DECADES = 7 };

static inline size_t tg_quant8_blocks(size_t n) {
    return (n + TG_QUANT8_BLOCK - 1) / TG_QUANT8_BLOCK;
}

/* The decade of a: the number of edges 10^(d - 7), d = 1 .. 6, that a reaches; with the slope and the shift from a, or from a code,
 * to the other. No tables and no branches, for the sake of vector units. */
typedef struct tg_quant8_line {
    float slope, shift;
    int32_t parts;
} tg_quant8_line;

/* 10^d without rounding errors of its own. */
#define TG_QUANT8_TEN(d)                                                                           \
    ((d) == 0   ? 1.0                                                                              \
     : (d) == 1 ? 10.0                                                                             \
     : (d) == 2 ? 100.0                                                                            \
     : (d) == 3 ? 1e3                                                                              \
     : (d) == 4 ? 1e4                                                                              \
     : (d) == 5 ? 1e5                                                                              \
                : 1e6)

/* bits: 0 signed, 1 unsigned. */
static inline int32_t tg_quant8_place(float a, int bits) {
    tg_quant8_line l = {0, 0, 0};
#define TG_QUANT8_DECADE(d)                                                                        \
    if (d == 0 || a >= (float)(0.1 / TG_QUANT8_TEN(6 - d))) {                                      \
        l.parts = 1 << (d + bits);                                                                 \
        l.slope = (float)((1 << (d + bits)) / 0.9 * TG_QUANT8_TEN(6 - d));                         \
        l.shift = (float)((1 << (d + bits)) / 9.0);                                                \
    }
    TG_QUANT8_DECADE(0)
    TG_QUANT8_DECADE(1)
    TG_QUANT8_DECADE(2)
    TG_QUANT8_DECADE(3)
    TG_QUANT8_DECADE(4)
    TG_QUANT8_DECADE(5)
    TG_QUANT8_DECADE(6)
#undef TG_QUANT8_DECADE
    float product = a * l.slope;
    int32_t k = (int32_t)(product - l.shift);
    k = k < 0 ? 0 : k;
    k = k < l.parts ? k : l.parts - 1;
    return l.parts + k;
}

/* Value of the code n + k of some decade. */
static inline float tg_quant8_middle(int32_t code, int bits) {
    float slope = 0, shift = 0;
#define TG_QUANT8_DECADE(d)                                                                        \
    if (d == 0 || code >= 1 << (d + bits)) {                                                       \
        slope = (float)(0.9 / (1 << (d + bits)) / TG_QUANT8_TEN(6 - d));                           \
        shift = (float)((0.45 / (1 << (d + bits)) - 0.8) / TG_QUANT8_TEN(6 - d));                  \
    }
    TG_QUANT8_DECADE(0)
    TG_QUANT8_DECADE(1)
    TG_QUANT8_DECADE(2)
    TG_QUANT8_DECADE(3)
    TG_QUANT8_DECADE(4)
    TG_QUANT8_DECADE(5)
    TG_QUANT8_DECADE(6)
#undef TG_QUANT8_DECADE
    float product = (float)code * slope;
    return product + shift;
}

static inline float tg_quant8_decode_signed(uint8_t code) {
    int32_t u = code & 127;
    float x = tg_quant8_middle(u, 0);
    x = u ? x : (code ? 1.0f : 0.0f);
    return code > 128 ? -x : x;
}

static inline uint8_t tg_quant8_encode_signed(float x) {
    float a = x < 0 ? -x : x;
    int32_t u = tg_quant8_place(a, 0);
    u = a < 0.275e-6f ? 0 : u;
    u = x < 0 && u ? u + 128 : u;
    return (uint8_t)(x >= 1 ? 128 : u);
}

static inline float tg_quant8_decode_unsigned(uint8_t code) {
    float x = tg_quant8_middle(code, 1);
    return code < 2 ? (float)code : x;
}

static inline uint8_t tg_quant8_encode_unsigned(float x) {
    int32_t u = tg_quant8_place(x, 1);
    u = x > 0 ? u : 0;
    return (uint8_t)(x >= 1 ? 1 : u);
}

#endif
