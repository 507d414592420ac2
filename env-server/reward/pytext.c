/* Python's str.split() and float() on UTF-8. Pure functions, any thread.
 *
 * float() (CPython's PyFloat_FromString) maps decimal digits of every script to ASCII, drops
 * underscores that stand between two digits, and then accepts: [sign] (digits [. [digits]] | .
 * digits) [(e|E) [sign] digits], or [sign] inf, infinity, nan. */
#include "env-server/reward/pytext.h"

#include "common/base/alloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utf8proc.h>

enum { NOT_A_CHAR = 0xFFFD };

uint32_t tg_py_char(const char *text, size_t len, size_t *bytes) {
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        *bytes = 1;
        return first;
    }
    utf8proc_int32_t c;
    utf8proc_ssize_t n =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)(len < 4 ? len : 4), &c);
    if (n <= 0) {
        *bytes = 1;
        return NOT_A_CHAR;
    }
    *bytes = (size_t)n;
    return (uint32_t)c;
}

/* Bidirectional class WS, B or S, or category Zs. */
bool tg_py_isspace(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Decimal digits stand in runs of whole decades starting with a zero (a stability rule of Unicode),
 * so the value is the distance to the run's start modulo 10. */
int tg_py_decimal(uint32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9' ? (int)(c - '0') : -1;
    if (utf8proc_category((utf8proc_int32_t)c) != UTF8PROC_CATEGORY_ND) return -1;
    uint32_t start = c;
    while (utf8proc_category((utf8proc_int32_t)(start - 1)) == UTF8PROC_CATEGORY_ND) start--;
    return (int)((c - start) % 10);
}

bool tg_py_word(const char *text, size_t len, size_t *pos, const char **word, size_t *word_len) {
    size_t at = *pos, n;
    while (at < len && tg_py_isspace(tg_py_char(text + at, len - at, &n))) at += n;
    size_t start = at;
    while (at < len && !tg_py_isspace(tg_py_char(text + at, len - at, &n))) at += n;
    *pos = at;
    *word = text + start, *word_len = at - start;
    return at > start;
}

/* Writes the word in ASCII, without its underscores. False: not a number for certain. */
static bool to_ascii(const char *word, size_t len, char *out) {
    char previous = 0;
    size_t n;
    for (size_t at = 0; at < len; at += n) {
        uint32_t c = tg_py_char(word + at, len - at, &n);
        int digit = tg_py_decimal(c);
        if (digit < 0 && (c == 0 || c >= 0x80)) return false;
        char a = digit >= 0 ? (char)('0' + digit) : (char)c;
        bool is_digit = digit >= 0, after_digit = previous >= '0' && previous <= '9';
        if (a == '_' && !after_digit) return false;
        if (previous == '_' && !is_digit) return false;
        if (a != '_') *out++ = a;
        previous = a;
    }
    *out = 0;
    return previous != '_';
}

static const char *skip_digits(const char *p, bool *any) {
    while (*p >= '0' && *p <= '9') p++, *any = true;
    return p;
}

static bool is_float(const char *p) {
    if (*p == '+' || *p == '-') p++;
    if (!strcasecmp(p, "inf") || !strcasecmp(p, "infinity") || !strcasecmp(p, "nan")) return true;
    bool digits = false;
    p = skip_digits(p, &digits);
    if (*p == '.') p = skip_digits(p + 1, &digits);
    if (!digits) return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        bool exponent = false;
        p = skip_digits(p, &exponent);
        if (!exponent) return false;
    }
    return *p == 0;
}

tg_status tg_py_float(const char *word, size_t len, bool *is_number, double *out, tg_error *err) {
    /* Most words are no numbers: the first byte decides without a copy. */
    unsigned char first = len ? (unsigned char)word[0] : 0;
    *is_number = false;
    if (!len || !first || (first < 0x80 && !isdigit(first) && !strchr("+-.iInN", first)))
        return TG_OK;
    char small[128];
    char *ascii = len < sizeof small ? small : tg_alloc(len + 1);
    if (!ascii) return tg_fail_nomem(err, len + 1);
    *is_number = to_ascii(word, len, ascii) && is_float(ascii);
    /* The grammar above is a subset of strtod's; no locale is ever set. */
    if (*is_number) *out = strtod(ascii, NULL);
    if (ascii != small) tg_free(ascii);
    return TG_OK;
}
