/* Sentence splitting with Punkt (Kiss and Strunk 2006), as NLTK's sent_tokenize does it for English.
 *
 * A tg_punkt is read-only after create and may be used by any number of threads. */
#ifndef TG_ENV_PUNKT_H
#define TG_ENV_PUNKT_H

#include "common/base/status.h"
#include "env-server/metric/points.h"

/* NLTK changed its rules for curly quotes and dashes over time. */
typedef enum tg_nltk_rules {
    TG_NLTK_CURRENT, /* 3.10 */
    TG_NLTK_3_7,     /* the version that RL4LMs pins */
} tg_nltk_rules;

/* \s and \w of the engine that runs NLTK's expressions: re until 3.9, regex since, which does not
 * count the four separators of ASCII as spaces, nor superscripts and fractions as words. */
bool tg_nltk_space(tg_nltk_rules rules, uint32_t c);
bool tg_nltk_word(tg_nltk_rules rules, uint32_t c);

typedef struct tg_punkt tg_punkt;
tg_status tg_punkt_create(tg_punkt **out, tg_nltk_rules rules, tg_error *err) TG_MUST_CHECK;
void tg_punkt_destroy(tg_punkt **p);

typedef struct tg_span {
    size_t begin, end;
} tg_span;

/* Sentences of a text, and the work space for finding them; zeroed at first, reused freely. */
typedef struct tg_sentences {
    tg_span *spans; /* in code points of the text */
    size_t n;
    size_t cap; /* private from here */
    struct tg_punkt_token *tokens;
    size_t tokens_cap;
    tg_points context;
    tg_buf lower;
} tg_sentences;
tg_status tg_punkt_split(const tg_punkt *p, const tg_points *text, tg_sentences *out,
                         tg_error *err) TG_MUST_CHECK;
void tg_sentences_fini(tg_sentences *s);

/* punkt_data.c. Lists have a line for each entry, pairs a tab; the last two are sorted words, each
 * written as a capital letter (how many characters it shares with the word before, A = 0) and its
 * remaining characters. */
extern const char tg_punkt_abbreviations[], tg_punkt_collocations[], tg_punkt_starters[],
    tg_punkt_begins[], tg_punkt_cased[], tg_punkt_starts[];

#endif
