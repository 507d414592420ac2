/* The ways to cut a text into words that captioning metrics are used with: at white space, as NLTK (lower-cased),
 * as spaCy's English rules.
 *
 * A splitter is read-only after open; every thread has its own work. A zeroed one cuts at white space. */
#ifndef TG_ENV_SPLITTER_H
#define TG_ENV_SPLITTER_H

#include "env-server/metric/nltk.h"
#include "env-server/metric/spacy.h"
#include "env-server/metric/words.h"

typedef struct tg_splitter {
    tg_nltk *nltk;
    tg_spacy *spacy;
} tg_splitter;

#define TG_SPLITTER_NAMES "none|nltk|spacy"
#define TG_OPT_SPLITTER(S, f)                                                                      \
    TG_OPT_STR_ONE_OF(S, f, NULL, TG_SPLITTER_NAMES,                                               \
                      "Words: between spaces (default), lower-cased as NLTK splits them, or as "   \
                      "spaCy does (default under compat: rl4lms).")

/* name NULL: spacy under compat, else none. compat also means the versions that RL4LMs pins. */
tg_status tg_splitter_open(tg_splitter *s, const char *name, bool compat,
                           tg_error *err) TG_MUST_CHECK;
void tg_splitter_close(tg_splitter *s);

typedef struct tg_splitter_work {
    tg_nltk_list list;
    tg_spacy_work spacy;
} tg_splitter_work; /* zeroed at first, reused freely */

/* Appends the words' ids. TG_NOMEM also when words or out have failed. */
tg_status tg_splitter_words(const tg_splitter *s, tg_splitter_work *w, const char *text, size_t len,
                            tg_words *words, tg_wids *out, tg_error *err) TG_MUST_CHECK;
void tg_splitter_work_fini(tg_splitter_work *w);

#endif
