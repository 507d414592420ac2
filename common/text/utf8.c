/* UTF-8 decoding by the table of well-formed byte sequences (Unicode 15, table 3-7). Pure
 * functions. */
#include "common/text/utf8.h"

#include <string.h>

/* Well-formed second bytes for a lead byte: [lo, hi]; need is the whole length, 0 for a byte that
 * leads nothing. */
static unsigned lead(unsigned char b, unsigned char *lo, unsigned char *hi) {
    *lo = 0x80, *hi = 0xBF;
    if (b < 0x80) return 1;
    if (b < 0xC2) return 0;
    if (b < 0xE0) return 2;
    if (b < 0xF0) {
        if (b == 0xE0) *lo = 0xA0;
        if (b == 0xED) *hi = 0x9F;
        return 3;
    }
    if (b > 0xF4) return 0;
    if (b == 0xF0) *lo = 0x90;
    if (b == 0xF4) *hi = 0x8F;
    return 4;
}

/* Bytes at s that could begin a well-formed sequence (at least 1, len > 0); *whole says that they
 * are one. */
static unsigned maximal_part(const unsigned char *s, size_t len, bool *whole) {
    unsigned char lo, hi;
    unsigned need = lead(s[0], &lo, &hi);
    *whole = need == 1;
    if (need <= 1) return 1;
    unsigned n = 1;
    while (n < need && n < len && s[n] >= lo && s[n] <= hi) n++, lo = 0x80, hi = 0xBF;
    *whole = n == need;
    return n;
}

uint32_t tg_utf8_at(const char *text, unsigned *n) {
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return *n = 1, s[0];
    if (s[0] < 0xE0) return *n = 2, (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    if (s[0] < 0xF0)
        return *n = 3, (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    return *n = 4, (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 |
                       (uint32_t)(s[2] & 0x3F) << 6 | (s[3] & 0x3F);
}

unsigned tg_utf8_decode(const char *s, size_t len, uint32_t *cp) {
    if (!len) return 0;
    bool whole;
    unsigned n = maximal_part((const unsigned char *)s, len, &whole);
    if (!whole) return 0;
    *cp = tg_utf8_at(s, &n);
    return n;
}

unsigned tg_utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    unsigned n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    static const unsigned char mark[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (unsigned i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(mark[n] | cp);
    return n;
}

size_t tg_utf8_valid_prefix(const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0;
    while (i < len) {
        uint64_t word;
        while (len - i >= 8 && (memcpy(&word, s + i, 8), !(word & 0x8080808080808080u))) i += 8;
        if (i == len) break;
        bool whole;
        unsigned n = maximal_part(s + i, len - i, &whole);
        if (!whole) break;
        i += n;
    }
    return i;
}

size_t tg_utf8_count(const char *s, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += ((unsigned char)s[i] & 0xC0) != 0x80;
    return n;
}

static size_t append(tg_buf *out, const char *s, size_t len, bool end) {
    size_t used = 0;
    while (used < len) {
        size_t good = tg_utf8_valid_prefix(s + used, len - used);
        tg_buf_append(out, s + used, good);
        used += good;
        if (used == len) break;
        bool whole;
        unsigned char lo, hi;
        unsigned bad = maximal_part((const unsigned char *)s + used, len - used, &whole);
        if (!end && bad == len - used && lead((unsigned char)s[used], &lo, &hi) > bad) break;
        tg_buf_append(out, "\xEF\xBF\xBD", 3);
        used += bad;
    }
    return used;
}

void tg_utf8_append_lossy(tg_buf *out, const char *s, size_t len) {
    append(out, s, len, true);
}

size_t tg_utf8_append_known(tg_buf *out, const char *s, size_t len) {
    return append(out, s, len, false);
}
