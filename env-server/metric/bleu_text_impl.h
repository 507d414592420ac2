/* What the files of sacrebleu's tokenisers share.
 *
 *   bleu_text.c        the tokenisers by name, a text cut as a whole
 *   bleu_text_rules.c  the rules of 13a, zh and tercom
 *   bleu_text_intl.c   those of intl, which go by Unicode categories
 *   bleu_text_words.c  a text cut word by word
 *
 * They are chains of rewriting passes from one buffer to the other, as the regular expressions of the original do it, so that
 * overlapping rules agree. Bytes of characters above ASCII count as characters that are no digits and no punctuation, which those
 * rules cannot tell from the whole. */
#ifndef TG_ENV_METRIC_BLEU_TEXT_IMPL_H
#define TG_ENV_METRIC_BLEU_TEXT_IMPL_H

#include "env-server/metric/bleu_text.h"

/* Room in t->next for the next pass to write at most max bytes; borrowed. NULL: out of memory, which t->now says too. */
char *tg_bleu_text_begin(tg_bleu_text *t, size_t max);
/* The pass has written up to there: it becomes t->now. */
void tg_bleu_text_end(tg_bleu_text *t, const char *written);

/* What intl does to the text in t->now. */
void tg_bleu_text_intl(tg_bleu_text *t);
/* What a tokeniser does to it. */
void tg_bleu_text_apply(tg_bleu_text *t, tg_bleu_tok tok);
/* Whether 13a's first rules are about the text, the only ones that see more than a word: what mteval wrote around texts is taken
 * back. */
bool tg_bleu_text_is_escaped(const char *text, size_t len);
/* The text becomes its lower-case form, which is in t->lower. False: out of memory. */
bool tg_bleu_text_lower(tg_bleu_text *t, const char **text, size_t *len);

#endif
