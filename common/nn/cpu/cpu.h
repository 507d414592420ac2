/* The fast backend for CPUs.
 *
 * Every op is cut into tiles whose number and size depend on the shapes alone and whose results do
 * not depend on the order in which they are computed: the number of threads never changes a bit of
 * the result. */
#ifndef TG_NN_CPU_H
#define TG_NN_CPU_H

#include "common/nn/backend.h"
#include "common/nn/cpu/kernels.h"

extern const struct tg_backend_ops tg_cpu_backend;

/* Workspace: what an op may use for itself, and behind it the panels of a matrix product. */
enum { TG_CPU_OP_FLOATS = 6 << 20, TG_CPU_GEMM_FLOATS = 3 << 20 };

/* tg_backend_ops.scratch_used, in large pages. */
size_t tg_cpu_scratch_used(const tg_scratch_sizes *sizes);

/* Calls work(arg, first, count) for runs of `grain` of the n items, on the team. */
typedef void tg_cpu_range_fn(void *arg, size_t first, size_t count);
void tg_cpu_for(tg_backend *be, size_t n, size_t grain, tg_cpu_range_fn *work, void *arg);
/* Rows of C floats in a tile of about `floats` floats. */
size_t tg_cpu_grain(size_t floats, int C);

/* c (M,N) = op(a) op(b), or += ; rows lda, ldb, ldc floats apart; then + bias (N) on every row, if given. `after`, when given, is
 * called on each tile of c as soon as it is done, on the thread that did it; K > 0 then. A tile has tile_cols columns, a multiple of 32 (0:
 * whatever suits). */
typedef struct tg_gemm {
    float *c;
    const float *a, *b, *bias;
    const void *packed; /* in place of b: tg_cpu_weight_pack's panels */
    int packed_depth;   /* of which depth: K */
    bool half;          /* they are bf16 */
    bool rounded;       /* both operands are rounded to bf16; what is packed is half */
    int M, N, K, ldc, lda, ldb;
    bool ta, tb, accumulate;
    int tile_cols;
    void (*after)(void *arg, int m, int n, int rows, int cols);
    void *arg;
} tg_gemm;
/* Steps of a packed panel of K: bf16 comes in pairs. */
static inline int tg_cpu_packed_depth(int K, bool half) {
    return half ? (K + 1) / 2 * 2 : K;
}
void tg_cpu_gemm(tg_backend *be, const tg_gemm *g);
float *tg_cpu_gemm_scratch(tg_backend *be);

tg_op_matmul tg_cpu_matmul;
tg_op_linear tg_cpu_linear;
tg_op_weight_pack tg_cpu_weight_pack;
tg_op_weight_rows tg_cpu_weight_rows;
tg_op_bias_forward tg_cpu_bias_forward;
tg_op_bias_backward tg_cpu_bias_backward;
tg_op_layernorm_forward tg_cpu_layernorm_forward;
tg_op_layernorm_backward tg_cpu_layernorm_backward;
tg_op_rmsnorm_forward tg_cpu_rmsnorm_forward;
tg_op_rmsnorm_backward tg_cpu_rmsnorm_backward;
tg_op_rope tg_cpu_rope;
tg_op_embed_forward tg_cpu_embed_forward;
tg_op_embed_backward tg_cpu_embed_backward;
tg_op_gather_rows tg_cpu_gather_rows;
tg_op_scatter_add_rows tg_cpu_scatter_add_rows;
tg_op_put_rows tg_cpu_put_rows;
tg_op_attention_forward tg_cpu_attention_forward;
tg_op_attention_backward tg_cpu_attention_backward;
tg_op_attention_decode tg_cpu_attention_decode;
tg_op_act_forward tg_cpu_act_forward;
tg_op_act_backward tg_cpu_act_backward;
tg_op_gated_forward tg_cpu_gated_forward;
tg_op_gated_backward tg_cpu_gated_backward;
tg_op_softcap tg_cpu_softcap;
tg_op_add tg_cpu_add;
tg_op_scale tg_cpu_scale;
tg_op_fill tg_cpu_fill;
tg_op_copy tg_cpu_copy;
tg_op_sumsq tg_cpu_sumsq;
tg_op_head_forward tg_cpu_head_forward;
tg_op_head_backward tg_cpu_head_backward;
tg_op_adamw tg_cpu_adamw;
tg_op_adam8 tg_cpu_adam8;
tg_op_rmsprop tg_cpu_rmsprop;
tg_op_sgd tg_cpu_sgd;
tg_op_gated_tangent tg_cpu_gated_tangent;
tg_op_mul_heads tg_cpu_mul_heads;
tg_op_attention_tangent tg_cpu_attention_tangent;
tg_op_fisher_mean tg_cpu_fisher_mean;
tg_op_fisher_grad tg_cpu_fisher_grad;

#endif
