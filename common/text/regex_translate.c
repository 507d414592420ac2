/* One pass over the pattern. Classes are written out with the code points that newer Unicode versions have; what
 * means something else to PCRE2 is rewritten. Only what both engines read alike is copied. */
#include "common/text/regex_translate.h"

#include "common/text/unicode.h"
#include "common/text/utf8.h"

#include <stdio.h>
#include <string.h>

enum { MAX_GROUPS = 64 };

typedef struct translation {
    tg_buf *out;
    const char *where;
    tg_error *err;
    size_t atom; /* where the last thing that can be repeated starts in out */
    size_t group[MAX_GROUPS];
    size_t depth;
} translation;

static tg_status refuse(const translation *t, const char *what) {
    return tg_fail(t->err, TG_UNSUPPORTED,
                   "%s: a regular expression with %s is not built into this version", t->where,
                   what);
}

/* ---- classes ---- */

#define SPACES                                                                                     \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define NOT_SPACES                                                                                 \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                 \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

static void put_property(tg_buf *out, const char *name, size_t len) {
    const uint32_t *pairs;
    unsigned n;
    if (!tg_unicode_property(name, len, &pairs, &n)) return;
    if (len <= 2) tg_buf_printf(out, "\\p{%.*s}", (int)len, name);
    for (unsigned i = 0; i < n; i++)
        tg_buf_printf(out, "\\x{%x}-\\x{%x}", pairs[2 * i], pairs[2 * i + 1]);
}

static void put_word(tg_buf *out) {
    tg_buf_puts(out, "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}");
    put_property(out, "word", 4);
}

/* A class that an escape names, as it is written inside brackets. */
typedef struct class_escape {
    char letter; /* s, d, w, h or p */
    bool negated;
    const char *name; /* p */
    size_t len;
    size_t used; /* of the pattern */
} class_escape;

/* Is there a class escape at p (a backslash)? */
static bool read_class_escape(const char *p, class_escape *c) {
    *c = (class_escape){.used = 2};
    if (!p[1]) return false;
    if (strchr("sdwhSDWH", p[1])) {
        c->letter = (char)(p[1] | 0x20);
        c->negated = p[1] < 'a';
        return true;
    }
    if ((p[1] != 'p' && p[1] != 'P') || p[2] != '{') return false;
    c->letter = 'p';
    c->negated = p[1] == 'P';
    c->name = p + 3;
    if (*c->name == '^') c->name++, c->negated = !c->negated;
    const char *end = strchr(c->name, '}');
    if (!end) return false;
    c->len = (size_t)(end - c->name);
    c->used = (size_t)(end - p) + 1;
    return true;
}

static void put_class(tg_buf *out, const class_escape *c) {
    switch (c->letter) {
    case 's': tg_buf_puts(out, SPACES); return;
    case 'd': put_property(out, "Nd", 2); return;
    case 'w': put_word(out); return;
    case 'h': tg_buf_puts(out, "0-9a-fA-F"); return;
    default: put_property(out, c->name, c->len);
    }
}

static tg_status check_class(const translation *t, const class_escape *c) {
    const uint32_t *pairs;
    unsigned n;
    if (c->letter != 'p' || tg_unicode_property(c->name, c->len, &pairs, &n)) return TG_OK;
    char what[64];
    snprintf(what, sizeof what, "\\p{%.*s}", (int)(c->len < 40 ? c->len : 40), c->name);
    return refuse(t, what);
}

/* ---- escapes ---- */

static bool is_hex(const char *p, size_t n) {
    return strspn(p, "0123456789abcdefABCDEF") >= n;
}

/* An escape that names one character, or a place; both inside brackets and outside. */
static tg_status put_char_escape(translation *t, const char *p, bool in_class, size_t *used) {
    *used = 2;
    char c = p[1];
    if (!c)
        return tg_fail(t->err, TG_DATA, "%s: the regular expression ends with a backslash",
                       t->where);
    if (c == 'v') {
        tg_buf_puts(t->out, "\\x{b}");
    } else if (c == 'u' && is_hex(p + 2, 4)) {
        tg_buf_printf(t->out, "\\x{%.4s}", p + 2);
        *used = 6;
    } else if (c == 'x') {
        const char *end = p[2] == '{' ? strchr(p, '}') : NULL;
        size_t n = end ? (size_t)(end - p) + 1 : 2 + strspn(p + 2, "0123456789abcdefABCDEF");
        if (!end && n > 4) n = 4;
        if (n == 2) return refuse(t, "\\x without digits");
        tg_buf_append(t->out, p, n);
        *used = n;
    } else if (!in_class && (c == 'b' || c == 'B')) {
        /* A border of words by Oniguruma's \w. */
        tg_buf word = {0};
        put_word(&word);
        if (word.failed) return tg_fail_nomem(t->err, 0);
        tg_buf_printf(t->out,
                      c == 'b' ? "(?:(?<=[%s])(?![%s])|(?<![%s])(?=[%s]))"
                               : "(?:(?<=[%s])(?=[%s])|(?<![%s])(?![%s]))",
                      word.data, word.data, word.data, word.data);
        tg_buf_fini(&word);
    } else if ((unsigned char)c >= 0x80) {
        unsigned n;
        tg_utf8_at(p + 1, &n);
        tg_buf_append(t->out, p + 1, n);
        *used = 1 + n;
    } else if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z' && !strchr("nrtfaeAzZ", c)) ||
               (c >= '0' && c <= '9' && in_class)) {
        char what[8];
        snprintf(what, sizeof what, "\\%c", c);
        return refuse(t, what);
    } else {
        tg_buf_append(t->out, p, 2);
    }
    return TG_OK;
}

static tg_status put_escape(translation *t, const char *p, size_t *used) {
    class_escape c;
    t->atom = t->out->len;
    if (!read_class_escape(p, &c)) return put_char_escape(t, p, false, used);
    tg_status st = check_class(t, &c);
    tg_buf_puts(t->out, c.negated ? "[^" : "[");
    put_class(t->out, &c);
    tg_buf_putc(t->out, ']');
    *used = c.used;
    return st;
}

/* ---- brackets ---- */

/* One escape inside brackets. */
static tg_status put_inner_escape(translation *t, const char *p, size_t *used) {
    class_escape c;
    if (!read_class_escape(p, &c)) return put_char_escape(t, p, true, used);
    *used = c.used;
    tg_status st = check_class(t, &c);
    if (st != TG_OK) return st;
    if (c.negated && c.letter != 's') return refuse(t, "a negated class inside brackets");
    if (c.negated)
        tg_buf_puts(t->out, NOT_SPACES);
    else
        put_class(t->out, &c);
    return TG_OK;
}

/* [ … ]: brackets inside brackets are a union, so theirs are left out. */
static tg_status put_brackets(translation *t, const char *p, size_t *used) {
    const char *start = p;
    int depth = 1;
    t->atom = t->out->len;
    tg_buf_putc(t->out, *p++);
    if (*p == '^') tg_buf_putc(t->out, *p++);
    if (*p == ']') tg_buf_puts(t->out, "\\]"), p++; /* a bracket that comes first is a character */
    while (*p && depth) {
        size_t n = 1;
        tg_status st = TG_OK;
        if (*p == '\\') {
            st = put_inner_escape(t, p, &n);
        } else if (*p == '[') {
            if (p[1] == ':' || p[1] == '^') return refuse(t, "[: or [^ inside brackets");
            depth++;
        } else if (p[0] == '&' && p[1] == '&') {
            return refuse(t, "&& inside brackets");
        } else if (*p != ']' || --depth == 0) {
            tg_buf_putc(t->out, *p);
        }
        if (st != TG_OK) return st;
        p += n;
    }
    *used = (size_t)(p - start);
    return depth ? tg_fail(t->err, TG_DATA, "%s: the regular expression ends inside brackets",
                           t->where)
                 : TG_OK;
}

/* ---- groups and repeats ---- */

static tg_status open_group(translation *t, const char *p, size_t *used) {
    if (t->depth == MAX_GROUPS) return refuse(t, "groups nested so deep");
    if (p[1] == '*') return refuse(t, "(*");
    t->group[t->depth++] = t->out->len;
    *used = 1;
    tg_buf_putc(t->out, '(');
    if (p[1] != '?') return TG_OK;
    if (p[2] && strchr(":=!>", p[2])) {
        tg_buf_append(t->out, p + 1, 2);
        *used = 3;
        return TG_OK;
    }
    if (p[2] == '<' && (p[3] == '=' || p[3] == '!')) {
        tg_buf_append(t->out, p + 1, 3);
        *used = 4;
        return TG_OK;
    }
    size_t n = strspn(p + 2, "im-");
    if (p[2 + n] != ':' && p[2 + n] != ')') return refuse(t, "this kind of (?");
    tg_buf_putc(t->out, '?');
    for (size_t i = 0; i < n; i++) tg_buf_putc(t->out, p[2 + i] == 'm' ? 's' : p[2 + i]);
    *used = 2 + n;
    if (p[2 + n] == ':') tg_buf_putc(t->out, ':'), ++*used;
    return TG_OK;
}

/* Puts (?: … ) around the last atom and its repeat. */
static tg_status wrap_atom(translation *t) {
    size_t len = t->out->len - t->atom;
    if (!tg_buf_reserve(t->out, 4)) return tg_fail_nomem(t->err, 4);
    memmove(t->out->data + t->atom + 3, t->out->data + t->atom, len);
    memcpy(t->out->data + t->atom, "(?:", 3);
    t->out->len += 3;
    t->out->data[t->out->len] = 0;
    tg_buf_putc(t->out, ')');
    return TG_OK;
}

/* {n}, {n,}, {,m} or {n,m} at p; anything else is text. Ruby has no possessive {n,m}+: it repeats the repeat. */
static tg_status put_braces(translation *t, const char *p, size_t *used) {
    size_t a = strspn(p + 1, "0123456789"), comma = p[1 + a] == ',';
    size_t b = comma ? strspn(p + 2 + a, "0123456789") : 0, n = 2 + a + comma + b;
    if (p[n - 1] != '}' || !(a || b)) {
        t->atom = t->out->len;
        tg_buf_puts(t->out, "\\{");
        *used = 1;
        return TG_OK;
    }
    tg_buf_puts(t->out, a ? "{" : "{0");
    tg_buf_append(t->out, p + 1, n - 1);
    *used = n;
    bool again = p[n] == '+' || (p[n] == '?' && !comma);
    return again ? wrap_atom(t) : TG_OK;
}

static tg_status put_other(translation *t, const char *p, size_t *used) {
    unsigned n;
    tg_utf8_at(p, &n);
    if (!strchr("*+?|^$)", *p)) t->atom = t->out->len;
    if (*p == ')') {
        if (!t->depth)
            return tg_fail(t->err, TG_DATA, "%s: the regular expression has a ')' too many",
                           t->where);
        t->atom = t->group[--t->depth];
    }
    tg_buf_append(t->out, p, n);
    *used = n;
    return TG_OK;
}

tg_status tg_regex_translate(tg_buf *out, const char *p, const char *where, tg_error *err) {
    translation t = {.out = out, .where = where, .err = err};
    while (*p) {
        size_t used = 1;
        tg_status st;
        switch (*p) {
        case '\\': st = put_escape(&t, p, &used); break;
        case '[': st = put_brackets(&t, p, &used); break;
        case '(': st = open_group(&t, p, &used); break;
        case '{': st = put_braces(&t, p, &used); break;
        default: st = put_other(&t, p, &used);
        }
        if (st != TG_OK) return st;
        p += used;
    }
    return out->failed ? tg_fail_nomem(err, out->len) : TG_OK;
}
