/* a b + c with one rounding where the instruction set has it. Private to kernels/. */
#ifndef TG_NN_CPU_KERNELS_FUSED_H
#define TG_NN_CPU_KERNELS_FUSED_H

static inline float tg_fused(float a, float b, float c) {
#if defined(TG_ISA_AVX512) || defined(TG_ISA_AVX2) || defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

#endif
