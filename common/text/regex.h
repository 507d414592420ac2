/* Regular expressions of tokenizer.json files (Oniguruma's syntax, Unicode 16 classes) run by PCRE2
 * with its JIT.
 *
 * The pattern is translated (regex_translate.h): classes get the code points of Unicode 16, so that matches do not
 * depend on the Unicode version of the installed PCRE2. What is not built is refused by name. */
#ifndef TG_TEXT_REGEX_H
#define TG_TEXT_REGEX_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_regex tg_regex;

/* literal: the pattern is plain text. where names the part for messages. */
tg_status tg_regex_create(tg_regex **out, const char *pattern, bool literal, const char *where,
                          tg_error *err) TG_MUST_CHECK;
void tg_regex_destroy(tg_regex **r);

/* The first match at or after pos in valid UTF-8: *start and *end, or both len when there is none.
 * Empty matches are passed over. *match is work space of the calling thread: NULL at first, ended
 * with tg_regex_match_destroy. */
tg_status tg_regex_find(const tg_regex *r, void **match, const char *s, size_t len, size_t pos,
                        size_t *start, size_t *end, tg_error *err) TG_MUST_CHECK;
void tg_regex_match_destroy(void **match);

#endif
