/* Marian's tokenizers: source.spm and target.spm, one SentencePiece model for each language, and vocab.json, which numbers the pieces of
 * both. Texts are cut as SentencePiece does it; a piece that vocab.json does not have is unknown. */
#ifndef TG_TEXT_MARIAN_H
#define TG_TEXT_MARIAN_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/text/tokenizer.h"
#include "common/text/view.h"

#include <jansson.h>

/* One of the two models as a tokenizer.json (json_decref); data gets the file. vocab: vocab.json, config: tokenizer_config.json or NULL. */
tg_status tg_marian_load(const char *path, const json_t *vocab, const json_t *config, json_t **root,
                         tg_buf *data, tg_error *err) TG_MUST_CHECK;

/* Bytes of the language code that a text begins with, ">>de<<"; 0: none. */
size_t tg_marian_language(tg_view text);

/* Appends the text of ids, special tokens among them: each is written out with a space behind it, and what lies between them is a text of
 * its own. Without special tokens tg_tokenizer_decode's tables say the same. */
void tg_marian_decode(const tg_tokenizer *t, const int32_t *ids, size_t n, tg_buf *out);

#endif
