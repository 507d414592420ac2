/* The kernels of one instruction set as a table. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#define NAME(member) .member = TG_KERNEL(member)

const tg_cpu_kernels TG_KERNEL(kernels) = {
    .isa = TG_ISA_NAME,
    NAME(act),
    NAME(act_grad),
    NAME(gated),
    NAME(gated_grad),
    NAME(softcap),
    NAME(rmsnorm),
    NAME(rmsnorm_grad),
    NAME(rope_half),
    NAME(rope_pairs),
    NAME(add),
    NAME(scale),
    NAME(fill),
    NAME(sumsq),
    NAME(adamw),
    NAME(column_sums),
    NAME(layernorm),
    NAME(layernorm_grad),
    NAME(head_stats),
    NAME(head_grad),
    NAME(softmax_tile),
    NAME(softmax_grad_tile),
    NAME(dot),
    NAME(decode),
    NAME(dots),
    NAME(wide),
    NAME(wide_scores),
    NAME(transpose16),
    NAME(skinny),
};
