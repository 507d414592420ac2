/* Directional derivatives: what forward mode needs beyond the ops of forward and backward. A tangent t.. is the derivative of its value
 * along one direction in the space of parameters.
 *
 * gated_tangent: ty (N,F) of gated_forward's y, from tx (N,2F), which is overwritten.
 * mul_heads:  y *= gamma + offset on every vector of C floats laid out by dims (op/rmsnorm.h). gamma (C).
 * attention_tangent: tout (N, H*D) of attention_forward's out, from tq, tk, tv, which lie as q, k, v do, and from out and lse.
 *             tbias as dims.bias, or NULL. With p the softmax of the scores s and ts their tangent (of ALiBi 0):
 *             tout = sum_j p_j (tv_j + ts_j v_j) - (sum_j p_j ts_j) out.
 * fisher_mean: mean (n) += sum over the columns of a panel of p t c;  t (n, cols) the products' tangents, l (n, cols) the logits,
 *             p = exp(l - lse), c = 1 - (l/softcap)^2, or 1 without softcap.
 * fisher_grad: t := weight p (t c - mean) c: the gradient of the products. weight (n). */
#ifndef TG_NN_OP_TANGENT_H
#define TG_NN_OP_TANGENT_H

#include "common/nn/op/activation.h"
#include "common/nn/op/attention.h"
#include "common/nn/op/rmsnorm.h"

#include <stddef.h>
#include <stdint.h>

struct tg_backend;

typedef void tg_op_gated_tangent(struct tg_backend *be, float *ty, float *tx, const float *x, int N,
                                 int F, tg_act kind);
typedef void tg_op_mul_heads(struct tg_backend *be, float *y, const float *gamma, tg_rms_dims dims);

typedef struct tg_attn_rows {
    const float *q, *k, *v;
} tg_attn_rows;
typedef void tg_op_attention_tangent(struct tg_backend *be, float *tout, tg_attn_rows value,
                                     tg_attn_rows tangent, const float *tbias, const float *out,
                                     const float *lse, int stride, const int32_t *offsets,
                                     int n_seqs, tg_attn_dims dims);

typedef void tg_op_fisher_mean(struct tg_backend *be, float *mean, const float *t, const float *l,
                               const float *lse, int n, int cols, float softcap);
typedef void tg_op_fisher_grad(struct tg_backend *be, float *t, const float *l, const float *lse,
                               const float *mean, const float *weight, int n, int cols,
                               float softcap);

#endif
