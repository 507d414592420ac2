/* UTF-8: one code point at a time, and text that is not UTF-8.
 *
 * Broken sequences are replaced as Python's bytes.decode('utf-8', 'replace') and Rust's
 * from_utf8_lossy do it: each maximal part of an ill-formed sequence becomes one U+FFFD (Unicode
 * 15, section 3.9, table 3-8). */
#ifndef TG_TEXT_UTF8_H
#define TG_TEXT_UTF8_H

#include "common/base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Length in bytes (1..4) of the code point at s, written to *cp; 0 when s[0..len) does not start
 * with one. */
unsigned tg_utf8_decode(const char *s, size_t len, uint32_t *cp);

/* The code point at s, which must be valid UTF-8 (no check); *n gets its length. */
uint32_t tg_utf8_at(const char *s, unsigned *n);

/* Writes cp (a valid scalar value) and returns its length. */
unsigned tg_utf8_encode(uint32_t cp, char out[4]);

/* How many bytes of s, from its start, are valid UTF-8. */
size_t tg_utf8_valid_prefix(const char *s, size_t len);

/* Code points in valid UTF-8. */
size_t tg_utf8_count(const char *s, size_t len);

/* Appends s to out with broken sequences replaced. */
void tg_utf8_append_lossy(tg_buf *out, const char *s, size_t len);

/* The same, but a sequence at the end that more bytes may complete is left; returns how many bytes were used. */
size_t tg_utf8_append_known(tg_buf *out, const char *s, size_t len);

#endif
