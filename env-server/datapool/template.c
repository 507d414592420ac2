/* Rendering of prompt templates. Pure functions, any thread. */
#include "env-server/datapool/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One step through a template: the literal up to the next brace, then what the brace says. */
typedef struct piece {
    const char *literal, *field; /* field NULL: there is none */
    size_t literal_len, field_len;
    const char *rest;
} piece;

static tg_status next_piece(const char *at, piece *p, tg_error *err) {
    *p = (piece){.literal = at};
    size_t n = strcspn(at, "{}");
    const char *brace = at + n;
    p->literal_len = n;
    p->rest = brace;
    if (!*brace) return TG_OK;
    if (brace[1] == brace[0]) { /* a doubled brace stands for one */
        p->literal_len = n + 1;
        p->rest = brace + 2;
        return TG_OK;
    }
    if (*brace == '}')
        return tg_fail(err, TG_CONFIG, "a '}' without '{' (write }} for a plain brace)");
    size_t len = strcspn(brace + 1, "{}");
    if (brace[1 + len] != '}')
        return tg_fail(err, TG_CONFIG, "a '{' without '}' (write {{ for a plain brace)");
    if (len == 0) return tg_fail(err, TG_CONFIG, "{} names no field; write {prompt}, for example");
    p->field = brace + 1;
    p->field_len = len;
    p->rest = brace + len + 2;
    return TG_OK;
}

tg_status tg_template_check(const char *text, tg_error *err) {
    piece p;
    while (*text) {
        tg_status st = next_piece(text, &p, err);
        if (st != TG_OK) return st;
        text = p.rest;
    }
    return TG_OK;
}

bool tg_template_next(const char **at, const char **field, size_t *len) {
    piece p;
    while (**at) {
        if (next_piece(*at, &p, NULL) != TG_OK) return false;
        *at = p.rest;
        if (!p.field) continue;
        *field = p.field;
        *len = p.field_len;
        return true;
    }
    return false;
}

const json_t *tg_json_at(const json_t *object, const char *path, size_t path_len) {
    char key[256];
    while (object && path_len) {
        const char *dot = memchr(path, '.', path_len);
        size_t n = dot ? (size_t)(dot - path) : path_len;
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = 0;
        object = json_object_get(object, key);
        path += dot ? n + 1 : n;
        path_len -= dot ? n + 1 : n;
    }
    return object;
}

static bool append_scalar(const json_t *v, tg_buf *out) {
    if (json_is_string(v)) {
        tg_buf_append(out, json_string_value(v), json_string_length(v));
        return true;
    }
    if (json_is_integer(v)) {
        tg_buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return true;
    }
    if (json_is_real(v)) {
        tg_buf_printf(out, "%.17g", json_real_value(v));
        return true;
    }
    if (json_is_boolean(v)) {
        tg_buf_puts(out, json_is_true(v) ? "true" : "false");
        return true;
    }
    return false;
}

static bool append_value(const json_t *v, tg_buf *out) {
    if (!json_is_array(v)) return append_scalar(v, out);
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (i) tg_buf_putc(out, ' ');
        if (!append_scalar(json_array_get(v, i), out)) return false;
    }
    return true;
}

tg_status tg_template_render(const char *text, const json_t *object, tg_buf *out, tg_error *err) {
    piece p;
    while (*text) {
        tg_status st = next_piece(text, &p, err);
        if (st != TG_OK) return st;
        tg_buf_append(out, p.literal, p.literal_len);
        if (p.field) {
            const json_t *v = tg_json_at(object, p.field, p.field_len);
            if (!v)
                return tg_fail(err, TG_DATA, "field \"%.*s\" of the template is missing",
                               (int)p.field_len, p.field);
            if (!append_value(v, out))
                return tg_fail(err, TG_DATA,
                               "field \"%.*s\" of the template is not a text, number or list",
                               (int)p.field_len, p.field);
        }
        text = p.rest;
    }
    return out->failed ? tg_fail_nomem(err, out->len) : TG_OK;
}
