/* From float to bf16, stored as such or as floats. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include "common/nn/bf16.h"

void TG_KERNEL(narrow)(uint16_t *to, const float *from, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) to[i] = tg_bf16_of_f32(from[i]);
}

void TG_KERNEL(round_bf16)(float *x, size_t n) {
#pragma omp simd
    for (size_t i = 0; i < n; i++) x[i] = tg_f32_of_bf16(tg_bf16_of_f32(x[i]));
}
