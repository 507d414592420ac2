/* A whole-sequence pass over a packed batch: what the algorithms see of a model.
 *
 *     tg_pass *p;
 *     tg_pass_create(&p, model, caps, true, err);     // buffers for up to caps, allocated once
 *     tg_pass_forward(p, &batch, (tg_pass_out){logp, entropy, value}, err);
 *     tg_pass_backward(p, dlogp, dentropy, dvalue, err);     // += model->grad
 *
 * Sequences lie end to end; no padding is computed. An action is a token together with the row that
 * predicts it; only those rows go through the heads. The value of an action is taken at the same
 * row (the state before the token).
 *
 * Seq2seq: each sequence has a source text, which the encoder runs on; tokens, rows and actions are the decoder's. */
#ifndef TG_NN_PASS_H
#define TG_NN_PASS_H

#include "common/nn/model.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_batch {
    int n_tokens, n_seqs, n_actions;
    const int32_t *tokens;    /* (n_tokens) */
    const int32_t *offsets;   /* (n_seqs + 1), offsets[0] = 0, offsets[n_seqs] = n_tokens; positions
                                 restart at each */
    const int32_t *act_row;   /* (n_actions) row of the state; the action follows it */
    const int32_t *act_token; /* (n_actions) */
    const int32_t *types;     /* (n_tokens) of models that have types; NULL: all 0 */
    /* (n_actions, tg_mask_words(vocab_size)): the tokens that each action was chosen from, as in op/head.h; every act_token is
     * among its own. Log-probs and entropies are then those of the distribution over them. NULL: all. Needs caps.masked. */
    const uint32_t *mask;
    /* The last layer need only be finished at the rows of actions. Log-probs are the same, and gradients too but for the order of sums;
     * tg_pass_states and tg_pass_logits cannot be asked afterwards. */
    bool actions_only;
    /* seq2seq; all 0 otherwise */
    int n_src;
    const int32_t *src_tokens;  /* (n_src) */
    const int32_t *src_offsets; /* (n_seqs + 1), as offsets; no source is empty */
} tg_batch;

typedef struct tg_pass_caps {
    int tokens, seqs, actions;
    /* Of caps that were cut down to what a rollout needs: `actions` before that, which decides whether logits are kept. So it does not
     * depend on the rollout. 0: they were not cut. */
    int most_actions;
    int src;     /* seq2seq: source tokens */
    bool masked; /* batches may have masks */
    bool values; /* nothing but values is asked for: no logits are kept */
    /* every batch has actions and sets its own actions_only: what the last layer keeps is kept at their rows alone */
    bool actions_only;
} tg_pass_caps;

/* Words of 32 bits for a set of tokens. */
static inline int tg_mask_words(int vocab_size) {
    return (vocab_size + 31) / 32;
}

/* Host arrays (n_actions); NULL: not wanted. */
typedef struct tg_pass_out {
    float *logp, *entropy, *value;
} tg_pass_out;

typedef struct tg_pass tg_pass;

/* How a pass keeps what backward needs. Layers that are frozen, with everything below them, keep nothing and are left out of backward. */
enum {
    TG_PASS_SCORE = 0, /* nothing is kept, backward is not possible */
    TG_PASS_TRAIN = 1,
    /* only the inputs of layers are kept; backward runs every layer again: the same gradients, bit by bit */
    TG_PASS_RECOMPUTE = 3,
};

/* The model is borrowed. */
tg_status tg_pass_create(tg_pass **out, tg_model *m, tg_pass_caps caps, unsigned mode,
                         tg_error *err) TG_MUST_CHECK;
void tg_pass_destroy(tg_pass **p);
/* Bytes tg_pass_create would allocate for a model opened with model_flags: for the memory plan. */
size_t tg_pass_bytes(const tg_arch *arch, unsigned model_flags, tg_pass_caps caps, unsigned mode);

/* Bytes of the backends' own workspace that such passes come to touch. others, half_others: rows that something else, such as decoding,
 * multiplies by weights of f32 or bf16 at most. */
size_t tg_pass_workspace(const tg_arch *arch, unsigned model_flags, tg_pass_caps caps,
                         unsigned mode, int others, int half_others);

/* Whether it keeps the logits, where it trains and does not recompute: up to 192 MB of them. */
bool tg_pass_keeps(const tg_arch *arch, tg_pass_caps caps);

/* TG_DATA: more than caps, a token outside the vocabulary, a sequence longer than the positions,
 * bad offsets or rows. */
tg_status tg_pass_forward(tg_pass *p, const tg_batch *batch, tg_pass_out out,
                          tg_error *err) TG_MUST_CHECK;
/* After a forward of a train pass. Host arrays (n_actions); NULL: zero. dlogp or dentropy need the
 * LM head outputs, dvalue the value output, to have been computed by the forward. */
tg_status tg_pass_backward(tg_pass *p, const float *dlogp, const float *dentropy,
                           const float *dvalue, tg_error *err) TG_MUST_CHECK;
/* States of the last forward, host (n, C): what the heads read of those rows, or (source) what the decoder attends to. */
tg_status tg_pass_states(tg_pass *p, const int32_t *rows, int n, float *states,
                         tg_error *err) TG_MUST_CHECK;
tg_status tg_pass_source_states(tg_pass *p, const int32_t *rows, int n, float *states,
                                tg_error *err) TG_MUST_CHECK;
/* Models with labels (tg_arch.labels): the batch through the layers, and from each text's first state its logits, host (n_seqs,
 * n_labels). Actions are not looked at. */
tg_status tg_pass_labels(tg_pass *p, const tg_batch *batch, float *logits,
                         tg_error *err) TG_MUST_CHECK;
/* After tg_pass_labels of a train pass: model->grad += the gradient for dlogits, host (n_seqs, n_labels). */
tg_status tg_pass_labels_backward(tg_pass *p, const float *dlogits, tg_error *err) TG_MUST_CHECK;
/* Full logits of the last forward at given rows, host (n, V): for tests, `textgen logprob` checks
 * and beam search. */
tg_status tg_pass_logits(tg_pass *p, const int32_t *rows, int n, float *logits,
                         tg_error *err) TG_MUST_CHECK;

#endif
