/* Token ids from a line, as lists or through a tokenizer. */
#ifndef TG_LEARNER_CLI_LINE_IDS_H
#define TG_LEARNER_CLI_LINE_IDS_H

#include "common/base/status.h"
#include "common/text/tokenizer.h"

#include <jansson.h>

/* Appends object[ids_key], a list of integers in [0, vocab), or object[text_key] through the tokenizer (NULL: text is
 * refused). Exactly one of the two must be there. */
tg_status tg_line_ids(const json_t *object, const char *ids_key, const char *text_key,
                      const tg_tokenizer *tokenizer, int vocab, tg_ids *out,
                      tg_error *err) TG_MUST_CHECK;

/* The same for a line of text. */
tg_status tg_line_text(const char *text, size_t len, const tg_tokenizer *tokenizer, int vocab,
                       tg_ids *out, tg_error *err) TG_MUST_CHECK;

#endif
