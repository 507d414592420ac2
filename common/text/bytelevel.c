/* The byte alphabet, and a scanner for GPT-2's regular expression.
 *
 * The scanner is written by hand, not run by PCRE2: it is several times faster on plain text, and
 * its classes come from unicode.c, which knows the Unicode version that Hugging Face uses. Pure
 * functions. */
#include "common/text/bytelevel.h"

#include "common/text/unicode.h"
#include "common/text/utf8.h"

static bool is_plain(uint32_t b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

/* Bytes that do not stand for themselves: 0..0x20, 0x7F..0xA0, 0xAD. */
uint32_t tg_bytelevel_char(unsigned char b) {
    if (is_plain(b)) return b;
    if (b <= 0x20) return 0x100u + b;
    return b == 0xAD ? 0x143u : 0x121u + (b - 0x7Fu);
}

int tg_bytelevel_byte(uint32_t cp) {
    if (cp < 0x100) return is_plain(cp) ? (int)cp : -1;
    if (cp <= 0x120) return (int)(cp - 0x100);
    if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

void tg_bytelevel_name(tg_buf *out, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) {
        char utf8[4];
        tg_buf_append(out, utf8, tg_utf8_encode(tg_bytelevel_char((unsigned char)bytes[i]), utf8));
    }
}

bool tg_bytelevel_bytes(tg_buf *out, const char *token, size_t len) {
    size_t start = out->len;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        unsigned n = tg_utf8_decode(token + i, len - i, &cp);
        int byte = n ? tg_bytelevel_byte(cp) : -1;
        if (byte < 0) {
            out->len = start;
            return false;
        }
        tg_buf_putc(out, (char)byte);
        i += n;
    }
    return !out->failed;
}

static tg_cp_class class_at(const char *s, unsigned *n) {
    return tg_unicode_class(tg_utf8_at(s, n));
}

/* End of the run of characters of one class that starts at pos. */
static size_t run_end(const char *s, size_t len, size_t pos, tg_cp_class class) {
    unsigned n;
    while (pos < len && class_at(s + pos, &n) == class) pos += n;
    return pos;
}

/* End of 's 't 're 've 'm 'll 'd at pos (an apostrophe), or pos. */
static size_t contraction_end(const char *s, size_t len, size_t pos) {
    if (len - pos < 2) return pos;
    char a = s[pos + 1], b = len - pos > 2 ? s[pos + 2] : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return pos + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return pos + 3;
    return pos;
}

/* A run of spaces leaves its last one to what follows, unless nothing follows or it is alone. */
static size_t space_end(const char *s, size_t len, size_t pos) {
    size_t last = pos, end = pos;
    unsigned n;
    while (end < len && class_at(s + end, &n) == TG_CP_SPACE) last = end, end += n;
    return end == len || last == pos ? end : last;
}

size_t tg_bytelevel_next(const char *s, size_t len, size_t pos) {
    if (s[pos] == '\'') {
        size_t end = contraction_end(s, len, pos);
        if (end > pos) return end;
    }
    unsigned n;
    size_t start = pos + (s[pos] == ' ' && pos + 1 < len);
    tg_cp_class class = class_at(s + start, &n);
    if (class == TG_CP_SPACE) return space_end(s, len, pos);
    return run_end(s, len, start + n, class);
}
