/* More of what Python says of characters and texts: \w, isupper(), islower() and lower().
 *
 * Characters are code points; a byte that is not UTF-8 is a character of its own (0xDC80..0xDCFF, as
 * Python's "surrogateescape" has it), without any property, and comes out as it went in. */
#ifndef TG_ENV_PYSTR_H
#define TG_ENV_PYSTR_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool tg_py_space(uint32_t c);   /* str.isspace() of one character */
bool tg_py_isword(uint32_t c);  /* \w: letters, numbers of every kind, underscore */
bool tg_py_isupper(uint32_t c); /* str.isupper() of one character */
bool tg_py_islower(uint32_t c);

/* The character at text[0] and its bytes (len > 0), with broken bytes escaped as above. */
uint32_t tg_py_point(const char *text, size_t len, size_t *bytes);
/* Writes at most 4 bytes and returns how many. */
unsigned tg_py_put(uint32_t c, char *out);

/* Appends str.lower(): full mapping, final sigma included. Failure is sticky in out. */
void tg_py_lower(tg_buf *out, const char *text, size_t len);

/* str.strip(): where the text begins; *len becomes its length. */
const char *tg_py_strip(const char *text, size_t *len);

#endif
