/* Between fisher.c (memory, head) and fisher_stack.c (layers). Private to these. */
#ifndef TG_NN_FISHER_STATE_H
#define TG_NN_FISHER_STATE_H

#include "common/nn/fisher.h"
#include "common/nn/pass_state.h"

/* Tangents have the name of their value with a t. N rows of the larger stack. */
struct tg_fisher {
    tg_pass *p;
    tg_model *v;        /* the direction, as a model */
    tg_trunk main, enc; /* the direction's tensors by role */
    void *block;
    float *ones; /* (C) */
    /* (N,C) the residual stream's; what a branch of a parallel layer starts from */
    float *tx, *branch;
    float *in, *tin;           /* (N,C) what a branch reads */
    float *made, *unused;      /* (N, max(C,Q)), (N,H) scratch of norms */
    float *twide;              /* (N, max(Q,U)) of queries, keys, values; of up */
    float *tatt;               /* (N, H*D) */
    float *act, *tact;         /* (N,F) */
    float *tbias;              /* (2 reach + 1, H) of the stack being run, or NULL */
    float *tq, *tkv, *tstates; /* seq2seq: (N,H*D), (P,2G*D), (P,C) */
    float *trows, *thidden;    /* (A,C) of the last layer; behind the final norm */
    float *tlm;                /* (A,E) what the output matrix reads; may be thidden */
    float *logits, *tlogits;   /* (A, TG_FISHER_PANEL) */
    float *mean, *weight;      /* (A) */
};

enum { TG_FISHER_PANEL = 1024 }; /* columns of the vocabulary at a time */

/* f->tx = tangent of the last layer's output. */
void tg_fisher_stack(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv);
/* ty (N,out) of x w + b of a layer, or of TG_FISHER_TOP; += when accumulate. */
enum { TG_FISHER_TOP = -1 };
void tg_fisher_linear(const tg_trunk *t, const tg_trunk *tv, int layer, tg_param_role role,
                      float *ty, const float *tx, const float *x, int N, int out, int in,
                      bool accumulate);
/* ty (N,C) of a norm of x; ty is not tx. */
void tg_fisher_norm(const tg_fisher *f, const tg_trunk *t, const tg_tensors *q,
                    const tg_tensors *qv, tg_param_role role, float *ty, const float *tx,
                    const float *x, const float *mean, const float *rstd, int N);

#endif
