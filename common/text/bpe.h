/* Byte-pair encoding (Sennrich et al. 2016) over bytes, as in GPT-2, or over characters, as in
 * SentencePiece: the pair with the lowest rank is merged first, the leftmost of equals, until no
 * pair of neighbours has a rank. With byte_fallback a character without a token becomes the tokens
 * <0x..> of its bytes.
 *
 * Cost is O(n log n) in the length of a piece, whatever it holds. */
#ifndef TG_TEXT_BPE_H
#define TG_TEXT_BPE_H

#include "common/text/text_model.h"

/* From the "model" part of a tokenizer.json. byte_level: tokens are written in the byte-level
 * alphabet and pieces arrive as raw bytes. */
tg_status tg_bpe_read(tg_text_model **out, const json_t *part, bool byte_level,
                      tg_error *err) TG_MUST_CHECK;
/* From GPT-2's older pair of files: a JSON object of token -> id, and lines of "left right". */
tg_status tg_bpe_open(tg_text_model **out, const char *vocab_path, const char *merges_path,
                      tg_error *err) TG_MUST_CHECK;

/* merges.txt of a BPE model (with the "#version" line). */
void tg_bpe_write_merges(const tg_text_model *m, tg_buf *out);

#endif
