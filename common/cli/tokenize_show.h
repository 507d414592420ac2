/* How `textgen tokenize` shows a row. */
#ifndef TG_CLI_TOKENIZE_SHOW_H
#define TG_CLI_TOKENIZE_SHOW_H

#include "common/text/encode.h"

/* "1 2 3" */
void tg_show_ids(const tg_encodings *e, size_t row, tg_buf *out);
/* Tokens in the tokenizer's own alphabet, one a line. */
void tg_show_pieces(const tg_tokenizer *t, const tg_encodings *e, size_t row, tg_buf *out);
/* The text with a colour of the terminal for each token; what stands for no text is shown by its name. */
void tg_show_colors(const tg_tokenizer *t, const tg_encodings *e, size_t row, const tg_text *text,
                    tg_buf *out);
/* {"ids", "tokens", "offsets"}, with masks also "attention_mask", "type_ids" and "special_tokens_mask", without
 * the closing brace. */
void tg_show_json(const tg_tokenizer *t, const tg_encodings *e, size_t row, bool masks,
                  tg_buf *out);

#endif
