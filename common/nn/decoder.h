/* Incremental decoding with a key/value cache. Slots are independent sequences; any subset advances
 * in one call.
 *
 *     tg_decoder *d;
 *     tg_decoder_create(&d, model, n_slots, max_len, err);
 *     tg_decoder_prefill(d, slots, prompts, offsets, n, logits, err); // starts those slots anew
 *     tg_decoder_step(d, slots, tokens, n, logits, err);              // one more token for each
 *     tg_decoder_fork(d, from, to, length, 0, err);                   // several sequences of one prefix
 *
 * logits: host (n, V), of the next token of each entry, in the order of the call. A slot occurs once in
 * a call. The model is borrowed; after its weights change, slots must be prefilled again. */
#ifndef TG_NN_DECODER_H
#define TG_NN_DECODER_H

#include "common/nn/model.h"

#include <stdint.h>

typedef struct tg_decoder tg_decoder;

/* TG_DATA: max_len is more than the model's positions. */
tg_status tg_decoder_create(tg_decoder **out, tg_model *m, int n_slots, int max_len,
                            tg_error *err) TG_MUST_CHECK;
void tg_decoder_destroy(tg_decoder **d);
/* Device bytes that create allocates: for the memory plan. */
size_t tg_decoder_bytes(const tg_arch *arch, int n_slots, int max_len);

/* tokens packed by offsets (n + 1); each sequence 1 .. max_len tokens. TG_DATA, and no slot changed: bad
 * slots, tokens or offsets, or (step) a slot that is empty or full. */
tg_status tg_decoder_prefill(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                             const int32_t *offsets, int n, float *logits,
                             tg_error *err) TG_MUST_CHECK;
tg_status tg_decoder_step(tg_decoder *d, const int32_t *slots, const int32_t *tokens, int n,
                          float *logits, tg_error *err) TG_MUST_CHECK;
int tg_decoder_length(const tg_decoder *d, int slot); /* tokens held */
/* Slot `to` becomes the first `length` tokens of slot `from`; nothing is computed. Of these it already holds
 * the first `keep` (0: none are known to be), which are not copied again. from == to cuts the slot off.
 * TG_DATA, and no slot changed: bad slots, from holds less than length, or a slot less than keep. */
tg_status tg_decoder_fork(tg_decoder *d, int from, int to, int length, int keep,
                          tg_error *err) TG_MUST_CHECK;

#endif
