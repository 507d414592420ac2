/* Cutting the tokens of one or two texts to a length, and the rows that come of it (inside of encode.c). */
#ifndef TG_TEXT_ENCODE_ROW_H
#define TG_TEXT_ENCODE_ROW_H

#include "common/text/encode.h"
#include "common/text/tokenizer_impl.h"

/* How one text is cut: parts of `keep` tokens, each `step` further on. */
typedef struct tg_cut {
    const tg_tokens *tokens;
    size_t keep, step;
    size_t parts; /* at least 1; the first is what the first row has */
    bool left;
} tg_cut;

/* The part with that number, 0 .. parts - 1. */
tg_token_range tg_cut_part(const tg_cut *cut, size_t part);

/* Cuts of both texts (pair NULL: there is one). special_tokens: how many the row will have besides. */
tg_status tg_cut_texts(const tg_encode_options *o, size_t special_tokens, const tg_tokens *first,
                       const tg_tokens *pair, tg_cut cut[2], tg_error *err) TG_MUST_CHECK;

#endif
