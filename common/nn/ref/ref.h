/* The reference backend: every op as the plainest loop that its contract allows. It defines what is
 * right; it is never made faster. One thread. */
#ifndef TG_NN_REF_H
#define TG_NN_REF_H

#include "common/nn/backend.h"
#include "common/nn/bf16.h"

extern const struct tg_backend_ops tg_ref_backend;

/* Of what x and y are when rounded to bf16. */
static inline double tg_ref_product(float x, float y) {
    return (double)tg_f32_of_bf16(tg_bf16_of_f32(x)) * (double)tg_f32_of_bf16(tg_bf16_of_f32(y));
}
/* Row k of column n of op(w), (K,N). */
float tg_ref_weight_at(tg_weight w, int n, int k, int N, int K);

tg_op_matmul tg_ref_matmul;
tg_op_linear tg_ref_linear;
tg_op_weight_pack tg_ref_weight_pack;
tg_op_weight_rows tg_ref_weight_rows;
tg_op_bias_forward tg_ref_bias_forward;
tg_op_bias_backward tg_ref_bias_backward;
tg_op_layernorm_forward tg_ref_layernorm_forward;
tg_op_layernorm_backward tg_ref_layernorm_backward;
tg_op_rmsnorm_forward tg_ref_rmsnorm_forward;
tg_op_rmsnorm_backward tg_ref_rmsnorm_backward;
tg_op_rope tg_ref_rope;
tg_op_embed_forward tg_ref_embed_forward;
tg_op_embed_backward tg_ref_embed_backward;
tg_op_gather_rows tg_ref_gather_rows;
tg_op_scatter_add_rows tg_ref_scatter_add_rows;
tg_op_put_rows tg_ref_put_rows;
tg_op_attention_forward tg_ref_attention_forward;
tg_op_attention_backward tg_ref_attention_backward;
tg_op_attention_decode tg_ref_attention_decode;
tg_op_act_forward tg_ref_act_forward;
tg_op_act_backward tg_ref_act_backward;
tg_op_gated_forward tg_ref_gated_forward;
tg_op_gated_backward tg_ref_gated_backward;
tg_op_softcap tg_ref_softcap;
tg_op_add tg_ref_add;
tg_op_scale tg_ref_scale;
tg_op_fill tg_ref_fill;
tg_op_copy tg_ref_copy;
tg_op_sumsq tg_ref_sumsq;
tg_op_head_forward tg_ref_head_forward;
tg_op_head_backward tg_ref_head_backward;
tg_op_adamw tg_ref_adamw;
tg_op_adam8 tg_ref_adam8;
tg_op_rmsprop tg_ref_rmsprop;
tg_op_sgd tg_ref_sgd;
tg_op_gated_tangent tg_ref_gated_tangent;
tg_op_mul_heads tg_ref_mul_heads;
tg_op_attention_tangent tg_ref_attention_tangent;
tg_op_fisher_mean tg_ref_fisher_mean;
tg_op_fisher_grad tg_ref_fisher_grad;

#endif
