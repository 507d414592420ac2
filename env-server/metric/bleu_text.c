/* sacrebleu's tokenisers by name, and a text cut by one of them. */
#include "env-server/metric/bleu_text_impl.h"

#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <string.h>

static const char *const names[TG_TOK_COUNT] = {"none", "13a", "intl", "char", "zh"};

tg_bleu_tok tg_bleu_tok_find(const char *name) {
    int i = 0;
    while (i < TG_TOK_COUNT && strcmp(names[i], name) != 0) i++;
    return (tg_bleu_tok)i;
}

void tg_bleu_text_fini(tg_bleu_text *t) {
    tg_buf_fini(&t->now);
    tg_buf_fini(&t->next);
    tg_buf_fini(&t->lower);
}

size_t tg_bleu_text_rstrip(const char *text, size_t len) {
    while (len > 0) {
        size_t at = len, n;
        do at--;
        while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
        if (!tg_py_isspace(tg_py_char(text + at, len - at, &n)) || at + n != len) break;
        len = at;
    }
    return len;
}

/* sacrebleu's ranges. Two of them are given there as five-digit escapes of
 * four-digit syntax and thus mean U+2001..U+2A6D and U+2F81..U+2FA1. */
static bool is_chinese(uint32_t c) {
    static const uint32_t ranges[] = {
        0x2001, 0x2A6D, 0x2E80, 0x2EFF, 0x2F00, 0x2FDF, 0x2FF0, 0x303F, 0x3100, 0x312F, 0x31A0,
        0x31BF, 0x31C0, 0x31EF, 0x3200, 0x33FF, 0x3400, 0x4DB5, 0x4E00, 0x9FBB, 0xF900, 0xFA2D,
        0xFA30, 0xFA6A, 0xFA70, 0xFAD9, 0xFE10, 0xFE1F, 0xFE30, 0xFE4F, 0xFF00, 0xFFEF};
    return tg_unicode_in_ranges(ranges, sizeof ranges / sizeof *ranges / 2, c);
}

static bool is_any(uint32_t c) {
    (void)c;
    return true;
}

void tg_bleu_text_apply(tg_bleu_text *t, tg_bleu_tok tok) {
    if (tok == TG_TOK_13A)
        tg_bleu_text_western(t);
    else if (tok == TG_TOK_INTL)
        tg_bleu_text_intl(t);
    else if (tok == TG_TOK_CHAR)
        tg_bleu_text_isolate(t, is_any);
    else if (tok == TG_TOK_ZH) {
        tg_bleu_text_isolate(t, is_chinese);
        tg_bleu_text_western(t);
    }
}

bool tg_bleu_text_is_escaped(const char *text, size_t len) {
    if (!len) return false;
    const char *line = memchr(text, '\n', len);
    return memchr(text, '&', len) || memmem(text, len, "<skipped>", 9) ||
           (line && memmem(text, len, "-\n", 2));
}

static void unescape(tg_bleu_text *t) {
    tg_bleu_text_replace(t, "<skipped>", "");
    tg_bleu_text_replace(t, "-\n", "");
    tg_bleu_text_replace(t, "\n", " ");
    tg_bleu_text_replace(t, "&quot;", "\"");
    tg_bleu_text_replace(t, "&amp;", "&");
    tg_bleu_text_replace(t, "&lt;", "<");
    tg_bleu_text_replace(t, "&gt;", ">");
}

bool tg_bleu_text_lower(tg_bleu_text *t, const char **text, size_t *len) {
    tg_buf_reset(&t->lower);
    tg_py_lower(&t->lower, *text, *len);
    *text = t->lower.data, *len = t->lower.len;
    return !t->lower.failed;
}

static bool cut(tg_bleu_text *t, tg_bleu_tok tok, const char *text, size_t len) {
    tg_buf_reset(&t->now);
    if (!len) return true;
    len = tg_bleu_text_rstrip(text, len);
    for (size_t n; tok == TG_TOK_ZH && len && tg_py_isspace(tg_py_char(text, len, &n)); len -= n)
        text += n;
    if (tok == TG_TOK_13A) tg_buf_putc(&t->now, ' ');
    tg_buf_append(&t->now, text, len);
    if (tok == TG_TOK_13A) {
        tg_buf_putc(&t->now, ' ');
        if (tg_bleu_text_is_escaped(text, len)) unescape(t);
    }
    tg_bleu_text_apply(t, tok);
    return !t->now.failed && !t->next.failed;
}

bool tg_bleu_text_cut(tg_bleu_text *t, tg_bleu_tok tok, bool lowercase, const char *text,
                      size_t len) {
    return (!lowercase || tg_bleu_text_lower(t, &text, &len)) && cut(t, tok, text, len);
}
