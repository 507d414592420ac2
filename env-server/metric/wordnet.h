/* WordNet 3.0 from its own database files (Debian: wordnet-base), read as NLTK reads them: the
 * synonyms of a word, found through morphy's inflection rules.
 *
 * Files are memory-mapped; a hash table over their lines is built when they are opened. Read-only
 * afterwards: any number of threads. */
#ifndef TG_ENV_WORDNET_H
#define TG_ENV_WORDNET_H

#include "common/base/status.h"
#include "env-server/metric/punkt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

typedef enum tg_wordnet_pos {
    TG_WORDNET_NOUN,
    TG_WORDNET_VERB,
    TG_WORDNET_ADJ,
    TG_WORDNET_ADV
} tg_wordnet_pos;

enum { TG_WORDNET_WORD = 256 }; /* bytes of a lemma with its NUL */

/* The base form of a word as this part of speech: the word itself where it is one, else its irregular or regular
 * base. */
typedef struct tg_wordnet_entry {
    char lemma[TG_WORDNET_WORD];
    bool inflected; /* lemma is not the word */
    unsigned
        frequency; /* occurrences in WordNet's tagged texts; 0 also when the list of them is missing */
    unsigned field; /* lexicographer's file of the first sense: 5 animals, 18 persons … */
} tg_wordnet_entry;

/* word: lower case, '_' between the words of a phrase. False: not in the database. */
bool tg_wordnet_look_up(const tg_wordnet *w, tg_wordnet_pos pos, const char *word, size_t len,
                        tg_wordnet_entry *out);
/* Calls visit with the number of every synset of the word and of its base form, any part of speech, as METEOR 1.5's
 * dictionary finds them. */
typedef void tg_wordnet_synset(void *arg, uint32_t synset);
void tg_wordnet_synsets(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_synset *visit,
                        void *arg);

#endif
