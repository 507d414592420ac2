/* Ids to text one id at a time, for text that is shown while it is generated.
 *
 *     tg_decode_stream *d;
 *     tg_decode_stream_create(&d, tokenizer, TG_DECODE_SKIP_SPECIAL, err);
 *     tg_decode_stream_put(d, id, &out, err);      // appends what no later id can change
 *     tg_decode_stream_end(d, &out, err);          // the rest; the next put starts a new text
 *     tg_decode_stream_destroy(&d);
 *
 * What is appended is always whole UTF-8, and all of it together is what tg_tokenizer_decode gives for the same ids. Cost
 * is linear. One thread at a time. */
#ifndef TG_TEXT_DECODE_STREAM_H
#define TG_TEXT_DECODE_STREAM_H

#include "common/text/tokenizer.h"

typedef struct tg_decode_stream tg_decode_stream;

/* Borrows the tokenizer. flags as for tg_tokenizer_decode; Marian's tokenizers only with TG_DECODE_SKIP_SPECIAL (else TG_UNSUPPORTED). */
tg_status tg_decode_stream_create(tg_decode_stream **out, const tg_tokenizer *t, unsigned flags,
                                  tg_error *err) TG_MUST_CHECK;
tg_status tg_decode_stream_put(tg_decode_stream *d, int32_t id, tg_buf *out,
                               tg_error *err) TG_MUST_CHECK;
/* Appends what _end would, but the text goes on. spare: another stream of the same tokenizer and flags, whose text is lost. In
 * the long run nothing is allocated. */
tg_status tg_decode_stream_peek(const tg_decode_stream *d, tg_decode_stream *spare, tg_buf *out,
                                tg_error *err) TG_MUST_CHECK;
tg_status tg_decode_stream_end(tg_decode_stream *d, tg_buf *out, tg_error *err) TG_MUST_CHECK;
void tg_decode_stream_destroy(tg_decode_stream **d);

#endif
