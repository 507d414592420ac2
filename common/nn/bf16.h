/* bfloat16: the upper half of a float. */
#ifndef TG_NN_BF16_H
#define TG_NN_BF16_H

#include <stdint.h>
#include <string.h>

/* To nearest, ties to even; a NaN stays one. */
static inline uint16_t tg_bf16_of_f32(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1)) >> 16, nan = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

static inline float tg_f32_of_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

#endif
