/* The byte-level alphabet and pre-tokenisation of GPT-2.
 *
 * Every byte has a printable character: '!'..'~', U+00A1..U+00AC and U+00AE..U+00FF stand for
 * themselves, the other 68 bytes in order for U+0100, U+0101 … (so a space is U+0120, "Ġ").
 * Vocabularies are written in that alphabet. We encode raw bytes and translate only names. */
#ifndef TG_TEXT_BYTELEVEL_H
#define TG_TEXT_BYTELEVEL_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point that stands for a byte. */
uint32_t tg_bytelevel_char(unsigned char byte);
/* The byte a code point stands for; -1: none. */
int tg_bytelevel_byte(uint32_t cp);

/* Appends the token that stands for these bytes. */
void tg_bytelevel_name(tg_buf *out, const char *bytes, size_t len);
/* Appends the bytes that a token stands for. False, and nothing appended, when a character is
 * outside the alphabet. */
bool tg_bytelevel_bytes(tg_buf *out, const char *token, size_t len);

/* End of the piece that starts at pos (< len), as GPT-2's regular expression cuts valid UTF-8:
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * Pieces cover the text without gaps. */
size_t tg_bytelevel_next(const char *s, size_t len, size_t pos);

#endif
