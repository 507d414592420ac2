/* Character properties come from utf8proc, with the few that it does not have in tables. Stateless:
 * any thread. */
#include "env-server/metric/pystr.h"

#include "common/text/unicode.h"
#include "common/text/utf8.h"
#include "env-server/reward/pytext.h"

#include <string.h>
#include <utf8proc.h>

enum { CAPITAL_SIGMA = 0x3A3, SMALL_SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2, DOTTED_I = 0x130 };

/* Other_Uppercase and Other_Lowercase of the Unicode Character Database. */
static const uint32_t other_upper[] = {0x2160,  0x216F,  0x24B6,  0x24CF,  0x1F130,
                                       0x1F149, 0x1F150, 0x1F169, 0x1F170, 0x1F189};
static const uint32_t other_lower[] = {
    0xAA,    0xAA,    0xBA,    0xBA,    0x2B0,   0x2B8,   0x2C0,   0x2C1,  0x2E0,  0x2E4,
    0x345,   0x345,   0x37A,   0x37A,   0x1D2C,  0x1D6A,  0x1D78,  0x1D78, 0x1D9B, 0x1DBF,
    0x2071,  0x2071,  0x207F,  0x207F,  0x2090,  0x209C,  0x2170,  0x217F, 0x24D0, 0x24E9,
    0x2C7C,  0x2C7D,  0xA69C,  0xA69D,  0xA770,  0xA770,  0xA7F8,  0xA7F9, 0xAB5C, 0xAB5F,
    0x10780, 0x10780, 0x10783, 0x10785, 0x10787, 0x107B0, 0x107B2, 0x107BA};
/* Characters of words with a dot or quote inside (Word_Break MidLetter, MidNumLet, Single_Quote). */
static const uint32_t mid_letter[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                      0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                      0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};

#define IN(table, c) tg_unicode_in_ranges(table, sizeof table / sizeof *table / 2, c)

bool tg_py_space(uint32_t c) {
    return c < 0x80 ? (c >= 9 && c <= 13) || (c >= 28 && c <= 32) : tg_py_isspace(c);
}

bool tg_py_isword(uint32_t c) {
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    if (c >= 0xD800 && c < 0xE000) return false;
    tg_cp_class k = tg_unicode_class(c);
    return k == TG_CP_LETTER || k == TG_CP_NUMBER;
}

static int category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

bool tg_py_isupper(uint32_t c) {
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    return category(c) == UTF8PROC_CATEGORY_LU || IN(other_upper, c);
}

bool tg_py_islower(uint32_t c) {
    if (c < 0x80) return c >= 'a' && c <= 'z';
    return category(c) == UTF8PROC_CATEGORY_LL || IN(other_lower, c);
}

uint32_t tg_py_point(const char *text, size_t len, size_t *bytes) {
    unsigned char first = (unsigned char)*text;
    *bytes = 1;
    if (first < 0x80) return first;
    uint32_t c;
    unsigned n = tg_utf8_decode(text, len, &c);
    if (!n) return 0xDC00u + first;
    *bytes = n;
    return c;
}

unsigned tg_py_put(uint32_t c, char *out) {
    if (c >= 0xDC80 && c <= 0xDCFF) {
        *out = (char)(c - 0xDC00);
        return 1;
    }
    return tg_utf8_encode(c, out);
}

static bool is_cased(uint32_t c) {
    return tg_py_isupper(c) || tg_py_islower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

static bool is_case_ignorable(uint32_t c) {
    for (size_t i = 0; i < sizeof mid_letter / sizeof *mid_letter; i++)
        if (mid_letter[i] == c) return true;
    int k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK;
}

/* Unicode's Final_Sigma condition: a cased letter before, none behind. */
static bool is_final(const char *text, size_t at, size_t after, size_t len) {
    uint32_t c = 0;
    size_t i = at, n;
    for (;;) {
        if (i == 0) return false;
        do i--;
        while (i > 0 && ((unsigned char)text[i] & 0xC0) == 0x80);
        c = tg_py_point(text + i, at - i, &n);
        if (!is_case_ignorable(c)) break;
    }
    if (!is_cased(c)) return false;
    for (i = after; i < len; i += n) {
        c = tg_py_point(text + i, len - i, &n);
        if (!is_case_ignorable(c)) return !is_cased(c);
    }
    return true;
}

void tg_py_lower(tg_buf *out, const char *text, size_t len) {
    size_t at = 0, n;
    while (at < len) {
        size_t plain = at;
        while (plain < len && (unsigned char)text[plain] < 0x80) plain++;
        char *to = tg_buf_reserve(out, plain - at + 8);
        if (!to) return;
        for (; at < plain; at++) {
            char c = text[at];
            *to++ = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
            out->len++;
        }
        if (at == len) break;
        uint32_t c = tg_py_point(text + at, len - at, &n);
        if (c == DOTTED_I) {
            memcpy(to, "i\xCC\x87", 3); /* the one character whose lower case is two */
            out->len += 3;
        } else {
            if (c == CAPITAL_SIGMA)
                c = is_final(text, at, at + n, len) ? FINAL_SIGMA : SMALL_SIGMA;
            else if (c < 0xD800 || c >= 0xE000)
                c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
            out->len += tg_py_put(c, to);
        }
        at += n;
    }
}

const char *tg_py_strip(const char *text, size_t *len) {
    size_t n = 0;
    while (*len && tg_py_space(tg_py_point(text, *len, &n))) text += n, *len -= n;
    for (size_t at = *len; at > 0;) {
        do at--;
        while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
        if (!tg_py_space(tg_py_point(text + at, *len - at, &n)) || at + n != *len) break;
        *len = at;
    }
    return text;
}
