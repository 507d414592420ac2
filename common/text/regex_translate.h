/* Oniguruma's regular expressions (Ruby's syntax, Unicode 16) in PCRE2's syntax (inside of regex.c). */
#ifndef TG_TEXT_REGEX_TRANSLATE_H
#define TG_TEXT_REGEX_TRANSLATE_H

#include "common/base/buf.h"

/* Appends the translation. TG_UNSUPPORTED names what the two engines read differently and is not built; where names the
 * part for messages. */
tg_status tg_regex_translate(tg_buf *out, const char *pattern, const char *where,
                             tg_error *err) TG_MUST_CHECK;

#endif
