/* Character classes as Hugging Face's regular expressions see them (Unicode 16).
 *
 * utf8proc gives the categories; the letters, numbers and marks that Unicode gained after the
 * version in Debian's utf8proc (15.0) are listed in unicode.c, so that answers do not depend on the
 * installed library. */
#ifndef TG_TEXT_UNICODE_H
#define TG_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The three classes that pre-tokenisers ask for are disjoint. */
typedef enum tg_cp_class {
    TG_CP_OTHER,
    TG_CP_LETTER, /* \p{L} */
    TG_CP_NUMBER, /* \p{N} */
    TG_CP_SPACE   /* \s: the White_Space property */
} tg_cp_class;

tg_cp_class tg_unicode_class(uint32_t cp);
/* Rust's char::is_numeric, which the Digits pre-tokenizer asks: \p{N} of Unicode 17. */
bool tg_unicode_is_numeric(uint32_t cp);
bool tg_unicode_is_word(
    uint32_t cp); /* Rust's \w: alphabetic, marks, decimal digits, connectors, joiners */

/* Classes that Hugging Face's code asks of other tables (unicode_tables.c, made by asking it). */
bool tg_unicode_is_control(uint32_t cp);     /* clean_text of BERT drops it (besides NUL, U+FFFD) */
bool tg_unicode_is_nonspacing(uint32_t cp);  /* strip_accents of BERT drops it */
bool tg_unicode_is_combining(uint32_t cp);   /* StripAccents drops it */
bool tg_unicode_is_punctuation(uint32_t cp); /* ASCII punctuation and \p{P} */
/* Lower case of one code point; U+0130 (two code points) is left as it is. */
uint32_t tg_unicode_lower(uint32_t cp);

/* Is cp in one of n sorted, disjoint ranges, given as pairs first, last? */
bool tg_unicode_in_ranges(const uint32_t *pairs, unsigned n, uint32_t cp);

/* Code points that a property of a regular expression (a general category, "Han", or "word" for Oniguruma's \w) has besides those
 * of Unicode 14, as pairs first, last. "word" besides L, M, Nd, Nl and Pc; "Han" has all of its own. False: not known. */
bool tg_unicode_property(const char *name, size_t len, const uint32_t **pairs, unsigned *n);

/* The script as the UnicodeScripts pre-tokenizer sees it: equal numbers are equal scripts, 0 goes with any. */
unsigned tg_unicode_script(uint32_t cp);

#endif
