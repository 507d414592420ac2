/* What forward (pass.c) leaves for backward (pass_backward.c), in the memory that pass_layout.c laid out. Private to these. */
#ifndef TG_NN_PASS_STATE_H
#define TG_NN_PASS_STATE_H

#include "common/nn/pass.h"
#include "common/nn/trunk.h"

enum { TG_PASS_LOGIT_ROWS = 16 }; /* rows of full logits made at a time */

/* A stack of layers and the rows that it runs on. */
typedef struct tg_pass_stack {
    tg_trunk trunk;
    tg_acts *layers;             /* (n_layers) */
    int32_t *tokens, *positions; /* device (N) */
    int32_t *offsets;            /* device (seqs + 1) */
    tg_embed_acts embed;
    int n_tokens; /* of the last forward; 0: there was none */
    int lowest;   /* first layer that is trained; n_layers: none is */
    int held; /* recompute: the layer whose activations are in the buffers that they share; -1: none */
} tg_pass_stack;

/* Device buffers, all in one block with the stacks'. N = caps.tokens, A = caps.actions, P = caps.src; R = the most rows of any kind. */
typedef struct tg_pass_buffers {
    int32_t *act_row, *act_token; /* (A) */
    uint32_t *mask;               /* (A, words); NULL: not with these caps */
    float *rows, *hidden;         /* (A,C) residual stream at the action rows, and its final norm */
    /* (A,C), (A,H*D) of the last layer at the action rows, when it is cut */
    float *cut_x, *cut_att;
    float *lm;          /* (A,E) what the output matrix reads: hidden, or made of it */
    float *mean, *rstd; /* (A) of that norm */
    float *logp, *entropy, *lse, *value; /* (A) */
    /* (A,V) logits that backward need not make again; NULL: too many, or not trained */
    float *kept;

    int32_t *logit_rows; /* (TG_PASS_LOGIT_ROWS) and the rest for tg_pass_logits */
    float *logit_x, *logit_h, *logit_lm, *logit_mean, *logit_rstd, *logits;

    /* labels; S = caps.seqs, L = n_labels */
    /* (S,C) a text's first state, times the pooler's matrix, its pool_act */
    float *first, *pool, *pooled;
    float *judged; /* (S, tg_arch_judged_width) what the last matrix reads: pooled, or made of it */
    float *labels, *dlabels;        /* (S,L); dlabels: train only */
    int32_t *label_rows;            /* (S) rows of the states that are judged */
    float *label_mean, *label_rstd; /* (S) of the final norm, where there is one */

    /* seq2seq */
    float *states;        /* (P,C) the encoder's, after its final norm */
    float *smean, *srstd; /* (P) of that norm */

    /* train only */
    float *dlogp, *dentropy, *dvalue; /* (A) */
    float *dx;                        /* (max(N,P),C) gradient of the residual stream */
    float *d1, *d2;                   /* (R, max(C, H*D)) scratch */
    float *dy;      /* (max(N,P),C) gradient of what a branch adds, where it is not dx itself */
    float *wide;    /* (max(N,P), max(Q,U,2G*D)) scratch; forward's act when there is no gate */
    float *act;     /* (max(N,P),F) that, or its own with a gate */
    float *dstates; /* (P,C) */
} tg_pass_buffers;

struct tg_pass {
    tg_model *m;
    tg_pass_caps caps;
    bool train, recompute, seq2seq;
    bool embed_trained; /* and with them the whole of every stack */
    void *block;
    tg_pass_buffers b;
    tg_pass_stack main, enc; /* enc: seq2seq only */
    int32_t *host_positions; /* (max(N,P)) */
    /* of the last forward */
    int n_seqs, n_actions;
    bool has_lm, has_value, has_labels, has_mask;
    bool cut;        /* the last layer was finished at the action rows alone */
    bool whole;      /* never cut: somebody reads the other rows */
    bool kept_whole; /* the kept logits are forward's still: no backward has used them up */
};

/* What shapes the logits besides the matrix. */
static inline tg_head_extra tg_pass_head(const tg_pass *p) {
    const tg_trunk *t = &p->main.trunk;
    return (tg_head_extra){.bias = t->top.w[TG_ROLE_HEAD_B],
                           .dbias = t->top.g[TG_ROLE_HEAD_B],
                           .softcap = t->arch.logit_softcap,
                           .mask = p->has_mask ? p->b.mask : NULL,
                           .mask_words = tg_mask_words(t->arch.vocab_size),
                           .rounded = t->rounded,
                           .packed = tg_trunk_weight(t, &t->top, TG_ROLE_HEAD_W, true),
                           .kept = p->kept_whole ? p->b.kept : NULL};
}

/* From attention's results on, a layer may have rows of its own: those of the actions. */
typedef struct tg_pass_rows {
    tg_acts a;
    int n;
} tg_pass_rows;
tg_pass_rows tg_pass_rows_of(const tg_pass *p, const tg_pass_stack *s, int layer);
static inline bool tg_pass_is_cut(const tg_pass *p, const tg_pass_stack *s, int layer) {
    return p->cut && s == &p->main && layer == s->trunk.arch.n_layers - 1;
}
/* Layer l from its x on: to out, or (to_up) only to what its backward needs. */
void tg_pass_layer(tg_pass *p, const tg_pass_stack *s, int layer, bool to_up);
/* The layers of a stack: b.dx, gradient of the last one's output, becomes gradients of all that is trained of
 * the stack (pass_backward.c). */
void tg_pass_stack_backward(tg_pass *p, tg_pass_stack *s);
/* One of its layers (pass_backward_layer.c), down to its input. */
void tg_pass_layer_backward(tg_pass *p, const tg_pass_stack *s, int layer);
/* to (N,width) = rows (A,width) in the places of the actions, 0 elsewhere. */
void tg_pass_spread_rows(const tg_pass *p, float *to, const float *rows, int width);
/* From the gradient of the rows behind the final norm, dhidden (A,C), which may be b.d1, to that of every parameter below. */
void tg_pass_rows_backward(tg_pass *p, float *dhidden);
/* From the gradient dlm (A,E) of what the output matrix reads to dhidden; the same memory unless embeddings are narrow. dlm is overwritten. */
void tg_pass_lm_backward(tg_pass *p, float *dhidden, float *dlm);
/* The parts of it that heads need too: dw and db of y = x w + b; dx += the gradient through a norm; dx = dy w^T, or +=. */
void tg_pass_weight_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role,
                             const float *dy, const float *x, int N, int out, int in);
void tg_pass_norm_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                           const float *dy, const float *x, const float *mean, const float *rstd,
                           int N);
void tg_pass_input_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                            const float *dy, int N, int out, int in, bool accumulate);
/* Rows of the last layer. */
static inline const float *tg_pass_last_rows(const tg_pass_stack *s) {
    return s->layers[s->trunk.arch.n_layers - 1].out;
}

/* Attention of the decoder to the source; keys and values of a row lie side by side in acts.ckv. */
static inline tg_attn_dims tg_pass_source(const tg_pass *p) {
    const tg_trunk *t = &p->main.trunk;
    return tg_trunk_attn_source(t, p->enc.offsets, p->enc.offsets + 1,
                                2 * tg_trunk_kv_width(&t->arch));
}

#endif
