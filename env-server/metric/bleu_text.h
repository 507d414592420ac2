/* How sacrebleu cuts a text into words: the tokenisers none, 13a (mteval-v13a), intl (mteval-v14 with
 * Unicode categories), char and zh. */
#ifndef TG_ENV_METRIC_BLEU_TEXT_H
#define TG_ENV_METRIC_BLEU_TEXT_H

#include "common/base/buf.h"
#include "env-server/metric/words.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_bleu_tok {
    TG_TOK_NONE,
    TG_TOK_13A,
    TG_TOK_INTL,
    TG_TOK_CHAR,
    TG_TOK_ZH,
    TG_TOK_COUNT
} tg_bleu_tok;

/* TG_TOK_COUNT: no such name. */
tg_bleu_tok tg_bleu_tok_find(const char *name);

/* Scratch memory; zero it to start, one thread at a time. Its buffers' failure is sticky. */
typedef struct tg_bleu_text {
    tg_buf now, next, lower;
} tg_bleu_text;

/* t->now gets the text with spaces put between its words. False: out of memory. */
bool tg_bleu_text_cut(tg_bleu_text *t, tg_bleu_tok tok, bool lowercase, const char *text,
                      size_t len);
/* The same, and the words' ids appended to out. */
bool tg_bleu_text_words(tg_bleu_text *t, tg_bleu_tok tok, bool lowercase, const char *text,
                        size_t len, tg_words *words, tg_wids *out);
/* Length of the text without the white space at its end, as str.rstrip(). */
size_t tg_bleu_text_rstrip(const char *text, size_t len);
void tg_bleu_text_fini(tg_bleu_text *t);

/* Replaces every occurrence of `from` in t->now, left to right. */
void tg_bleu_text_replace(tg_bleu_text *t, const char *from, const char *to);
/* The rules that 13a, zh and tercom's normalisation share: spaces around ASCII punctuation; around
 * periods and commas unless between digits; behind a dash that follows a digit. */
void tg_bleu_text_western(tg_bleu_text *t);
void tg_bleu_text_symbols(tg_bleu_text *t); /* its first rule alone */
void tg_bleu_text_points(tg_bleu_text *t);  /* the others */
/* Spaces around every character for which is() holds. */
void tg_bleu_text_isolate(tg_bleu_text *t, bool (*is)(uint32_t c));

#endif
