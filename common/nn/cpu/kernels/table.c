/* The kernels of one instruction set as a table. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#define NAME(member) .member = TG_KERNEL(member)

#define ALL_KERNELS                                                                                \
    .gemm_rows = &TG_KERNEL(gemm_rows), .gemm_cols = &TG_KERNEL(gemm_cols), NAME(pack_rows),       \
    NAME(pack_cols), NAME(halve_cols), NAME(widen_cols), NAME(gemm_block), NAME(narrow),           \
    NAME(round_bf16), NAME(act), NAME(act_grad), NAME(gated), NAME(gated_grad), NAME(softcap),     \
    NAME(rmsnorm), NAME(rmsnorm_grad), NAME(rope_half), NAME(rope_pairs), NAME(add), NAME(scale),  \
    NAME(fill), NAME(sumsq), NAME(adamw), NAME(adam8), NAME(sgd), NAME(rmsprop),                   \
    NAME(column_sums), NAME(layernorm), NAME(layernorm_grad), NAME(head_stats), NAME(head_grad),   \
    NAME(logit_shape), NAME(head_grad_capped), NAME(softmax_tile), NAME(softmax_grad_tile),        \
    NAME(score_shape), NAME(score_factor), NAME(score_bias), NAME(score_bias_grad), NAME(dot),     \
    NAME(decode), NAME(dots), NAME(wide_scores), NAME(transpose16), NAME(skinny)

const tg_cpu_kernels TG_KERNEL(kernels) = {.isa = TG_ISA_NAME, ALL_KERNELS};

#if defined(TG_ISA_AVX512)
const tg_cpu_kernels tg_avx512_bf16_kernels = {
    .isa = "avx512_bf16", NAME(pack_pairs), NAME(pair_cols), NAME(gemm_pairs), ALL_KERNELS};
#endif
