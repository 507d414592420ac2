/* jansson behind a few typed readers. Pure functions. */
#include "common/text/part.h"

#include "common/base/alloc.h"
#include "common/base/file.h"

#include <string.h>

tg_status tg_part_parse(const char *name, const char *text, size_t len, bool big_ints, json_t **out,
                        tg_error *err) {
    json_error_t why;
    *out = json_loadb(text ? text : "", len, big_ints ? JSON_DECODE_INT_AS_REAL : 0, &why);
    if (!*out) return tg_fail(err, TG_DATA, "%s:%d: not valid JSON: %s", name, why.line, why.text);
    if (json_is_object(*out)) return TG_OK;
    json_decref(*out);
    *out = NULL;
    return tg_fail(err, TG_DATA, "%s: expected a JSON object", name);
}

tg_status tg_part_load(const char *path, bool big_ints, json_t **out, tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_file_read(path, (size_t)1 << 30, &text, err);
    if (st == TG_OK) st = tg_part_parse(path, text.data, text.len, big_ints, out, err);
    tg_buf_fini(&text);
    return st;
}

static bool in_list(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && !memcmp(p, word, len)) return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

tg_status tg_part_check(const json_t *part, const char *where, const char *known, tg_error *err) {
    if (!json_is_object(part)) return tg_fail(err, TG_DATA, "%s: expected an object", where);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)part, key, value) {
        if (!in_list(known, key))
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: key \"%.60s\" is not known to this version (known: %s)", where, key,
                           known);
    }
    return TG_OK;
}

const char *tg_part_type(const json_t *part) {
    return json_string_value(json_object_get(part, "type"));
}

tg_status tg_part_bool(const json_t *part, const char *where, const char *key, bool def, bool *out,
                       tg_error *err) {
    const json_t *v = json_object_get(part, key);
    *out = v ? json_is_true(v) : def;
    if (v && !json_is_boolean(v))
        return tg_fail(err, TG_DATA, "%s.%s: expected true or false", where, key);
    return TG_OK;
}

tg_status tg_part_str(const json_t *part, const char *where, const char *key, const char **out,
                      tg_error *err) {
    const json_t *v = json_object_get(part, key);
    *out = json_string_value(v);
    if (v && !*out && !json_is_null(v))
        return tg_fail(err, TG_DATA, "%s.%s: expected a string", where, key);
    return TG_OK;
}

char *tg_part_dump(const json_t *part) {
    char *text = json_dumps(part, JSON_COMPACT | JSON_ENCODE_ANY);
    char *copy = text ? tg_strdup(text) : NULL;
    free(text);
    return copy;
}

void tg_part_write_str(tg_buf *out, const char *text, size_t len) {
    tg_buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') tg_buf_putc(out, '\\');
        if (c >= 0x20)
            tg_buf_putc(out, (char)c);
        else if (c == '\n')
            tg_buf_puts(out, "\\n");
        else
            tg_buf_printf(out, "\\u%04x", c);
    }
    tg_buf_putc(out, '"');
}
