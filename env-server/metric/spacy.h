/* Words as spaCy's rule tokenizer splits English text (a blank "en" pipeline): affixes and infixes, a list of
 * exceptions, URLs.
 *
 * A tg_spacy is read-only after create: any number of threads, each with its own tg_spacy_work. */
#ifndef TG_ENV_SPACY_H
#define TG_ENV_SPACY_H

#include "common/base/status.h"
#include "env-server/metric/nltk.h"

typedef enum tg_spacy_rules {
    TG_SPACY_3_0,    /* what RL4LMs pins: 3.0.6 */
    TG_SPACY_CURRENT /* 3.8 */
} tg_spacy_rules;

typedef struct tg_spacy tg_spacy;
tg_status tg_spacy_create(tg_spacy **out, tg_spacy_rules rules, tg_error *err) TG_MUST_CHECK;
void tg_spacy_destroy(tg_spacy **s);

/* A piece of the text at hand, in characters. */
typedef struct tg_spacy_token {
    uint32_t begin, end;
} tg_spacy_token;

/* Zeroed at first, reused freely. */
typedef struct tg_spacy_work {
    tg_points text;
    uint32_t *offsets; /* of each character, and of the end, in bytes */
    size_t cap_offsets;
    tg_spacy_token *tokens;
    size_t n, cap;
    bool failed;
    const char *bytes; /* the text at hand */
} tg_spacy_work;

/* Replaces the content of out by the words; white space is no word. */
tg_status tg_spacy_words(const tg_spacy *s, const char *text, size_t len, tg_spacy_work *w,
                         tg_nltk_list *out, tg_error *err) TG_MUST_CHECK;
void tg_spacy_work_fini(tg_spacy_work *w);

#endif
