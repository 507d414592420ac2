/* WordNet 3.0 from its own database files (Debian: wordnet-base), read as NLTK reads them: the
 * synonyms of a word, found through morphy's inflection rules.
 *
 * Files are memory-mapped; a hash table over their lines is built when they are opened. Read-only
 * afterwards: any number of threads. */
#ifndef TG_ENV_WORDNET_H
#define TG_ENV_WORDNET_H

#include "common/base/status.h"
#include "env-server/metric/punkt.h"

typedef struct tg_wordnet tg_wordnet;

/* dir NULL: $TEXTGEN_WORDNET, else /usr/share/wordnet. rules: NLTK 3.7 went on applying inflection
 * rules until something was found. TG_NOINPUT with the package to install when a file is missing. */
tg_status tg_wordnet_open(tg_wordnet **out, const char *dir, tg_nltk_rules rules,
                          tg_error *err) TG_MUST_CHECK;
void tg_wordnet_close(tg_wordnet **w);

/* Called for a name; false ends the search. */
typedef bool tg_wordnet_visit(void *arg, const char *name, size_t len);
/* Every lemma name of every synset of the word (lower case), names of several words left out. A name
 * may come more than once. */
void tg_wordnet_synonyms(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_visit *visit,
                         void *arg);

#endif
