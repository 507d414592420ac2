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

/* The words of str.split(), one after the other:
 *
 *     tg_py_walk walk = tg_py_words(text, len);
 *     while (tg_py_next(&walk, &word, &n)) ... */
typedef struct tg_py_walk {
    const char *text;
    size_t len, start, block; /* of the next word; of the next marks */
    uint64_t marks;           /* where white space may be in the block before */
} tg_py_walk;

static inline tg_py_walk tg_py_words(const char *text, size_t len) {
    return (tg_py_walk){.text = text, .len = len};
}

/* Bit i: text[i] is white space, or the first byte of a longer character that may be; i < 64, i < len. */
uint64_t tg_py_marks(const char *text, size_t len);

static inline bool tg_py_next(tg_py_walk *w, const char **word, size_t *word_len) {
    size_t begin, at, bytes;
    do {
        while (!w->marks && w->block < w->len) {
            w->marks = tg_py_marks(w->text + w->block, w->len - w->block);
            w->block += 64;
        }
        at = w->len, bytes = 0;
        if (w->marks) {
            at = w->block - 64 + (size_t)__builtin_ctzll(w->marks), bytes = 1;
            w->marks &= w->marks - 1;
            if ((unsigned char)w->text[at] >= 0x80 &&
                !tg_py_isspace(tg_py_char(w->text + at, w->len - at, &bytes)))
                continue;
        }
        begin = w->start, w->start = at + bytes;
        if (at > begin) {
            *word = w->text + begin, *word_len = at - begin;
            return true;
        }
    } while (at < w->len);
    return false;
}

/* float(word): also nan, inf, infinity, signs, 1_000, 2e3, digits of any script. *is_number false:
 * ValueError. word holds no spaces. Fails only when a very long word finds no memory. */
tg_status tg_py_float(const char *word, size_t len, bool *is_number, double *out,
                      tg_error *err) TG_MUST_CHECK;

#endif
