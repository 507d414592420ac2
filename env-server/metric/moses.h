/* Text as the ToTTo scripts prepare it: Moses's English detokeniser, and the word splitting of mteval-v13a
 * that sacrebleu calls 13a. Stateless: any thread; failure is sticky in the buffers. */
#ifndef TG_ENV_MOSES_H
#define TG_ENV_MOSES_H

#include "common/base/buf.h"

/* Appends the line with punctuation moved to its words. */
void tg_moses_detokenize(tg_buf *out, const char *line, size_t len);
/* Appends the words of 13a with single spaces between them. */
void tg_moses_13a(tg_buf *out, const char *line, size_t len);

#endif
