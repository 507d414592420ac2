/* Translation from Oniguruma's syntax to PCRE2's, and matching. A compiled expression is read-only;
 * what a match changes is the caller's work space. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/text/regex.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/text/unicode.h"

#include <pcre2.h>
#include <string.h>

struct tg_regex {
    pcre2_code *code;
    char *literal; /* plain text instead of code */
    size_t literal_len;
};

static const char spaces[] =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";

/* What \p{L}, \p{N} or \s is inside brackets. */
static void put_class(tg_buf *out, char which) {
    if (which == 's') {
        tg_buf_puts(out, spaces);
        return;
    }
    tg_buf_printf(out, "\\p{%c}", which);
    unsigned n;
    const uint32_t *pairs = tg_unicode_added(which, &n);
    for (unsigned i = 0; i < n; i++)
        tg_buf_printf(out, "\\x{%x}-\\x{%x}", pairs[2 * i], pairs[2 * i + 1]);
}

static tg_status refuse(tg_error *err, const char *where, const char *what) {
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: a regular expression with %s is not built into this version", where, what);
}

/* One escape at p ("\x…"); *used gets its length in the pattern. */
static tg_status put_escape(tg_buf *out, const char *p, bool in_class, size_t *used,
                            const char *where, tg_error *err) {
    char which = 0;
    bool negated = p[1] == 'S' || p[1] == 'P';
    *used = 2;
    if (p[1] == 's' || p[1] == 'S') which = 's';
    if ((p[1] == 'p' || p[1] == 'P') && p[2] == '{' && (p[3] == 'L' || p[3] == 'N') && p[4] == '}')
        which = p[3], *used = 5;
    if (!which) {
        if (!p[1])
            return tg_fail(err, TG_DATA, "%s: the regular expression ends with a backslash", where);
        if (strchr("hHRXKGZyY", p[1]))
            return refuse(err, where, "\\h, \\R, \\X, \\K, \\G, \\Z or \\y");
        tg_buf_append(out, p, 2);
        return TG_OK;
    }
    if (negated && in_class) return refuse(err, where, "a negated class inside brackets");
    if (!in_class) tg_buf_puts(out, negated ? "[^" : "[");
    put_class(out, which);
    if (!in_class) tg_buf_putc(out, ']');
    return TG_OK;
}

static tg_status translate(tg_buf *out, const char *p, const char *where, tg_error *err) {
    bool in_class = false;
    while (*p) {
        size_t used = 1;
        if (*p == '\\') {
            tg_status st = put_escape(out, p, in_class, &used, where, err);
            if (st != TG_OK) return st;
        } else if (in_class) {
            if (*p == '[') return refuse(err, where, "brackets inside brackets");
            if (p[0] == '&' && p[1] == '&') return refuse(err, where, "&& inside brackets");
            in_class = *p != ']';
            tg_buf_putc(out, *p);
        } else {
            if (!strncmp(p, "(?m", 3) || !strncmp(p, "(?s", 3) || !strncmp(p, "(?x", 3))
                return refuse(err, where, "(?m), (?s) or (?x)");
            if (p[0] == '}' && p[1] == '+') return refuse(err, where, "{n,m}+");
            if (*p == '[') {
                in_class = true;
                used = 1 + (p[1] == '^');
                used += p[used] == ']'; /* a bracket that comes first is a character */
            }
            tg_buf_append(out, p, used);
        }
        p += used;
    }
    return out->failed ? tg_fail_nomem(err, strlen(p)) : TG_OK;
}

tg_status tg_regex_create(tg_regex **out, const char *pattern, bool literal, const char *where,
                          tg_error *err) {
    *out = NULL;
    tg_regex *r = tg_alloc(sizeof *r);
    if (!r) return tg_fail_nomem(err, sizeof *r);
    tg_buf text = {0};
    tg_status st = TG_OK;
    if (literal) {
        r->literal_len = strlen(pattern);
        r->literal = tg_strdup(pattern);
        if (!r->literal) st = tg_fail_nomem(err, r->literal_len);
    } else {
        st = translate(&text, pattern, where, err);
    }
    if (st == TG_OK && !literal) {
        int code;
        size_t at;
        /* ^ and $ stand at line ends in Oniguruma. */
        r->code = pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &code,
                                &at, NULL);
        if (!r->code) {
            PCRE2_UCHAR why[128];
            pcre2_get_error_message(code, why, sizeof why);
            st = tg_fail(err, TG_DATA, "%s: bad regular expression: %s", where, (const char *)why);
        } else {
            pcre2_jit_compile(
                r->code, PCRE2_JIT_COMPLETE); /* without it matching is slower, not different */
        }
    }
    tg_buf_fini(&text);
    if (st == TG_OK)
        *out = r;
    else
        tg_regex_destroy(&r);
    return st;
}

void tg_regex_destroy(tg_regex **r) {
    if (!*r) return;
    pcre2_code_free((*r)->code);
    tg_free((*r)->literal);
    tg_free(*r);
    *r = NULL;
}

static void find_literal(const tg_regex *r, const char *s, size_t len, size_t pos, size_t *start,
                         size_t *end) {
    const char *hit =
        r->literal_len ? memmem(s + pos, len - pos, r->literal, r->literal_len) : NULL;
    *start = hit ? (size_t)(hit - s) : len;
    *end = hit ? *start + r->literal_len : len;
}

tg_status tg_regex_find(const tg_regex *r, void **match, const char *s, size_t len, size_t pos,
                        size_t *start, size_t *end, tg_error *err) {
    if (r->literal) {
        find_literal(r, s, len, pos, start, end);
        return TG_OK;
    }
    if (!*match) *match = pcre2_match_data_create(1, NULL);
    if (!*match) return tg_fail_nomem(err, sizeof(size_t));
    const unsigned options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc = pcre2_match(r->code, (PCRE2_SPTR)s, len, pos, options, *match, NULL);
    /* The JIT's stack is small; the interpreter uses the heap. */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, (PCRE2_SPTR)s, len, pos, options | PCRE2_NO_JIT, *match, NULL);
    *start = *end = len;
    if (rc == PCRE2_ERROR_NOMATCH) return TG_OK;
    if (rc < 0) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(rc, why, sizeof why);
        return tg_fail(err, rc == PCRE2_ERROR_NOMEMORY ? TG_NOMEM : TG_DATA,
                       "pre_tokenizer: the regular expression gives up on this text: %s",
                       (const char *)why);
    }
    const size_t *range = pcre2_get_ovector_pointer(*match);
    *start = range[0], *end = range[1];
    return TG_OK;
}

void tg_regex_match_destroy(void **match) {
    pcre2_match_data_free(*match);
    *match = NULL;
}
