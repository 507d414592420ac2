/* What forward (pass.c) leaves for backward (pass_backward.c). Private to these two. */
#ifndef TG_NN_PASS_STATE_H
#define TG_NN_PASS_STATE_H

#include "common/nn/pass.h"
#include "common/nn/trunk.h"

enum { TG_PASS_LOGIT_ROWS = 16 }; /* rows of full logits made at a time */

/* Device buffers, all in one block. N = caps.tokens, A = caps.actions, M = max(N, A). */
typedef struct tg_pass_buffers {
    int32_t *tokens, *positions;  /* (N) */
    int32_t *offsets;             /* (seqs + 1) */
    int32_t *act_row, *act_token; /* (A) */
    float *rows, *hidden;         /* (A,C) residual stream at the action rows, and its final norm */
    float *mean, *rstd;           /* (A) of that norm */
    float *logp, *entropy, *lse, *value; /* (A) */
    tg_embed_acts embed;

    int32_t *logit_rows; /* (TG_PASS_LOGIT_ROWS) and the rest for tg_pass_logits */
    float *logit_x, *logit_h, *logit_mean, *logit_rstd, *logits;

    /* train only */
    float *dlogp, *dentropy, *dvalue; /* (A) */
    float *dx;                        /* (N,C) gradient of the residual stream */
    float *d1, *d2;                   /* (M, max(C, H*D)) scratch */
    float *dy;   /* (N,C) gradient of what a branch adds, where it is not dx itself */
    float *wide; /* (N, max(Q,U)) scratch; forward's act when there is no gate */
    float *act;  /* (N,F) that, or its own with a gate */
} tg_pass_buffers;

struct tg_pass {
    tg_model *m;
    tg_trunk trunk;
    tg_pass_caps caps;
    bool train;
    void *block;
    tg_pass_buffers b;
    tg_acts *layers;         /* (n_layers) */
    int32_t *host_positions; /* (N) */
    /* of the last forward; n_tokens 0: there was none */
    int n_tokens, n_seqs, n_actions;
    bool has_lm, has_value;
};

#endif
