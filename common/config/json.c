/* JSON output. Deterministic: the same value always gives the same bytes. */
#include "common/config/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The code point that starts at p (n bytes are left) and its length; length 0: not valid UTF-8. */
static uint32_t decode(const unsigned char *p, size_t n, size_t *len) {
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    *len = p[0] < 0x80             ? 1
           : (p[0] & 0xe0) == 0xc0 ? 2
           : (p[0] & 0xf0) == 0xe0 ? 3
           : (p[0] & 0xf8) == 0xf0 ? 4
                                   : 0;
    if (*len > n) *len = 0;
    if (*len <= 1) return p[0];
    uint32_t c = p[0] & (0xffu >> (*len + 1));
    for (size_t i = 1; i < *len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *len = 0;
            return 0;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < lowest[*len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) *len = 0;
    return c;
}

size_t tg_json_utf8(const char *text, size_t len) {
    size_t i = 0;
    for (size_t n; i < len; i += n) {
        decode((const unsigned char *)text + i, len - i, &n);
        if (!n) break;
    }
    return i;
}

/* Control characters, and those that YAML takes for line ends, byte order marks or nothing at all.
 */
static bool needs_escape(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

void tg_json_string(tg_buf *out, const char *text, size_t len) {
    tg_buf_putc(out, '"');
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t c = decode((const unsigned char *)text + i, len - i, &n);
        if (!n) {
            tg_buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD, as decoders do */
            n = 1;
        } else if (c == '"' || c == '\\') {
            tg_buf_printf(out, "\\%c", (char)c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            tg_buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (needs_escape(c)) {
            tg_buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            tg_buf_append(out, text + i, n);
        }
    }
    tg_buf_putc(out, '"');
}

void tg_json_number(tg_buf *out, double value) {
    if (!isfinite(value)) {
        tg_buf_puts(out, "null");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    size_t mantissa = strcspn(text, "e");
    tg_buf_append(out, text, mantissa);
    if (!memchr(text, '.', mantissa)) tg_buf_puts(out, ".0"); /* "1e-06" is text to YAML 1.1 */
    tg_buf_puts(out, text + mantissa);
}

static void scalar_json(const tg_node *n, tg_buf *out) {
    bool truth;
    int64_t whole;
    double real;
    if (tg_node_bool(n, &truth))
        tg_buf_puts(out, truth ? "true" : "false");
    else if (tg_node_int(n, &whole))
        tg_buf_printf(out, "%" PRId64, whole);
    else if (!n->quoted && tg_node_float(n, &real) && isfinite(real))
        tg_json_number(out, real);
    else
        tg_json_string(out, n->text, strlen(n->text));
}

void tg_node_json(const tg_node *n, tg_buf *out) {
    if (tg_node_is_null(n)) {
        tg_buf_puts(out, "null");
    } else if (n->kind == TG_NODE_SCALAR) {
        scalar_json(n, out);
    } else {
        bool map = n->kind == TG_NODE_MAP;
        tg_buf_putc(out, map ? '{' : '[');
        for (size_t i = 0; i < n->n_items; i++) {
            if (i) tg_buf_puts(out, ", ");
            if (map) {
                tg_json_string(out, n->items[i]->key, strlen(n->items[i]->key));
                tg_buf_puts(out, ": ");
            }
            tg_node_json(n->items[i], out);
        }
        tg_buf_putc(out, map ? '}' : ']');
    }
}
