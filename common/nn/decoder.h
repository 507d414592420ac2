/* Incremental decoding with a key/value cache. Slots are independent sequences; any subset advances
 * in one call.
 *
 *     tg_decoder *d;
 *     tg_decoder_create(&d, model, (tg_decoder_caps){.slots = 16, .len = 128}, err);
 *     tg_decoder_prefill(d, slots, prompts, offsets, n, logits, err); // starts those slots anew
 *     tg_decoder_step(d, slots, tokens, n, logits, err);              // one more token for each
 *     tg_decoder_fork(d, from, to, length, 0, err);                   // several sequences of one prefix
 *
 * Seq2seq: tg_decoder_encode gives slots their source texts, on which the encoder runs once; prefill then begins the answer (with
 * arch.start_id) and may do so again. Its len counts the answer's tokens alone.
 *
 * logits: host (n, V), of the next token of each entry, in the order of the call. A slot occurs once in
 * a call. The model is borrowed; after its weights change, slots must be prefilled again. */
#ifndef TG_NN_DECODER_H
#define TG_NN_DECODER_H

#include "common/nn/model.h"

#include <stdint.h>

typedef struct tg_decoder tg_decoder;

enum { TG_DECODER_ROWS = 2048 }; /* prompts beyond this many tokens are run in groups */

typedef struct tg_decoder_caps {
    int slots;
    int len; /* tokens of a slot */
    int src; /* seq2seq: tokens of its source */
    /* PLAIN: the model's own; else a copy, made anew by a prefill after the weights have changed */
    tg_weight_form weights;
    bool half_cache; /* keys and values are kept as bf16; those of a source are not */
    bool values;     /* the value head runs too */
} tg_decoder_caps;

/* TG_DATA: len or src is more than the model's positions. */
tg_status tg_decoder_create(tg_decoder **out, tg_model *m, tg_decoder_caps caps,
                            tg_error *err) TG_MUST_CHECK;
void tg_decoder_destroy(tg_decoder **d);
/* Device bytes that create allocates: for the memory plan. */
size_t tg_decoder_bytes(const tg_arch *arch, tg_decoder_caps caps);

/* Sources packed by offsets (n + 1), each 1 .. caps.src tokens; the slots are to be prefilled then. TG_DATA as below. */
tg_status tg_decoder_encode(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                            const int32_t *offsets, int n, tg_error *err) TG_MUST_CHECK;

/* tokens packed by offsets (n + 1); each sequence 1 .. caps.len tokens. TG_DATA, and no slot changed: bad
 * slots, tokens or offsets, (step) a slot that is empty or full, or (seq2seq) without a source. */
tg_status tg_decoder_prefill(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                             const int32_t *offsets, int n, float *logits,
                             tg_error *err) TG_MUST_CHECK;
tg_status tg_decoder_step(tg_decoder *d, const int32_t *slots, const int32_t *tokens, int n,
                          float *logits, tg_error *err) TG_MUST_CHECK;
int tg_decoder_length(const tg_decoder *d, int slot); /* tokens held */
/* caps.values: (n) what the value head says of each entry of the last prefill or step; valid until the next one. */
const float *tg_decoder_values(const tg_decoder *d);
/* Slot `to` becomes the first `length` tokens of slot `from`; nothing is computed. Of these it already holds
 * the first `keep` (0: none are known to be), which are not copied again. from == to cuts the slot off.
 * TG_DATA, and no slot changed: bad slots, from holds less than length, or a slot less than keep. */
tg_status tg_decoder_fork(tg_decoder *d, int from, int to, int length, int keep,
                          tg_error *err) TG_MUST_CHECK;

#endif
