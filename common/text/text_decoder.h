/* The decoder: tokens back to text.
 *
 * Built: ByteLevel, and none (tokens joined by spaces). Others are refused by name. */
#ifndef TG_TEXT_TEXT_DECODER_H
#define TG_TEXT_TEXT_DECODER_H

#include "common/text/part.h"

#include <stdint.h>

typedef struct tg_text_decoder {
    bool byte_level;
    char *json;        /* as it was read; "null" when there is none */
    tg_buf bytes;      /* what every token decodes to, one after the other */
    uint32_t *offsets; /* id -> place in bytes; n_tokens + 1 of them */
    int32_t n_tokens;
} tg_text_decoder;

tg_status tg_text_decoder_read(tg_text_decoder *d, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_text_decoder_fini(tg_text_decoder *d);

/* After reading: token text of ids [0, n), in order; text(arg, id) may be NULL for a hole. */
tg_status tg_text_decoder_build(tg_text_decoder *d, int32_t n,
                                const char *(*text)(const void *arg, int32_t id), const void *arg,
                                tg_error *err) TG_MUST_CHECK;

/* Appends what one token decodes to; first says that it is the first one. The result may be broken
 * UTF-8 until all tokens are there. */
void tg_text_decoder_put(const tg_text_decoder *d, int32_t id, bool first, tg_buf *out);

/* clean_up_tokenization_spaces of transformers 4.18, in place on out from `start` on: " ." -> "."
 * and so on. */
void tg_text_decoder_clean_up(tg_buf *out, size_t start);

#endif
