/* A string costs no more memory than a name may have; anything that is not of the form is refused where it stands, with the byte position. */
#include "common/nn/st_cursor.h"

#include "common/base/check.h"
#include "common/nn/safetensors.h"

#include <string.h>

tg_status tg_st_bad(tg_st_cursor *c, const char *what) {
    return tg_fail(c->err, TG_DATA, "header byte %zu: %s", (size_t)(c->at - c->text), what);
}

void tg_st_skip_space(tg_st_cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

bool tg_st_accept(tg_st_cursor *c, char wanted) {
    tg_st_skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

bool tg_st_key_is(const tg_st_cursor *c, const char *name) {
    return c->key.len == strlen(name) && !memcmp(c->key.data, name, c->key.len);
}

static int hex4(const char *p) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char ch = p[i];
        int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                    : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                    : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                             : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Metadata may be long, and is read for its form alone. */
static void keep(tg_st_cursor *c, const char *text, size_t len) {
    if (c->key.len > TG_ST_MAX_NAME) return;
    tg_buf_append(&c->key, text, TG_MIN(len, TG_ST_MAX_NAME + 1 - c->key.len));
}

static void put_utf8(tg_buf *b, unsigned cp) {
    if (cp < 0x80) {
        tg_buf_putc(b, (char)cp);
    } else if (cp < 0x800) {
        tg_buf_putc(b, (char)(0xC0 | cp >> 6));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    } else if (cp < 0x10000) {
        tg_buf_putc(b, (char)(0xE0 | cp >> 12));
        tg_buf_putc(b, (char)(0x80 | (cp >> 6 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    } else {
        tg_buf_putc(b, (char)(0xF0 | cp >> 18));
        tg_buf_putc(b, (char)(0x80 | (cp >> 12 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp >> 6 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    }
}

/* \uXXXX, with the second half of a surrogate pair when there is one. c->at is behind the u. */
static tg_status read_unicode_escape(tg_st_cursor *c) {
    if (c->end - c->at < 4) return tg_st_bad(c, "the text ends inside \\u");
    int high = hex4(c->at);
    if (high < 0) return tg_st_bad(c, "bad \\u escape");
    c->at += 4;
    unsigned cp = (unsigned)high;
    if (cp >= 0xD800 && cp < 0xDC00) {
        int low = c->end - c->at >= 6 && c->at[0] == '\\' && c->at[1] == 'u' ? hex4(c->at + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return tg_st_bad(c, "half a surrogate pair");
        c->at += 6;
        cp = 0x10000 + ((cp - 0xD800) << 10) + ((unsigned)low - 0xDC00);
    } else if (cp >= 0xDC00 && cp < 0xE000) {
        return tg_st_bad(c, "half a surrogate pair");
    }
    if (c->key.len <= TG_ST_MAX_NAME) put_utf8(&c->key, cp);
    return TG_OK;
}

static tg_status read_escape(tg_st_cursor *c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->at == c->end) return tg_st_bad(c, "the text ends inside a string");
    char ch = *c->at++;
    if (ch == 'u') return read_unicode_escape(c);
    const char *hit = ch ? strchr(from, ch) : NULL;
    if (!hit) return tg_st_bad(c, "unknown escape");
    keep(c, &to[hit - from], 1);
    return TG_OK;
}

tg_status tg_st_read_string(tg_st_cursor *c) {
    tg_buf_reset(&c->key);
    if (!tg_st_accept(c, '"')) return tg_st_bad(c, "expected a string");
    for (;;) {
        const char *run = c->at;
        while (c->at < c->end && *c->at != '"' && *c->at != '\\' && (unsigned char)*c->at >= 32)
            c->at++;
        keep(c, run, (size_t)(c->at - run));
        if (c->at == c->end) return tg_st_bad(c, "the text ends inside a string");
        char ch = *c->at++;
        if (ch == '"') break;
        if (ch != '\\') return tg_st_bad(c, "control character in a string");
        tg_status st = read_escape(c);
        if (st != TG_OK) return st;
    }
    tg_buf_append(&c->key, "", 0);
    if (c->key.failed || !c->key.data) return tg_fail_nomem(c->err, c->key.len + 1);
    return TG_OK;
}

/* A non-negative integer below 2^62. */
static tg_status read_number(tg_st_cursor *c, int64_t *out) {
    tg_st_skip_space(c);
    const char *first = c->at;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (value > (INT64_MAX >> 1) / 10 - 9) return tg_st_bad(c, "number too large");
        value = value * 10 + (*c->at - '0');
    }
    if (c->at == first) return tg_st_bad(c, "expected a non-negative integer");
    if (*first == '0' && c->at - first > 1) return tg_st_bad(c, "number with a leading zero");
    *out = value;
    return TG_OK;
}

tg_status tg_st_read_numbers(tg_st_cursor *c, int64_t *out, int max, int *n) {
    *n = 0;
    if (!tg_st_accept(c, '[')) return tg_st_bad(c, "expected a list of numbers");
    if (tg_st_accept(c, ']')) return TG_OK;
    do {
        if (*n == max) return tg_st_bad(c, "too many numbers in the list");
        tg_status st = read_number(c, &out[(*n)++]);
        if (st != TG_OK) return st;
    } while (tg_st_accept(c, ','));
    return tg_st_accept(c, ']') ? TG_OK : tg_st_bad(c, "expected , or ]");
}
