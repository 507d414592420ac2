/* What the files of the Penn Treebank rules share: treebank.c (their order), treebank_quotes.c, treebank_marks.c and
 * treebank_contractions.c (the rules).
 *
 * Each rule is one pass from one array into the other; a rule whose characters do not occur is
 * passed over. The order is NLTK's: later rules see the spaces that earlier ones made. */
#ifndef TG_ENV_TREEBANK_IMPL_H
#define TG_ENV_TREEBANK_IMPL_H

#include "env-server/metric/treebank.h"

#include <string.h>

/* Both arrays are borrowed. */
typedef struct tg_treebank_pass {
    const uint32_t *c; /* source */
    size_t n;
    uint32_t *to; /* destination, with room for 4 n + 16 */
    size_t m;
    tg_nltk_rules rules;
} tg_treebank_pass;

static inline void tg_treebank_put(tg_treebank_pass *p, uint32_t c) {
    p->to[p->m++] = c;
}

static inline void tg_treebank_put_padded(tg_treebank_pass *p, uint32_t c) {
    tg_treebank_put(p, ' '), tg_treebank_put(p, c), tg_treebank_put(p, ' ');
}

static inline bool tg_treebank_is_one_of(uint32_t c, const char *set) {
    return c && c < 0x80 && strchr(set, (int)c);
}

/* (?i) of Python's re: also the letters that fold to i and s. lower is an ASCII letter or a mark. */
static inline bool tg_treebank_same_letter(uint32_t c, char lower) {
    if (c < 0x80) return (c >= 'A' && c <= 'Z' ? c + 32 : c) == (unsigned char)lower;
    return (lower == 'i' && (c == 0x130 || c == 0x131)) || (lower == 's' && c == 0x17F) ||
           (lower == 'k' && c == 0x212A);
}

static inline bool tg_treebank_matches(const uint32_t *c, size_t n, const char *word) {
    size_t k = strlen(word);
    if (k > n) return false;
    for (size_t i = 0; i < k; i++)
        if (!tg_treebank_same_letter(c[i], word[i])) return false;
    return true;
}

/* \b between c[i-1] and c[i]. */
static inline bool tg_treebank_is_boundary(const uint32_t *c, size_t n, size_t i,
                                           tg_nltk_rules rules) {
    bool before = i > 0 && tg_nltk_word(rules, c[i - 1]),
         after = i < n && tg_nltk_word(rules, c[i]);
    return before != after;
}

/* treebank_quotes.c: starting and ending quotes. */
void tg_treebank_open_quotes(tg_treebank_pass *p);
/* ^" becomes ``, then every `` gets its spaces. */
void tg_treebank_backticks(tg_treebank_pass *p);
void tg_treebank_quotes_behind_brackets(tg_treebank_pass *p);
void tg_treebank_apostrophes(tg_treebank_pass *p);
/* ([^'])'  with a space behind it. */
void tg_treebank_single_quotes(tg_treebank_pass *p);
void tg_treebank_short_endings(tg_treebank_pass *p);
void tg_treebank_long_endings(tg_treebank_pass *p);

/* treebank_marks.c: punctuation, parentheses and dashes. */
/* The final period: one that only closing marks and spaces follow, and no other period precedes.
 * wide: the first of NLTK's two rules, with curly quotes and with a space behind the period. */
void tg_treebank_final_period(tg_treebank_pass *p, bool wide);
void tg_treebank_commas(tg_treebank_pass *p);
void tg_treebank_ellipses(tg_treebank_pass *p);
void tg_treebank_symbols(tg_treebank_pass *p);
void tg_treebank_questions(tg_treebank_pass *p);
/* Stars, brackets, double dashes; a space around the whole; closing and double quotes; and (3.10)
 * every run of spaces becomes one. These rules do not touch each other. */
void tg_treebank_brackets_dashes_quotes(tg_treebank_pass *p);
void tg_treebank_collapse_spaces(tg_treebank_pass *p);

/* treebank_contractions.c */
typedef struct tg_treebank_contraction {
    const char *word;
    unsigned first; /* length of the first part */
    char kind;      /* 'b': word boundaries; 's': a space follows; 't': a space precedes */
} tg_treebank_contraction;

enum { TG_TREEBANK_CONTRACTIONS = 10 };
extern const tg_treebank_contraction tg_treebank_contractions[TG_TREEBANK_CONTRACTIONS];
void tg_treebank_split_contraction(tg_treebank_pass *p, const tg_treebank_contraction *k);

#endif
