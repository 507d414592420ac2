/* Unigram language model (Kudo 2018): of all ways to cut a piece into tokens, the one with the
 * highest sum of scores, found by Viterbi's algorithm. A character without a token costs the lowest
 * score - 10; neighbouring unknown characters become one unknown token.
 *
 * Ties and sums are those of Hugging Face: scores in double, left to right, the first way found
 * stays. Cost is linear in the length, times the longest token. */
#ifndef TG_TEXT_UNIGRAM_H
#define TG_TEXT_UNIGRAM_H

#include "common/text/text_model.h"

/* From the "model" part of a tokenizer.json. */
tg_status tg_unigram_read(tg_text_model **out, const json_t *part, tg_error *err) TG_MUST_CHECK;
/* Is the token one that texts are cut into, and not only named by the vocabulary? */
bool tg_unigram_finds(const tg_text_model *m, int32_t id);

#endif
