/* The parameter table: one list gives names, shapes, offsets, checkpoints and tests.
 *
 * Parameters are one block of `total` floats; gradients and each optimizer moment are one of `grad_total`. Unless tensors are frozen
 * the layout is the same in all of them. Entries are aligned to 16 floats, except those that continue the one before (keys after
 * queries); the gaps stay zero. */
#ifndef TG_NN_PARAMS_H
#define TG_NN_PARAMS_H

#include "common/base/status.h"
#include "common/nn/arch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_PARAM_NAME_MAX = 96 };
#define TG_PARAM_FROZEN SIZE_MAX
#define TG_CAUSAL_LABELS "score.weight" /* what makes labels in every causal family */

/* What a tensor is to the computation, whatever its family calls it. A bias follows its weight. */
typedef enum tg_param_role {
    TG_ROLE_TOKEN_EMBED,
    TG_ROLE_POS_EMBED,
    TG_ROLE_TYPE_EMBED,
    TG_ROLE_EMBED_IN_W, /* narrow embeddings to the width of the layers */
    TG_ROLE_EMBED_IN_B,
    TG_ROLE_REL_BIAS, /* (buckets, heads) what a distance adds to scores, in all layers */
    TG_ROLE_NORM1_W, /* before attention; with norm_after behind it, as the other norms of a layer */
    TG_ROLE_NORM1_B,
    TG_ROLE_QKV_W, /* queries, keys and values side by side; or the queries, and the next two continue it */
    TG_ROLE_QKV_B,
    TG_ROLE_K_W,
    TG_ROLE_K_B,
    TG_ROLE_V_W,
    TG_ROLE_V_B,
    TG_ROLE_Q_NORM_W, /* of each head */
    TG_ROLE_K_NORM_W,
    TG_ROLE_ATTN_OUT_W,
    TG_ROLE_ATTN_OUT_B,
    TG_ROLE_POST1_W, /* norm of what attention adds */
    TG_ROLE_POST1_B,
    TG_ROLE_CROSS_NORM_W, /* before the attention to the encoder's states */
    TG_ROLE_CROSS_NORM_B,
    TG_ROLE_CROSS_Q_W,
    TG_ROLE_CROSS_Q_B,
    TG_ROLE_CROSS_K_W, /* of those states; the values' continues it */
    TG_ROLE_CROSS_K_B,
    TG_ROLE_CROSS_V_W,
    TG_ROLE_CROSS_V_B,
    TG_ROLE_CROSS_OUT_W,
    TG_ROLE_CROSS_OUT_B,
    TG_ROLE_NORM2_W, /* before the MLP; absent: the one before attention serves both */
    TG_ROLE_NORM2_B,
    TG_ROLE_UP_W, /* with a gate: the gate's, and the next continues it */
    TG_ROLE_UP_B,
    TG_ROLE_GATED_W,
    TG_ROLE_GATED_B,
    TG_ROLE_DOWN_W,
    TG_ROLE_DOWN_B,
    TG_ROLE_POST2_W, /* norm of what the MLP adds */
    TG_ROLE_POST2_B,
    TG_ROLE_EMBED_NORM_W,
    TG_ROLE_EMBED_NORM_B,
    TG_ROLE_FINAL_W, /* norm after the last layer */
    TG_ROLE_FINAL_B,
    TG_ROLE_HEAD_IN_W, /* states to narrow embeddings, which the output matrix reads */
    TG_ROLE_HEAD_IN_B,
    TG_ROLE_HEAD_W, /* absent when tied */
    TG_ROLE_HEAD_B,
    TG_ROLE_POOL_W, /* of a text's first state */
    TG_ROLE_POOL_B,
    TG_ROLE_LABELS_W, /* of that */
    TG_ROLE_LABELS_B,
    TG_ROLE_VALUE_W,
    TG_N_ROLES
} tg_param_role;

/* Which stack of layers a tensor belongs to; all of a model that is not seq2seq belong to the main one. */
typedef enum tg_stack { TG_STACK_MAIN, TG_STACK_ENCODER } tg_stack;

typedef enum tg_init {
    TG_INIT_ZERO,
    TG_INIT_ONE,
    TG_INIT_NORMAL,   /* standard deviation 0.02 */
    TG_INIT_RESIDUAL, /* 0.02 / sqrt(2 n_layers) */
    TG_INIT_LINEAR,   /* uniform within 1/sqrt(columns) */
    TG_INIT_WAVES,    /* position embeddings that are sines and cosines (positions.h) */
} tg_init;

typedef struct tg_param {
    char name[TG_PARAM_NAME_MAX]; /* Hugging Face name: "transformer.h.0.ln_1.weight" */
    int ndim;
    int shape[4];
    size_t count;       /* product of the shape */
    size_t offset;      /* in floats */
    size_t grad_offset; /* the same in the gradients; TG_PARAM_FROZEN: it has none */
    tg_param_role role;
    tg_stack stack;
    int layer;  /* -1: belongs to no layer */
    bool fixed; /* never trained; a file may leave it out */
    tg_init init;
} tg_param;

typedef struct tg_params {
    tg_param *list;
    size_t n;
    uint32_t *by_name; /* private: indices into the list, sorted */
    size_t total;      /* floats, with the gaps */
    size_t grad_total; /* of the gradients: less when some are frozen */
} tg_params;

/* Built by the family from the architecture. */
tg_status tg_params_init(tg_params *p, const tg_arch *arch, tg_error *err) TG_MUST_CHECK;
void tg_params_fini(tg_params *p);
/* Takes the gradients from everything below the last `unfrozen` layers: those layers, embeddings and relative biases, the encoder of
 * a seq2seq model, and with unfrozen 0 also the output matrix. The norm behind the last layer and the value head stay trainable; so
 * does an output matrix of its own. */
void tg_params_freeze(tg_params *p, const tg_arch *arch, int unfrozen);
const tg_param *tg_params_find(const tg_params *p, const char *name); /* NULL: none */
/* Of the main stack. */
const tg_param *tg_params_role(const tg_params *p, tg_param_role role, int layer); /* NULL: none */

#endif
