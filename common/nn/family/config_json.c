/* Reading config.json with messages a user can act on. */
#include "common/nn/family/config_json.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"

#include <string.h>

enum { MAX_BYTES = 4 * 1024 * 1024 };

/* Of small values the tree is many times as large as the text: there may be few of them, or one in a dozen bytes. */
static bool is_dense(const tg_buf *text) {
    enum { FEW = 10000, BYTES = 12 };
    size_t values = 0;
    for (size_t i = 0; i < text->len; i++) values += strchr(",[{", text->data[i]) && text->data[i];
    return values > FEW && values > text->len / BYTES;
}

/* Copies one token of `text`: a string, a number, or a single byte; how long it was. Integers of more digits than 64 bits surely hold
 * become reals. */
static size_t copy_token(const char *text, tg_buf *out) {
    enum { SURE = 18 };
    size_t n = *text == '-' || strchr("0123456789", *text) ? strspn(text, "+-.0123456789Ee") : 1;
    if (*text == '"') {
        while (text[n] && text[n] != '"') n += text[n] == '\\' && text[n + 1] ? 2 : 1;
        n += text[n] == '"';
    }
    tg_buf_append(out, text, n);
    const size_t sign = *text == '-', digits = strspn(text + sign, "0123456789");
    if (digits > SURE && sign + digits == n) tg_buf_puts(out, ".0");
    return n;
}

json_t *tg_config_json_parse(const char *text, size_t len, size_t flags, json_error_t *where) {
    json_t *root = json_loadb(text, len, flags, where);
    if (root || json_error_code(where) != json_error_numeric_overflow) return root;
    tg_buf copy = {0};
    for (size_t i = 0; i < len && text[i];) i += copy_token(text + i, &copy);
    if (!copy.failed) root = json_loadb(copy.data, copy.len, flags, where);
    tg_buf_fini(&copy);
    return root;
}

tg_status tg_config_json_open(tg_config_json *c, const char *folder, const char *file,
                              tg_error *err) {
    *c = (tg_config_json){.path = tg_path_join(folder, file)};
    if (!c->path) return tg_fail_nomem(err, strlen(folder));
    tg_buf text = {0};
    tg_status st = tg_file_read(c->path, MAX_BYTES, &text, err);
    if (st == TG_OK && is_dense(&text))
        st = tg_fail(err, TG_DATA, "%s: too many values for %zu bytes", c->path, text.len);
    if (st == TG_OK) {
        json_error_t where;
        c->root = tg_config_json_parse(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES,
                                       &where);
        if (!c->root)
            st = tg_fail(err, TG_DATA, "%s:%d: bad JSON: %s", c->path, where.line, where.text);
        else if (!json_is_object(c->root))
            st = tg_fail(err, TG_DATA, "%s: expected a JSON object", c->path);
    }
    tg_buf_fini(&text);
    if (st != TG_OK) tg_config_json_close(c);
    return st;
}

/* What the first BART folders have in place of forced_bos_token_id. */
static int renew_forced_bos(json_t *root, const char *family) {
    enum { BOS = 0 }; /* of the family */
    const json_t *forced = json_object_get(root, "forced_bos_token_id");
    if (strcmp(family, "bart") != 0 || (forced && !json_is_null(forced)) ||
        !json_is_true(json_object_get(root, "force_bos_token_to_be_generated")))
        return 0;
    json_t *bos = json_object_get(root, "bos_token_id");
    return bos ? json_object_set(root, "forced_bos_token_id", bos)
               : json_object_set_new(root, "forced_bos_token_id", json_integer(BOS));
}

tg_status tg_config_json_renew(json_t *root, tg_error *err) {
    static const struct {
        const char *family, *key;
        int value;
    } defaults[] = {{"bart", "forced_eos_token_id", 2},
                    {"mbart", "forced_eos_token_id", 2},
                    {"marian", "forced_eos_token_id", 0},
                    {"pegasus", "forced_eos_token_id", 1},
                    {"blenderbot", "forced_eos_token_id", 2},
                    {"blenderbot", "encoder_no_repeat_ngram_size", 3},
                    {"blenderbot-small", "forced_eos_token_id", 2}};
    const char *family = json_string_value(json_object_get(root, "model_type"));
    if (!family) return TG_OK;
    int failed = renew_forced_bos(root, family); /* below a null says that there is none */
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!strcmp(family, defaults[i].family) && !json_object_get(root, defaults[i].key))
            failed |= json_object_set_new(root, defaults[i].key, json_integer(defaults[i].value));
    return failed ? tg_fail_nomem(err, 64) : TG_OK;
}

void tg_config_json_close(tg_config_json *c) {
    json_decref(c->root);
    tg_free(c->path);
    *c = (tg_config_json){0};
}

static tg_status wrong(const tg_config_json *c, const char *key, const json_t *found,
                       const char *expected, tg_error *err) {
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);
    tg_status st = tg_fail(err, TG_DATA, "%s: %s: expected %s, found %.60s", c->path, key, expected,
                           text ? text : "something else");
    free(text);
    return st;
}

/* NULL when absent or null. Of both the alias counts, as in transformers, which sets it last; *key is the one that counts. */
static const json_t *value_of(const tg_config_json *c, const char **key, const char *alias) {
    const json_t *v = alias ? json_object_get(c->root, alias) : NULL;
    if (v && !json_is_null(v))
        *key = alias;
    else
        v = json_object_get(c->root, *key);
    return json_is_null(v) ? NULL : v;
}

tg_status tg_config_json_int(const tg_config_json *c, const char *key, const char *alias,
                             int64_t min, int64_t max, int64_t def, int *out, tg_error *err) {
    const json_t *v = value_of(c, &key, alias);
    int64_t n = v ? json_integer_value(v) : def;
    if (v && (!json_is_integer(v) || n < min || n > max)) {
        char expected[80];
        snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)min,
                 (long long)max);
        return wrong(c, key, v, expected, err);
    }
    *out = (int)n;
    return TG_OK;
}

tg_status tg_config_json_float(const tg_config_json *c, const char *key, double min, double max,
                               double def, float *out, tg_error *err) {
    const json_t *v = value_of(c, &key, NULL);
    double x = v ? json_number_value(v) : def;
    if (v && (!json_is_number(v) || !(x >= min && x <= max))) {
        char expected[80];
        snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
        return wrong(c, key, v, expected, err);
    }
    *out = (float)x;
    return TG_OK;
}

tg_status tg_config_json_bool(const tg_config_json *c, const char *key, bool def, bool *out,
                              tg_error *err) {
    const json_t *v = value_of(c, &key, NULL);
    if (v && !json_is_boolean(v)) return wrong(c, key, v, "true or false", err);
    *out = v ? json_is_true(v) : def;
    return TG_OK;
}

tg_status tg_config_json_str(const tg_config_json *c, const char *key, const char *def,
                             const char **out, tg_error *err) {
    const json_t *v = value_of(c, &key, NULL);
    if (v && !json_is_string(v)) return wrong(c, key, v, "text", err);
    *out = v ? json_string_value(v) : def;
    return TG_OK;
}

tg_status tg_config_json_token(const tg_config_json *c, const char *key, int64_t def,
                               int vocab_size, int32_t *out, tg_error *err) {
    const json_t *v = json_object_get(c->root, key);
    if (json_is_array(v) && json_array_size(v)) v = json_array_get(v, 0);
    if (v && !json_is_null(v) && !json_is_integer(v))
        return wrong(c, key, v, "a token id, a list of them, or null", err);
    int64_t id = !v ? def : json_is_null(v) ? -1 : json_integer_value(v);
    *out = id >= 0 && id < vocab_size ? (int32_t)id : -1;
    return TG_OK;
}
