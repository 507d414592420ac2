/* What the files of WordNet share.
 *
 *   wordnet.c          the database's files, and reading their lines
 *   wordnet_forms.c    base forms of a word: the rules and the exceptions
 *   wordnet_synsets.c  synonyms and synsets of a word
 *   wordnet_entry.c    what is known of a word as one part of speech
 *
 * index.* gives the places of a lemma's synsets in data.*, *.exc the irregular forms. Nothing in the
 * files is trusted: every step stays within the map, and a line that cannot be read has no synonyms. */
#ifndef TG_ENV_WORDNET_IMPL_H
#define TG_ENV_WORDNET_IMPL_H

#include "common/base/file.h"
#include "env-server/metric/wordnet.h"

enum { TG_WORDNET_N_POS = 4, TG_WORDNET_MAX_WORD = 255, TG_WORDNET_MAX_FORMS = 64 };

/* The lines of a file by their first word. */
typedef struct tg_wordnet_table {
    tg_filemap map;
    uint32_t *slots; /* line start + 1, 0 free */
    size_t mask;
} tg_wordnet_table;

struct tg_wordnet {
    tg_wordnet_table index[TG_WORDNET_N_POS], exceptions[TG_WORDNET_N_POS];
    tg_filemap data[TG_WORDNET_N_POS];
    tg_filemap counts; /* empty: no such file */
    tg_nltk_rules rules;
};

/* wordnet.c: at, end are places in the map. */
size_t tg_wordnet_line_end(const tg_filemap *m, size_t at);
size_t tg_wordnet_word_end(const tg_filemap *m, size_t at, size_t end);
/* The line of a word: *at and *end. */
bool tg_wordnet_find(const tg_wordnet_table *t, const char *word, size_t len, size_t *at,
                     size_t *end);
/* Reads the number behind spaces; *at goes behind it. False: there is none, or it is too large. */
bool tg_wordnet_number_at(const tg_filemap *m, size_t *at, size_t end, unsigned base, size_t *out);
/* False: the line has fewer words. */
bool tg_wordnet_skip_words(const tg_filemap *m, size_t *at, size_t end, size_t n);

/* wordnet_forms.c */
typedef struct tg_wordnet_rule {
    const char *old, *new;
} tg_wordnet_rule;

typedef struct tg_wordnet_forms {
    char text[TG_WORDNET_MAX_FORMS][TG_WORDNET_MAX_WORD + 1];
    size_t len[TG_WORDNET_MAX_FORMS];
    size_t n;
} tg_wordnet_forms;

/* Adds a and b as one form, unless it is there or there is no room. */
void tg_wordnet_add_form(tg_wordnet_forms *f, const char *a, size_t a_len, const char *b,
                         size_t b_len);
/* Adds what morphy's rules make of the word, known or not. */
void tg_wordnet_inflect(const char *word, size_t len, size_t pos, tg_wordnet_forms *out);
/* Adds the irregular base forms of a word; false: it has none. */
bool tg_wordnet_irregular_forms(const tg_wordnet *w, size_t pos, const char *word, size_t len,
                                tg_wordnet_forms *out);

#endif
