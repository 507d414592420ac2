/* A stack of layers between embedding and heads, driven by the architecture and the roles of the tensors; an encoder and a decoder are
 * two. Whole-sequence passes (pass.c) and incremental decoding (decoder.c) run the same code and differ only in who attends to what:
 *
 *     tg_trunk_embed(t, x, tokens, positions, N);
 *     for each layer l:
 *         tg_trunk_qkv(t, l, a, N);      <attention: a->qkv -> a->att>            tg_trunk_mix(t, l, a, N);
 *         decoder of a seq2seq model:
 *         tg_trunk_query(t, l, a, N);    <attention to the source: a->cq -> a->catt>    tg_trunk_cross(t, l, a, N);
 *         tg_trunk_mlp(t, l, a, N);
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
    void *packed
        [TG_N_ROLES]; /* the same weights in the trunk's form (packed.h); NULL: there is only w */
} tg_tensors;

typedef struct tg_trunk {
    tg_backend *be;
    tg_arch arch; /* of this stack: the encoder's is tg_arch_encoder's */
    /* embeddings, final norm, heads; with a tied head HEAD_W is the token embedding */
    tg_tensors top;
    tg_tensors *layers;  /* (n_layers) */
    tg_weight_form form; /* of what is packed */
    bool rounded;        /* matrix products round their operands to bf16 */
    float *rope;         /* device: table of rotary angles, or NULL; so are the others */
    float *local_rope;   /* of the local layers, where theirs are others */
    float *slopes;       /* (n_heads) */
    float *bias;         /* (2 reach + 1, n_heads) REL_BIAS by distance, made by tg_trunk_bias */
    float *dbias;        /* the same, its gradient; training only */
    int32_t *buckets;    /* (2 reach + 1) rows of REL_BIAS */
    float *plain;        /* (2,C) gain 1 and bias 0 of norms that have neither */
    int reach;
    /* rows of the tables of angles: of every position, and of texts with angles of their own */
    int positions, own_rows;
    float *own_host; /* (own_rows, dims) host: such a text's angles on their way */
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
    float *cmean, *crstd;   /* (N) attention to the source, as above */
    float *cq, *catt;       /* (N,H*D) */
    float *clse;            /* (N,H) */
    float *ckv;             /* (source rows, 2G*D) keys and values of the source */
    float *cmid;          /* (N,C) residual stream after it; mid where there is no such attention */
    float *mean2, *rstd2; /* (N) */
    /* (N,C) what attention and MLP add, before the norms of it; with norm_after the streams before theirs */
    float *post1, *post2;
    float *cpost; /* (N,C) norm_after: the stream before the norm behind attention to the source */
    float *mean3, *rstd3, *mean4, *rstd4; /* (N) of those norms */
    float *up;                            /* (N,U) before the activation function */
    float *act;                           /* (N,F) after it */
    float *out; /* (N,C) residual stream after the MLP: the next layer's x */
} tg_acts;

/* The model is borrowed. An encoder without token embeddings of its own has those of the main stack. */
tg_status tg_trunk_init(tg_trunk *t, const tg_model *m, tg_stack stack,
                        tg_error *err) TG_MUST_CHECK;
void tg_trunk_fini(tg_trunk *t);

/* Where the heads lie in a row of qkv. */
typedef struct tg_heads {
    int k, v;   /* offsets of the first key and value head */
    int step;   /* from head to head */
    int stride; /* from row to row */
} tg_heads;
tg_heads tg_trunk_heads(const tg_arch *arch);
/* Attention within the text, and to the source: rows k_begin[s] .. k_end[s]-1, kv_stride apart, of keys whose values lie beside them. */
tg_attn_dims tg_trunk_attn(const tg_trunk *t, int layer);
tg_attn_dims tg_trunk_attn_source(const tg_trunk *t, const int32_t *k_begin, const int32_t *k_end,
                                  int kv_stride);
static inline int tg_trunk_up_width(const tg_arch *a) {
    return a->gated ? 2 * a->mlp_width : a->mlp_width;
}
static inline int tg_trunk_qkv_width(const tg_arch *a) {
    return (a->n_heads + 2 * a->n_kv_heads) * a->head_dim;
}
static inline int tg_trunk_attn_width(const tg_arch *a) {
    return a->n_heads * a->head_dim;
}
/* Keys, or values, of a row. */
static inline int tg_trunk_kv_width(const tg_arch *a) {
    return a->n_kv_heads * a->head_dim;
}
/* Whether token embeddings are scaled: not where they alone are normalised. */
static inline bool tg_trunk_scales(const tg_arch *a) {
    return a->embed_scale > 0 && !a->norm_first;
}
/* Whether layers need places for post1 and post2. */
static inline bool tg_trunk_keeps_post(const tg_arch *a) {
    return a->post_norms || a->norm_after;
}

/* A branch of a layer: y = x + f(norm(x)), or with norm_after norm(x + f(x)), with norm_stream norm(x) + f(norm(x)), with
 * post_norms x + post(f(norm(x))). */
typedef enum tg_branch_kind { TG_BRANCH_ATTN, TG_BRANCH_CROSS, TG_BRANCH_MLP } tg_branch_kind;
typedef struct tg_branch {
    tg_param_role norm, out, post; /* out: the matrix that ends it */
    int out_in;                    /* columns that matrix reads */
    float *x, *y;                  /* (N,C) may be the same place */
    float *mean, *rstd;            /* of norm */
    float *raw;                    /* (N,C) norm_after: x + f(x); post_norms: f(norm(x)) */
    float *post_mean, *post_rstd;
} tg_branch;
tg_branch tg_trunk_branch(const tg_trunk *t, int layer, const tg_acts *a, tg_branch_kind kind);

/* y (N,C) = the norm whose weight has that role; mean and rstd are kept for backward. That of the embeddings is tg_trunk_embed_width wide. */
void tg_trunk_norm(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                   float *mean, float *rstd, const float *x, int N);
/* The best form there is of a matrix; out_in: it is stored (outputs, inputs). */
tg_weight tg_trunk_weight(const tg_trunk *t, const tg_tensors *p, tg_param_role role, bool out_in);
/* y (N,out) = x (N,in) w + b, or += when accumulate. */
void tg_trunk_linear(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                     const float *x, int N, int out, int in, bool accumulate);

/* What backward needs of embeddings that are normalised or widened; not used when they are neither. E is C, or embed_width. */
typedef struct tg_embed_acts {
    float *raw, *mean, *rstd; /* (N,E), (N); raw may be x when embeddings are not narrow */
    float *narrow;            /* (N,E) scratch: their norm, before it is widened */
    int32_t *types;           /* (N) of the tokens, where the model has types */
} tg_embed_acts;
static inline int tg_trunk_embed_width(const tg_arch *a) {
    return a->narrow_embed ? a->embed_width : a->width;
}
/* y (N,E) = tables that are read before the norm and the product that widens; positions may come behind either. */
void tg_trunk_tables(const tg_trunk *t, float *y, const int32_t *tokens, const int32_t *types,
                     const int32_t *positions, int N);
/* x (N,C) = embedded tokens at their positions. */
void tg_trunk_embed(const tg_trunk *t, float *x, const tg_embed_acts *e, const int32_t *tokens,
                    const int32_t *positions, int N);
/* Fills the table of biases by distance from the parameter, which may have changed; once before the layers. */
void tg_trunk_bias(const tg_trunk *t);
/* a->x -> a->qkv. */
void tg_trunk_qkv(const tg_trunk *t, int layer, const tg_acts *a, const int32_t *positions, int N);
/* Turns queries and keys to their positions, or their gradients back. */
void tg_trunk_rope(const tg_trunk *t, int layer, float *qkv, const int32_t *positions, int N,
                   bool inverse);
/* Layout of an RMS norm over the query or key heads. */
tg_rms_dims tg_trunk_head_norm(const tg_arch *arch, int N, int heads);
/* The norm before the MLP: its own, or the one before attention. */
static inline tg_param_role tg_trunk_norm2(const tg_tensors *p) {
    return p->w[TG_ROLE_NORM2_W] ? TG_ROLE_NORM2_W : TG_ROLE_NORM1_W;
}
/* a->act = activation of a->up. */
void tg_trunk_act(const tg_trunk *t, float *act, const float *up, int N);
/* a->x, a->att -> a->mid. */
void tg_trunk_mix(const tg_trunk *t, int layer, const tg_acts *a, int N);
/* a->mid -> a->cq;  a->mid, a->catt -> a->cmid. */
void tg_trunk_query(const tg_trunk *t, int layer, const tg_acts *a, int N);
void tg_trunk_cross(const tg_trunk *t, int layer, const tg_acts *a, int N);
/* a->cmid -> a->up: the first part of what follows. */
void tg_trunk_up(const tg_trunk *t, int layer, const tg_acts *a, int N);
/* a->cmid -> a->out; parallel: a->mid, and what tg_trunk_mix made of a->x. */
void tg_trunk_mlp(const tg_trunk *t, int layer, const tg_acts *a, int N);
/* h (n,C) = final norm of x (n,C), or a copy where there is none. */
void tg_trunk_final(const tg_trunk *t, float *h, float *mean, float *rstd, const float *x, int n);
/* lm (n,E) = what the output matrix reads of normed rows h: h itself unless tg_trunk_has_lm. */
static inline bool tg_trunk_has_lm(const tg_arch *a) {
    return a->logit_scale > 0 || a->narrow_embed;
}
const float *tg_trunk_lm(const tg_trunk *t, float *lm, const float *h, int n);
/* logits (n,V) of normed rows h; lm (n,E) is scratch where tg_trunk_has_lm, and may be h unless embeddings are narrow. */
void tg_trunk_logits(const tg_trunk *t, float *logits, const float *h, float *lm, int n);

/* Carving one device block into 64-byte aligned places; with base NULL only the size is found. */
typedef struct tg_carve {
    char *base;
    size_t used;
} tg_carve;
void *tg_carve_bytes(tg_carve *c, size_t bytes);
float *tg_carve_f32(tg_carve *c, size_t rows, size_t columns);
int32_t *tg_carve_i32(tg_carve *c, size_t n);
/* Buffers for N rows that all layers share. */
void tg_carve_shared_acts(tg_carve *c, const tg_arch *arch, size_t N, tg_acts *a);
/* The tables for that many positions, read by batches of up to `rows`: carved with the rest, then filled. */
void tg_carve_tables(tg_carve *c, const tg_arch *arch, int positions, int rows, bool train,
                     tg_trunk *t);
tg_status tg_trunk_fill_tables(tg_trunk *t, tg_error *err) TG_MUST_CHECK;
/* What a text of n tokens, all at once, has as the position of its first; the others follow. A text whose angles are its own gets rows of
 * the tables for itself: *used counts them within a batch. */
int tg_trunk_place_text(const tg_trunk *t, int n, int *used);

#endif
