/* The fused language-model head: log-prob of a given token and entropy of the whole distribution, from hidden states,
 * a chunk of rows at a time; unless they are to be kept, the n x V logits never exist.
 *
 * logits = x w^T + bias, x (n,C), w (V,C), bias (V) or NULL; with softcap > 0 then softcap tanh(logits / softcap).
 * p = softmax(logits), over the allowed tokens only where there is a mask; a row's token must be allowed.
 * forward:  logp (n) = log p[token];  entropy (n) = -sum p log p;  lse (n) = log sum exp(logits), for backward.
 * backward: dx (n,C) = ..., dw (V,C) += ... from dlogp (n), dentropy (n):
 *           dlogit_j = dlogp * (1[j = token] - p_j) - dentropy * p_j (log p_j + H).
 *           further times 1 - (logit / softcap)^2 when capped; dbias (V) += its column sums.
 *           dw, dbias NULL: frozen. Accumulation over rows in a fixed order. Softmax in f32, sums in f32 or better.
 *           rounded: both operands of the products (logits, dx, dw) count as rounded to bf16, as in op/matmul.h. */
#ifndef TG_NN_OP_HEAD_H
#define TG_NN_OP_HEAD_H

#include "common/nn/op/linear.h"

#include <stdint.h>

struct tg_backend;

/* The logit of a token that is not allowed: its probability is exactly 0, and squares stay finite in f32. */
#define TG_HEAD_MASKED (-1e15f)

typedef struct tg_head_extra {
    const float *bias; /* NULL: none */
    float *dbias;      /* backward; NULL: frozen, or no bias */
    float softcap;     /* 0: none */
    /* (n, mask_words) on the device: bit t % 32 of word t / 32 of a row is set when token t is allowed; NULL: all are */
    const uint32_t *mask;
    int mask_words;
    /* (n,V) on the device: forward leaves the logits there, and backward takes them from there and destroys them; NULL: backward makes
     * them again, which needs no memory and costs a third more */
    float *kept;
    bool rounded;
    tg_weight packed; /* forward: w (its N is V), in place of w, when its form is not PLAIN */
} tg_head_extra;

typedef void tg_op_head_forward(struct tg_backend *be, float *logp, float *entropy, float *lse,
                                const float *x, const float *w, const int32_t *tokens, int n, int C,
                                int V, tg_head_extra extra);
typedef void tg_op_head_backward(struct tg_backend *be, float *dx, float *dw, const float *dlogp,
                                 const float *dentropy, const float *x, const float *w,
                                 const int32_t *tokens, const float *lse, const float *entropy,
                                 int n, int C, int V, tg_head_extra extra);

#endif
