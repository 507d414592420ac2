/* Fields of rows, and the parts of samples. Pure but for the arena passed in. */
#include "env-server/datapool/rowtext.h"

#include "common/base/str.h"
#include "proto/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "a, b, c": what the row has. */
static void keys_of(const json_t *row, tg_buf *out) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)row, key, value) {
        (void)value;
        if (out->len > 160) break;
        tg_buf_printf(out, "%s%s", out->len ? ", " : "", key);
    }
}

const json_t *tg_row_field(const json_t *row, const char *names, tg_error *err) {
    char name[256];
    bool null = false;
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const json_t *v = json_object_get(row, name);
        if (v && !json_is_null(v)) return v;
        null |= v != NULL;
        at += at[n] ? n + 1 : n;
    }
    if (null) {
        tg_fail(err, TG_DATA, "the field \"%s\" is null", names);
        return NULL;
    }
    tg_buf keys = {0};
    keys_of(row, &keys);
    tg_fail(err, TG_DATA, "no field \"%s\"; the row has: %s", names,
            keys.data ? keys.data : "nothing");
    tg_buf_fini(&keys);
    return NULL;
}

const char *tg_value_text(const json_t *value, const char *what, tg_error *err) {
    const char *text = json_string_value(value);
    if (!text) {
        tg_fail(err, TG_DATA, "\"%s\" is not a text", what);
        return NULL;
    }
    if (strlen(text) != json_string_length(value)) {
        tg_fail(err, TG_DATA, "\"%s\" has a NUL character", what);
        return NULL;
    }
    if (json_string_length(value) > TG_ROW_TEXT_MAX) {
        tg_fail(err, TG_DATA, "\"%s\" is longer than %d MiB", what, TG_ROW_TEXT_MAX >> 20);
        return NULL;
    }
    return text;
}

const char *tg_row_text(const json_t *row, const char *names, tg_error *err) {
    const json_t *v = tg_row_field(row, names, err);
    return v ? tg_value_text(v, names, err) : NULL;
}

const json_t *tg_row_texts(const json_t *row, const char *names, tg_error *err) {
    const json_t *v = tg_row_field(row, names, err);
    if (!v) return NULL;
    if (!json_is_array(v) || json_array_size(v) > TG_ROW_LIST_MAX) {
        tg_fail(err, TG_DATA, "\"%s\" is not a list of texts", names);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!tg_value_text(json_array_get(v, i), names, err)) return NULL;
    return v;
}

bool tg_value_int(const json_t *value, const char *what, int64_t *out, tg_error *err) {
    if (json_is_integer(value))
        *out = json_integer_value(value);
    else if (json_is_boolean(value))
        *out = json_is_true(value);
    else if (!json_is_string(value) || !tg_parse_i64(json_string_value(value), out)) {
        tg_fail(err, TG_DATA, "\"%s\" is not a whole number", what);
        return false;
    }
    return true;
}

bool tg_row_int(const json_t *row, const char *names, int64_t *out, tg_error *err) {
    const json_t *v = tg_row_field(row, names, err);
    return v && tg_value_int(v, names, out, err);
}

tg_status tg_sample_number(tg_sample *s, tg_split split, uint64_t number, tg_arena *arena,
                           tg_error *err) {
    char id[48];
    snprintf(id, sizeof id, "%s_%" PRIu64, tg_split_name(split), number);
    s->id = tg_arena_strdup(arena, id);
    return s->id ? TG_OK : tg_fail_nomem(err, sizeof id);
}

tg_status tg_sample_prompt(tg_sample *s, tg_buf *prompt, tg_arena *arena, tg_error *err) {
    tg_status st = TG_OK;
    s->prompt_text = NULL;
    if (!prompt->failed && prompt->len > TG_ROW_TEXT_MAX)
        st = tg_fail(err, TG_DATA, "the prompt is longer than %d MiB", TG_ROW_TEXT_MAX >> 20);
    else if (!prompt->failed)
        s->prompt_text = tg_arena_strndup(arena, prompt->data ? prompt->data : "", prompt->len);
    if (st == TG_OK && !s->prompt_text) st = tg_fail_nomem(err, prompt->len);
    tg_buf_fini(prompt);
    return st;
}

tg_status tg_sample_references(tg_sample *s, size_t n, tg_arena *arena, tg_error *err) {
    s->references = tg_arena_array(arena, n ? n : 1, sizeof *s->references);
    s->n_references = n;
    return s->references ? TG_OK : tg_fail_nomem(err, n * sizeof *s->references);
}

tg_status tg_sample_reference(tg_sample *s, size_t i, const char *text, size_t len, tg_arena *arena,
                              tg_error *err) {
    s->references[i] = tg_arena_strndup(arena, text, len);
    return s->references[i] ? TG_OK : tg_fail_nomem(err, len);
}

tg_status tg_sample_only(tg_sample *s, const char *reference, tg_arena *arena, tg_error *err) {
    tg_status st = tg_sample_references(s, 1, arena, err);
    return st == TG_OK ? tg_sample_reference(s, 0, reference, strlen(reference), arena, err) : st;
}

tg_status tg_sample_meta(tg_sample *s, json_t *meta, tg_arena *arena, tg_error *err) {
    char *text = meta ? json_dumps(meta, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    json_decref(meta);
    tg_status st = TG_OK;
    if (!text)
        st = tg_fail_nomem(err, 1);
    else if (strlen(text) > TG_ROW_TEXT_MAX)
        st = tg_fail(err, TG_DATA, "the meta data is longer than %d MiB", TG_ROW_TEXT_MAX >> 20);
    else if (!(s->meta_json = tg_arena_strdup(arena, text)))
        st = tg_fail_nomem(err, strlen(text));
    free(text);
    return st;
}
