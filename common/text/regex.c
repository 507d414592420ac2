/* Compiling and matching. A compiled expression is read-only;
 * what a match changes is the caller's work space. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "common/text/regex.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/text/regex_translate.h"

#include <pcre2.h>
#include <string.h>

struct tg_regex {
    pcre2_code *code;
    char *literal; /* plain text instead of code */
    size_t literal_len;
};

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
        st = tg_regex_translate(&text, pattern, where, err);
    }
    if (st == TG_OK && !literal) {
        int code;
        size_t at;
        uint32_t empty = 0;
        /* ^ and $ stand at line ends in Oniguruma. */
        r->code = pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &code,
                                &at, NULL);
        if (!r->code) {
            PCRE2_UCHAR why[128];
            pcre2_get_error_message(code, why, sizeof why);
            st = tg_fail(err, TG_DATA, "%s: bad regular expression: %s", where, (const char *)why);
        } else if (pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &empty) || empty) {
            st = tg_fail(err, TG_UNSUPPORTED,
                         "%s: a regular expression that matches the empty text is not built into "
                         "this version",
                         where);
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
