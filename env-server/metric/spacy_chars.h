/* The characters that spaCy's English rules speak of, and the affixes they cut off. Private to spacy*.c. */
#ifndef TG_ENV_SPACY_CHARS_H
#define TG_ENV_SPACY_CHARS_H

#include "env-server/metric/spacy.h"

bool tg_spacy_alpha(uint32_t c, tg_spacy_rules rules);
bool tg_spacy_lower(uint32_t c, tg_spacy_rules rules); /* scripts without case are both */
bool tg_spacy_upper(uint32_t c, tg_spacy_rules rules);
bool tg_spacy_quote(uint32_t c, tg_spacy_rules rules);
bool tg_spacy_icon(uint32_t c);

/* How many characters of c[0 .. n) a prefix or suffix rule cuts off; 0: none. */
size_t tg_spacy_prefix(const uint32_t *c, size_t n, tg_spacy_rules rules);
size_t tg_spacy_suffix(const uint32_t *c, size_t n, tg_spacy_rules rules);
/* The next place at or behind `from` where a word is cut apart; false: none. */
bool tg_spacy_infix(const uint32_t *c, size_t n, size_t from, tg_spacy_rules rules, size_t *begin,
                    size_t *end);
bool tg_spacy_url(const uint32_t *c, size_t n, tg_spacy_rules rules);

/* The exceptions: stems with endings, see spacy_data.c. Lists are words between spaces; a '+' in an ending is
 * where it is cut. */
typedef struct tg_spacy_group {
    const char *stems, *endings;
    int only; /* a tg_spacy_rules, or -1: of both versions */
} tg_spacy_group;
extern const tg_spacy_group tg_spacy_groups[]; /* ends with NULL stems; stems also capitalised */
extern const char *const tg_spacy_whole[];     /* words that stay whole; ends with NULL */
extern const char *const tg_spacy_cut[];       /* words cut at '+'; ends with NULL */
extern const char *const tg_spacy_ordinary[];  /* what the groups make but is no exception */
extern const char *const tg_spacy_units;       /* between spaces */
extern const uint32_t tg_spacy_icons[];        /* pairs first, last */
extern const unsigned tg_spacy_n_icons;

#endif
