/* The normaliser of a tokenizer: rewrites text before it is cut.
 *
 * Built: none, NFC, Sequence of these. Others are refused by name. */
#ifndef TG_TEXT_NORMALIZER_H
#define TG_TEXT_NORMALIZER_H

#include "common/text/part.h"
#include "common/text/scratch.h"

typedef struct tg_normalizer {
    bool nfc;
    char *json; /* the part as it was read; "null" when there is none */
} tg_normalizer;

tg_status tg_normalizer_read(tg_normalizer *n, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_normalizer_fini(tg_normalizer *n);

/* *out is in itself, when nothing changes, or a view of s->normal. */
tg_status tg_normalizer_run(const tg_normalizer *n, tg_scratch *s, tg_view in, tg_view *out,
                            tg_error *err) TG_MUST_CHECK;

/* Appends the normalised text; for loading. */
tg_status tg_normalizer_text(const tg_normalizer *n, const char *s, size_t len, tg_buf *out,
                             tg_error *err) TG_MUST_CHECK;

#endif
