/* The word-level model: a piece is a token or unknown. */
#ifndef TG_TEXT_WORDLEVEL_H
#define TG_TEXT_WORDLEVEL_H

#include "common/text/text_model.h"

/* From the "model" part of a tokenizer.json. */
tg_status tg_wordlevel_read(tg_text_model **out, const json_t *part, tg_error *err) TG_MUST_CHECK;

#endif
