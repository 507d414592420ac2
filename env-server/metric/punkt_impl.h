/* What the files of the sentence splitter share.
 *
 *   punkt.c            what is known of English words
 *   punkt_tokens.c     the tokens around a possible end of a sentence, and whether it is one
 *   punkt_sentences.c  where those ends are, and the sentences between them */
#ifndef TG_ENV_PUNKT_IMPL_H
#define TG_ENV_PUNKT_IMPL_H

#include "common/base/map.h"
#include "env-server/metric/punkt.h"

#include <string.h>

/* What is known of a word; several may hold. */
enum {
    TG_PUNKT_ABBREVIATION = 1,
    TG_PUNKT_STARTER = 2, /* a frequent first word */
    TG_PUNKT_LOWER = 4,   /* seen in lower case */
    TG_PUNKT_STARTS = 8,  /* … and never capitalised inside a sentence */
    TG_PUNKT_BEGINS = 16, /* seen in lower case at a beginning, never capitalised */
};

struct tg_punkt {
    tg_map words;        /* type -> flags above */
    tg_map collocations; /* "typ\tnext" */
    tg_nltk_rules rules;
};

static inline bool tg_punkt_is_one_of(uint32_t c, const char *set) {
    return c && c < 0x80 && strchr(set, (int)c);
}

static inline bool tg_punkt_is_curly(const tg_punkt *p, uint32_t c) {
    return p->rules == TG_NLTK_CURRENT &&
           ((c >= 0x2018 && c <= 0x2019) || (c >= 0x201C && c <= 0x201D) || c == 0xAB || c == 0xBB);
}

static inline bool tg_punkt_is_non_word(const tg_punkt *p, uint32_t c) {
    return tg_punkt_is_one_of(c, ")\";}]*:@'({[?!") || tg_punkt_is_curly(p, c);
}

static inline bool tg_punkt_is_closing(const tg_punkt *p, uint32_t c) {
    return tg_punkt_is_one_of(c, "\"')]}") || tg_punkt_is_curly(p, c);
}

static inline bool tg_punkt_is_space(const tg_punkt *p, uint32_t c) {
    return tg_nltk_space(p->rules, c);
}

static inline bool tg_punkt_is_end(uint32_t c) {
    return c == '.' || c == '?' || c == '!';
}

/* Is there a sentence break in c[0 .. n) before its last token? The tokens are in the work space of s. */
tg_status tg_punkt_has_break(const tg_punkt *p, const uint32_t *c, size_t n, tg_sentences *s,
                             bool *out, tg_error *err) TG_MUST_CHECK;

#endif
