/* Python's repr of texts. Pure functions, any thread. */
#include "env-server/metric/pyrepr.h"

#include "env-server/reward/pytext.h"

#include <string.h>

#include <utf8proc.h>

/* str.isprintable() of one character above ASCII: not in the categories Other and Separator. */
static bool printable(uint32_t c) {
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

static void escaped(tg_buf *out, uint32_t c) {
    if (c == '\n')
        tg_buf_puts(out, "\\n");
    else if (c == '\t')
        tg_buf_puts(out, "\\t");
    else if (c == '\r')
        tg_buf_puts(out, "\\r");
    else if (c < 0x100)
        tg_buf_printf(out, "\\x%02x", (unsigned)c);
    else if (c < 0x10000)
        tg_buf_printf(out, "\\u%04x", (unsigned)c);
    else
        tg_buf_printf(out, "\\U%08x", (unsigned)c);
}

void tg_py_repr(tg_buf *out, const char *text, size_t len) {
    char quote = memchr(text, '\'', len) && !memchr(text, '"', len) ? '"' : '\'';
    size_t n;
    tg_buf_putc(out, quote);
    for (size_t i = 0; i < len; i += n) {
        uint32_t c = tg_py_char(text + i, len - i, &n);
        if (c == '\\' || c == (uint32_t)quote) tg_buf_putc(out, '\\');
        if (c < 0x20 || c == 0x7f || (c > 0x7f && !printable(c)))
            escaped(out, c);
        else
            tg_buf_append(out, text + i, n);
    }
    tg_buf_putc(out, quote);
}

void tg_py_repr_list(tg_buf *out, const char *const *texts, size_t n) {
    tg_buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_py_repr(out, texts[i], strlen(texts[i]));
    }
    tg_buf_putc(out, ']');
}
