/* Words and numbers as Python sees them: str.split(), float() and \d, so that rule rewards agree
 * with RL4LMs to the bit.
 *
 * Text is UTF-8 of a given length and may hold NUL bytes; a broken byte is a character that is
 * neither space nor digit. */
#ifndef TG_ENV_PYTEXT_H
#define TG_ENV_PYTEXT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at text[0] and how many bytes it takes (at least 1); len > 0. */
uint32_t tg_py_char(const char *text, size_t len, size_t *bytes);
bool tg_py_isspace(uint32_t c); /* str.isspace() of one character */
int tg_py_decimal(uint32_t c);  /* 0..9 for any Unicode decimal digit (category Nd), else -1 */

/* Next word of str.split(): *pos moves behind it. False: no further word. */
bool tg_py_word(const char *text, size_t len, size_t *pos, const char **word, size_t *word_len);

/* float(word): also nan, inf, infinity, signs, 1_000, 2e3, digits of any script. *is_number false:
 * ValueError. word holds no spaces. Fails only when a very long word finds no memory. */
tg_status tg_py_float(const char *word, size_t len, bool *is_number, double *out,
                      tg_error *err) TG_MUST_CHECK;

#endif
