/* The op table: every computation of the engine, one slot each. The contract of a slot (math,
 * shapes, overwrite or accumulate, aliasing) is in common/nn/op/<op>.h; ref/ defines it with naive
 * loops, cpu/ is the fast one.
 *
 * Letters: N rows (packed tokens), C channels, H query heads, G key/value heads, D head size, V
 * vocabulary, S sequences. */
#ifndef TG_NN_OPS_H
#define TG_NN_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_backend tg_backend;

#include "common/nn/op/activation.h"
#include "common/nn/op/adam8.h"
#include "common/nn/op/adamw.h"
#include "common/nn/op/attention.h"
#include "common/nn/op/elementwise.h"
#include "common/nn/op/embed.h"
#include "common/nn/op/head.h"
#include "common/nn/op/layernorm.h"
#include "common/nn/op/linear.h"
#include "common/nn/op/matmul.h"
#include "common/nn/op/rmsnorm.h"
#include "common/nn/op/rmsprop.h"
#include "common/nn/op/rope.h"
#include "common/nn/op/sgd.h"
#include "common/nn/op/tangent.h"

typedef struct tg_ops {
    tg_op_matmul *matmul;
    tg_op_linear *linear;
    tg_op_weight_pack *weight_pack;
    tg_op_weight_rows *weight_rows;
    tg_op_bias_forward *bias_forward;
    tg_op_bias_backward *bias_backward;
    tg_op_layernorm_forward *layernorm_forward;
    tg_op_layernorm_backward *layernorm_backward;
    tg_op_rmsnorm_forward *rmsnorm_forward;
    tg_op_rmsnorm_backward *rmsnorm_backward;
    tg_op_rope *rope;
    tg_op_embed_forward *embed_forward;
    tg_op_embed_backward *embed_backward;
    tg_op_gather_rows *gather_rows;
    tg_op_scatter_add_rows *scatter_add_rows;
    tg_op_put_rows *put_rows;
    tg_op_attention_forward *attention_forward;
    tg_op_attention_backward *attention_backward;
    tg_op_attention_decode *attention_decode;
    tg_op_act_forward *act_forward;
    tg_op_act_backward *act_backward;
    tg_op_gated_forward *gated_forward;
    tg_op_gated_backward *gated_backward;
    tg_op_softcap *softcap;
    tg_op_add *add;
    tg_op_scale *scale;
    tg_op_fill *fill;
    tg_op_copy *copy;
    tg_op_sumsq *sumsq;
    tg_op_head_forward *head_forward;
    tg_op_head_backward *head_backward;
    tg_op_adamw *adamw;
    tg_op_adam8 *adam8;
    tg_op_rmsprop *rmsprop;
    tg_op_sgd *sgd;
    tg_op_gated_tangent *gated_tangent;
    tg_op_mul_heads *mul_heads;
    tg_op_attention_tangent *attention_tangent;
    tg_op_fisher_mean *fisher_mean;
    tg_op_fisher_grad *fisher_grad;
} tg_ops;

#endif
