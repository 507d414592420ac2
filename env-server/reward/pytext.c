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
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/* All spaces beyond ASCII begin with one of these bytes. */
static bool may_be_space(unsigned char c) {
    return c < 0x80 ? tg_py_isspace(c) : c == 0xC2 || (c >= 0xE1 && c <= 0xE3);
}

uint64_t tg_py_marks(const char *text, size_t len) {
    uint64_t marks = 0;
    size_t n = len < 64 ? len : 64, i = 0;
#ifdef __SSE2__
    /* x - low <= span in unsigned bytes, where min(x - low, span) is x - low */
    static const char low[] = {0x09, 0x1C, (char)0xE1}, span[] = {0x0D - 0x09, ' ' - 0x1C, 2};
    for (; i + 16 <= n; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(text + i));
        __m128i any = _mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xC2));
        for (int k = 0; k < 3; k++) {
            __m128i over = _mm_sub_epi8(x, _mm_set1_epi8(low[k]));
            __m128i least = _mm_min_epu8(over, _mm_set1_epi8(span[k]));
            any = _mm_or_si128(any, _mm_cmpeq_epi8(least, over));
        }
        marks |= (uint64_t)(unsigned)_mm_movemask_epi8(any) << i;
    }
#endif
    for (; i < n; i++) marks |= (uint64_t)may_be_space((unsigned char)text[i]) << i;
    return marks;
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
