/* The stack of layers between embedding and heads, driven by the architecture and the roles of the tensors. Whole-sequence passes
 * (pass.c) and incremental decoding (decoder.c) run the same code and differ only in who attends to what:
 *
 *     tg_trunk_embed(t, x, tokens, positions, N);
 *     for each layer l:  tg_trunk_qkv(t, l, a, N);  <attention: a->qkv -> a->att>  tg_trunk_mix(t, l, a, N);
 *
 * Private to common/nn. */
#ifndef TG_NN_TRUNK_H
#define TG_NN_TRUNK_H

#include "common/nn/model.h"

#include <stdint.h>

/* Device places by role; NULL where the model has no such tensor. */
typedef struct tg_tensors {
    float *w[TG_N_ROLES]; /* in model->data */
    float *g[TG_N_ROLES]; /* in model->grad; NULL when frozen */
} tg_tensors;

typedef struct tg_trunk {
    tg_backend *be;
    const tg_arch *arch;
    tg_tensors
        top; /* embeddings, final norm, heads; with a tied head HEAD_W is the token embedding */
    tg_tensors *layers; /* (n_layers) */
    float *rope;        /* device: table of rotary angles, or NULL */
    float *slopes;      /* device: (n_heads), or NULL */
} tg_trunk;

/* The buffers of one layer. N rows; C width, Q = (H + 2G) D, F mlp_width, U = F or with a gate 2F. Scoring and decoding let all layers share them and
 * alias mid, out = x and act = up; training keeps one set per layer except for the norm and act outputs, which backward makes
 * again. */
typedef struct tg_acts {
    float *x;             /* (N,C) input: the residual stream */
    float *mean1, *rstd1; /* (N) */
    float *norm;          /* (N,C) scratch: output of whichever norm ran last */
    float *raw; /* (N,Q) before the norms of queries and keys; qkv when there is no backward */
    float *rstd_q, *rstd_k; /* (N,H), (N,G) of those norms */
    float *qkv;             /* (N,Q) */
    float *att;             /* (N,H*D) */
    float *lse;             /* (N,H) */
    float *mid;             /* (N,C) residual stream after attention */
    float *mean2, *rstd2;   /* (N) */
    float *post1, *post2;   /* (N,C) what attention and MLP add, before the norms of it */
    float *mean3, *rstd3, *mean4, *rstd4; /* (N) of those norms */
    float *up;                            /* (N,U) before the activation function */
    float *act;                           /* (N,F) after it */
    float *out; /* (N,C) residual stream after the MLP: the next layer's x */
} tg_acts;

/* The model is borrowed. */
tg_status tg_trunk_init(tg_trunk *t, const tg_model *m, tg_error *err) TG_MUST_CHECK;
void tg_trunk_fini(tg_trunk *t);

/* Where the heads lie in a row of qkv. */
typedef struct tg_heads {
    int k, v;   /* offsets of the first key and value head */
    int step;   /* from head to head */
    int stride; /* from row to row */
} tg_heads;
tg_heads tg_trunk_heads(const tg_arch *arch);
tg_attn_dims tg_trunk_attn(const tg_trunk *t, int layer);
static inline int tg_trunk_up_width(const tg_arch *a) {
    return a->gated ? 2 * a->mlp_width : a->mlp_width;
}
static inline int tg_trunk_qkv_width(const tg_arch *a) {
    return (a->n_heads + 2 * a->n_kv_heads) * a->head_dim;
}
static inline int tg_trunk_attn_width(const tg_arch *a) {
    return a->n_heads * a->head_dim;
}

/* y (N,C) = the norm whose weight has that role; mean and rstd are kept for backward. */
void tg_trunk_norm(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                   float *mean, float *rstd, const float *x, int N);
/* y (N,out) = x (N,in) w + b, or += when accumulate. */
void tg_trunk_linear(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                     const float *x, int N, int out, int in, bool accumulate);

/* What backward needs of normalised embeddings; raw = x when there is none. */
typedef struct tg_embed_acts {
    float *raw, *mean, *rstd; /* (N,C), (N) */
} tg_embed_acts;
/* x (N,C) = embedded tokens at their positions. */
void tg_trunk_embed(const tg_trunk *t, float *x, const tg_embed_acts *e, const int32_t *tokens,
                    const int32_t *positions, int N);
/* a->x -> a->qkv. */
void tg_trunk_qkv(const tg_trunk *t, int layer, const tg_acts *a, const int32_t *positions, int N);
/* Turns queries and keys to their positions, or their gradients back. */
void tg_trunk_rope(const tg_trunk *t, float *qkv, const int32_t *positions, int N, bool inverse);
/* Layout of an RMS norm over the query or key heads. */
tg_rms_dims tg_trunk_head_norm(const tg_arch *arch, int N, int heads);
/* The norm before the MLP: its own, or the one before attention. */
static inline tg_param_role tg_trunk_norm2(const tg_tensors *p) {
    return p->w[TG_ROLE_NORM2_W] ? TG_ROLE_NORM2_W : TG_ROLE_NORM1_W;
}
/* a->act = activation of a->up. */
void tg_trunk_act(const tg_trunk *t, float *act, const float *up, int N);
/* a->x, a->att -> a->mid -> a->out. */
void tg_trunk_mix(const tg_trunk *t, int layer, const tg_acts *a, int N);
/* h (n,C) = final norm of x (n,C). */
void tg_trunk_final(const tg_trunk *t, float *h, float *mean, float *rstd, const float *x, int n);
/* logits (n,V) of normed rows h. */
void tg_trunk_logits(const tg_trunk *t, float *logits, const float *h, int n);

/* Carving one device block into 64-byte aligned places; with base NULL only the size is found. */
typedef struct tg_carve {
    char *base;
    size_t used;
} tg_carve;
float *tg_carve_f32(tg_carve *c, size_t rows, size_t columns);
int32_t *tg_carve_i32(tg_carve *c, size_t n);
/* Buffers for N rows that all layers share. */
void tg_carve_shared_acts(tg_carve *c, const tg_arch *arch, size_t N, tg_acts *a);
/* The tables for that many positions: carved with the rest, then filled. */
void tg_carve_tables(tg_carve *c, const tg_arch *arch, int positions, tg_trunk *t);
tg_status tg_trunk_fill_tables(tg_trunk *t, int positions, tg_error *err) TG_MUST_CHECK;

#endif
