/* Incremental decoding with a key/value cache. Slots are independent sequences; any subset advances
 * in one call.
 *
 *     tg_decoder *d;
 *     tg_decoder_create(&d, model, n_slots, max_len, err);
 *     tg_decoder_prefill(d, slots, prompts, offsets, n, logits, err);   // starts those slots anew
 *     tg_decoder_step(d, slots, tokens, n, logits, err);                // appends one token to
 * each
 *
 * logits: host (n, V), of the next token of each entry, in the order of the call. */
#ifndef TG_NN_DECODER_H
#define TG_NN_DECODER_H

#include "common/nn/model.h"

#include <stdint.h>

typedef struct tg_decoder tg_decoder;

tg_status tg_decoder_create(tg_decoder **out, tg_model *m, int n_slots, int max_len,
                            tg_error *err) TG_MUST_CHECK;
void tg_decoder_destroy(tg_decoder **d);
size_t tg_decoder_bytes(const tg_arch *arch, int n_slots, int max_len);

/* tokens packed by offsets (n + 1); each sequence 1 .. max_len tokens. */
tg_status tg_decoder_prefill(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                             const int32_t *offsets, int n, float *logits,
                             tg_error *err) TG_MUST_CHECK;
tg_status tg_decoder_step(tg_decoder *d, const int32_t *slots, const int32_t *tokens, int n,
                          float *logits, tg_error *err) TG_MUST_CHECK;
int tg_decoder_length(const tg_decoder *d, int slot); /* tokens held */

#endif
