/* Words and sentences as NLTK's word_tokenize and sent_tokenize split English text: Punkt, then the
 * rules of the Penn Treebank with NLTK's additions.
 *
 * A tg_nltk is read-only after create: any number of threads, each with its own tg_nltk_list. */
#ifndef TG_ENV_NLTK_H
#define TG_ENV_NLTK_H

#include "common/base/status.h"
#include "env-server/metric/punkt.h"

typedef struct tg_nltk tg_nltk;
tg_status tg_nltk_create(tg_nltk **out, tg_nltk_rules rules, tg_error *err) TG_MUST_CHECK;
void tg_nltk_destroy(tg_nltk **w);

typedef struct tg_nltk_word_span {
    size_t at, len; /* in bytes of the list; a NUL follows each word */
} tg_nltk_word_span;

/* Zeroed at first; every call replaces the content and reuses the memory. */
typedef struct tg_nltk_list {
    tg_buf bytes;
    tg_nltk_word_span *words;
    size_t n;
    size_t cap; /* private from here */
    tg_points text, work[2];
    tg_sentences sentences;
} tg_nltk_list;

static inline const char *tg_nltk_at(const tg_nltk_list *l, size_t i) {
    return l->bytes.data + l->words[i].at;
}

/* text is UTF-8; a broken byte is a character that stands for itself. */
tg_status tg_nltk_words(const tg_nltk *w, const char *text, size_t len, tg_nltk_list *out,
                        tg_error *err) TG_MUST_CHECK;
tg_status tg_nltk_sentences(const tg_nltk *w, const char *text, size_t len, tg_nltk_list *out,
                            tg_error *err) TG_MUST_CHECK;
/* Replaces every word by its str.lower(). */
tg_status tg_nltk_list_lower(tg_nltk_list *l, tg_error *err) TG_MUST_CHECK;
tg_status tg_nltk_list_add(tg_nltk_list *l, const char *word, size_t len,
                           tg_error *err) TG_MUST_CHECK;
void tg_nltk_list_clear(tg_nltk_list *l);
void tg_nltk_list_fini(tg_nltk_list *l);

#endif
