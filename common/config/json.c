/* JSON output. Deterministic: the same value always gives the same bytes. */
#include "common/config/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tg_json_string(tg_buf *out, const char *text, size_t len) {
    tg_buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        switch (c) {
        case '"': tg_buf_puts(out, "\\\""); break;
        case '\\': tg_buf_puts(out, "\\\\"); break;
        case '\n': tg_buf_puts(out, "\\n"); break;
        case '\r': tg_buf_puts(out, "\\r"); break;
        case '\t': tg_buf_puts(out, "\\t"); break;
        default:
            if (c < 0x20 || c == 0x7f)
                tg_buf_printf(out, "\\u%04x", c);
            else
                tg_buf_putc(out, (char)c);
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
