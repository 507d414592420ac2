/* WordPiece (Wu et al. 2016, as in BERT): the longest token that the rest of a word starts with,
 * again and again; a word with a part that is no token is unknown as a whole. */
#ifndef TG_TEXT_WORDPIECE_H
#define TG_TEXT_WORDPIECE_H

#include "common/text/text_model.h"

/* From the "model" part of a tokenizer.json. */
tg_status tg_wordpiece_read(tg_text_model **out, const json_t *part, tg_error *err) TG_MUST_CHECK;
/* From a vocab.txt: one token a line, ids in order. */
tg_status tg_wordpiece_open(tg_text_model **out, const char *path, tg_error *err) TG_MUST_CHECK;

/* vocab.txt of a WordPiece model. */
void tg_wordpiece_write_txt(const tg_text_model *m, tg_buf *out);

#endif
