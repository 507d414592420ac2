/* Reading and running a precompiled map. Every index that comes from the file is checked before it
 * is used. Read-only after reading. */
#include "common/text/charsmap.h"

#include "common/base/alloc.h"
#include "common/text/nfc.h"
#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <string.h>
#include <utf8proc.h>

struct tg_charsmap {
    uint32_t *unit;
    size_t n_units;
    char *text; /* replacements, each ends with a NUL; one more NUL at the end */
    size_t text_len;
    bool plain[128]; /* ASCII characters that have no replacement */
};

static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes whole groups of four; false on any other character or length. */
static bool decode(const char *s, tg_buf *out) {
    size_t len = strlen(s);
    if (len % 4) return false;
    for (size_t i = 0; i < len; i += 4) {
        size_t pad = 0;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            bool is_pad = s[i + k] == '=' && i + 4 == len && k >= 2;
            int d = is_pad ? 0 : digit(s[i + k]);
            if (d < 0 || (pad && !is_pad)) return false;
            pad += is_pad;
            v = v << 6 | (uint32_t)d;
        }
        char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        tg_buf_append(out, three, 3 - pad);
    }
    return true;
}

static uint32_t little(const char *p) {
    const unsigned char *u = (const unsigned char *)p;
    return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

/* Walks the keys that s starts with: the replacement of the shortest, or of the longest; NULL: none. A zero byte ends a
 * key. */
static const char *walk(const tg_charsmap *m, const char *s, size_t len, bool longest,
                        size_t *used) {
    if (!m->n_units) return NULL;
    const char *best = NULL;
    uint32_t unit = m->unit[0];
    size_t pos = (unit >> 10) << ((unit & 512) >> 6);
    for (size_t i = 0; i < len && s[i]; i++) {
        pos ^= (unsigned char)s[i];
        if (pos >= m->n_units) break;
        unit = m->unit[pos];
        if ((unit & 0x800000FFu) != (unsigned char)s[i]) break;
        pos ^= (size_t)(unit >> 10) << ((unit & 512) >> 6);
        if (!(unit >> 8 & 1)) continue;
        size_t value = pos < m->n_units ? m->unit[pos] & 0x7FFFFFFFu : SIZE_MAX;
        bool inside = value < m->text_len && ((unsigned char)m->text[value] & 0xC0) != 0x80;
        if (!longest) return inside ? m->text + value : NULL;
        if (inside) best = m->text + value, *used = i + 1;
    }
    return best;
}

static const char *find(const tg_charsmap *m, const char *s, size_t len) {
    return walk(m, s, len, false, NULL);
}

const char *tg_charsmap_longest(const tg_charsmap *m, const char *s, size_t len, size_t *used) {
    return walk(m, s, len, true, used);
}

static tg_status load(tg_charsmap *m, const tg_buf *raw, const char *where, tg_error *err) {
    uint32_t bytes = raw->len >= 4 ? little(raw->data) : 0;
    if (raw->len < 4 || bytes % 4 || bytes > raw->len - 4)
        return tg_fail(err, TG_DATA,
                       "%s.precompiled_charsmap: a trie of %u bytes does not fit %zu bytes", where,
                       (unsigned)bytes, raw->len);
    m->n_units = bytes / 4;
    m->text_len = raw->len - 4 - bytes;
    m->unit = tg_alloc_array(m->n_units + 1, sizeof *m->unit);
    m->text = tg_alloc_array(m->text_len + 1, 1);
    if (!m->unit || !m->text) return tg_fail_nomem(err, raw->len);
    for (size_t i = 0; i < m->n_units; i++) m->unit[i] = little(raw->data + 4 + 4 * i);
    memcpy(m->text, raw->data + 4 + bytes, m->text_len);
    m->text[m->text_len] = 0;
    if (tg_utf8_valid_prefix(m->text, m->text_len) != m->text_len)
        return tg_fail(err, TG_DATA, "%s.precompiled_charsmap: a replacement is not UTF-8", where);
    for (int c = 0; c < 128; c++) m->plain[c] = !find(m, (char[]){(char)c}, 1);
    return TG_OK;
}

tg_status tg_charsmap_read(tg_charsmap **out, const char *base64, const char *where,
                           tg_error *err) {
    *out = tg_alloc(sizeof **out);
    if (!*out) return tg_fail_nomem(err, sizeof **out);
    tg_buf raw = {0};
    bool ok = decode(base64, &raw);
    tg_status st = TG_OK;
    if (raw.failed)
        st = tg_fail_nomem(err, raw.len);
    else if (!ok)
        st = tg_fail(err, TG_DATA, "%s.precompiled_charsmap: expected base64", where);
    if (st == TG_OK) st = load(*out, &raw, where, err);
    tg_buf_fini(&raw);
    if (st != TG_OK) tg_charsmap_destroy(out);
    return st;
}

void tg_charsmap_destroy(tg_charsmap **m) {
    if (!*m) return;
    tg_free((*m)->unit);
    tg_free((*m)->text);
    tg_free(*m);
    *m = NULL;
}

/* Marks that Unicode gained after utf8proc's 15.0, up to 17 (and some of 15.0 itself): they join what stands before. */
static const uint32_t late_marks[] = {
    0x897,   0x897,   0xCF3,   0xCF3,   0xECE,   0xECE,   0x1ACF,  0x1ADD,  0x1AE0,
    0x1AEB,  0x10D69, 0x10D6D, 0x10EFA, 0x10EFF, 0x11241, 0x11241, 0x113B8, 0x113C0,
    0x113C2, 0x113C2, 0x113C5, 0x113C5, 0x113C7, 0x113CA, 0x113CC, 0x113D0, 0x113D2,
    0x113D2, 0x113E1, 0x113E2, 0x11B60, 0x11B67, 0x11F00, 0x11F01, 0x11F03, 0x11F03,
    0x11F34, 0x11F3A, 0x11F3E, 0x11F42, 0x11F5A, 0x11F5A, 0x13440, 0x13440, 0x13447,
    0x13455, 0x1611E, 0x1612F, 0x1E08F, 0x1E08F, 0x1E4EC, 0x1E4EF, 0x1E5EE, 0x1E5EF,
    0x1E6E3, 0x1E6E3, 0x1E6E6, 0x1E6E6, 0x1E6EE, 0x1E6EF, 0x1E6F5, 0x1E6F5};

/* The code point that utf8proc knows to behave like this one. */
static utf8proc_int32_t known_mark(uint32_t cp) {
    bool late = cp >= 0x897 &&
                tg_unicode_in_ranges(late_marks, sizeof late_marks / sizeof late_marks[0] / 2, cp);
    return (utf8proc_int32_t)(late ? 0x301 : cp);
}

/* End of the grapheme cluster at pos. */
static size_t cluster_end(tg_view in, size_t pos) {
    unsigned n;
    utf8proc_int32_t state = 0, prev = known_mark(tg_utf8_at(in.s + pos, &n));
    for (pos += n; pos < in.len; pos += n) {
        utf8proc_int32_t next = known_mark(tg_utf8_at(in.s + pos, &n));
        if (utf8proc_grapheme_break_stateful(prev, next, &state)) break;
        prev = next;
    }
    return pos;
}

typedef struct list {
    tg_point *p;
    size_t n, cap;
} list;

static bool push(list *l, uint32_t cp, int32_t change) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        tg_point *p = tg_realloc_array(l->p, cap, sizeof *p);
        if (!p) return false;
        l->p = p, l->cap = cap;
    }
    l->p[l->n++] = (tg_point){.cp = cp, .change = change};
    return true;
}

/* Puts a replacement for `old` characters: surplus ones are inserted, missing ones are swallowed by
 * the last point there is (by none at the very start, as in Hugging Face). */
static bool put(list *l, const char *text, size_t old) {
    size_t len = strlen(text), count = tg_utf8_count(text, len), k = 0;
    for (size_t i = 0; i < len; k++) {
        unsigned n;
        uint32_t cp = tg_utf8_at(text + i, &n);
        if (!push(l, cp, k >= old)) return false;
        i += n;
    }
    if (count < old && l->n) l->p[l->n - 1].change -= (int32_t)(old - count);
    return true;
}

static bool put_chars(const tg_charsmap *m, list *l, tg_view in, size_t pos, size_t end,
                      bool *changed) {
    while (pos < end) {
        unsigned n;
        uint32_t cp = tg_utf8_at(in.s + pos, &n);
        const char *text = find(m, in.s + pos, n);
        if (text) *changed = true;
        if (text ? !put(l, text, 1) : !push(l, cp, 0)) return false;
        pos += n;
    }
    return true;
}

static bool is_plain(const tg_charsmap *m, char c) {
    return !((unsigned char)c & 0x80) && m->plain[(unsigned char)c];
}

/* An ASCII character that keeps itself, before another ASCII character: its own cluster. */
static bool is_alone(const tg_charsmap *m, tg_view in, size_t pos) {
    return is_plain(m, in.s[pos]) && in.s[pos] != '\r' &&
           (pos + 1 == in.len || !((unsigned char)in.s[pos + 1] & 0x80));
}

bool tg_charsmap_run(const tg_charsmap *m, tg_point **points, size_t *cap, tg_view in,
                     tg_aligned *out, bool *changed) {
    size_t pos = 0;
    while (pos < in.len && is_alone(m, in, pos)) pos++;
    if (pos == in.len) return true;
    list l = {*points, 0, *cap};
    bool ok = true;
    for (size_t i = 0; i < pos && ok; i++) ok = push(&l, (unsigned char)in.s[i], 0);
    while (pos < in.len && ok) {
        if (is_alone(m, in, pos)) {
            ok = push(&l, (unsigned char)in.s[pos++], 0);
            continue;
        }
        size_t end = cluster_end(in, pos);
        const char *text = end - pos < 6 ? find(m, in.s + pos, end - pos) : NULL;
        if (text) {
            *changed = true;
            ok = put(&l, text, tg_utf8_count(in.s + pos, end - pos));
        } else {
            ok = put_chars(m, &l, in, pos, end, changed);
        }
        pos = end;
    }
    *points = l.p, *cap = l.cap;
    return ok && (!*changed || tg_points_emit(l.p, l.n, in, out));
}
