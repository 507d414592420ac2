/* Reading of the texts to be judged. */
#include "env-server/cli/texts.h"

#include "common/base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_BYTES = (size_t)4 << 30;

static tg_status read_all(const char *path, tg_buf *out, tg_error *err) {
    if (path && strcmp(path, "-") != 0) return tg_file_read(path, MAX_BYTES, out, err);
    return tg_stream_read(stdin, "stdin", out, err);
}

static tg_status copy_text(tg_arena *a, const json_t *v, const char *key, const char **out,
                           size_t *len, tg_error *err) {
    if (!json_is_string(v)) return tg_fail(err, TG_DATA, "\"%s\": expected a text", key);
    *len = json_string_length(v);
    *out = tg_arena_strndup(a, json_string_value(v), *len);
    return *out ? TG_OK : tg_fail_nomem(err, *len);
}

static tg_status read_references(tg_arena *a, const json_t *v, tg_sample *s, tg_error *err) {
    if (!v || json_is_null(v)) return TG_OK;
    size_t n = json_is_array(v) ? json_array_size(v) : 1, len;
    const char **texts = tg_arena_array(a, n + 1, sizeof *texts);
    if (!texts) return tg_fail_nomem(err, n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_is_array(v) ? json_array_get(v, i) : v;
        tg_status st = copy_text(a, r, "references", &texts[i], &len, err);
        if (st != TG_OK) return st;
    }
    s->references = texts, s->n_references = n;
    return TG_OK;
}

static tg_status read_item(tg_arena *a, const json_t *object, tg_metric_item *out, tg_error *err) {
    if (!json_is_object(object))
        return tg_fail(err, TG_DATA, "expected an object {\"prediction\": …, \"references\": […]}");
    tg_sample *s = tg_arena_alloc(a, sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    *s = (tg_sample){.id = "", .prompt_text = "", .meta_json = ""};
    out->sample = s;
    const json_t *prediction = json_object_get(object, "prediction");
    if (!prediction) return tg_fail(err, TG_DATA, "\"prediction\" is missing");
    size_t len;
    tg_status st = copy_text(a, prediction, "prediction", &out->text, &out->text_len, err);
    if (st == TG_OK) st = read_references(a, json_object_get(object, "references"), s, err);
    const json_t *prompt = json_object_get(object, "prompt"),
                 *meta = json_object_get(object, "meta");
    if (st == TG_OK && prompt) st = copy_text(a, prompt, "prompt", &s->prompt_text, &len, err);
    if (st == TG_OK && meta && !json_is_null(meta)) {
        char *text = json_dumps(meta, JSON_COMPACT | JSON_ENCODE_ANY);
        s->meta_json = text ? tg_arena_strdup(a, text) : NULL;
        free(text);
        if (!s->meta_json) st = tg_fail_nomem(err, 1);
    }
    return st;
}

static tg_status add_line(tg_texts *t, const char *line, size_t len, tg_error *err) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        tg_metric_item *items = tg_arena_array(&t->arena, cap, sizeof *items);
        if (!items) return tg_fail_nomem(err, cap * sizeof *items);
        if (t->n) memcpy(items, t->items, t->n * sizeof *items);
        t->items = items, t->cap = cap;
    }
    json_error_t e;
    json_t *object = json_loadb(line, len, JSON_ALLOW_NUL, &e);
    if (!object) return tg_fail(err, TG_DATA, "not JSON: %s", e.text);
    tg_status st = read_item(&t->arena, object, &t->items[t->n], err);
    json_decref(object);
    if (st == TG_OK) t->n++;
    return st;
}

tg_status tg_texts_read(tg_texts *t, const char *path, tg_error *err) {
    memset(t, 0, sizeof *t);
    const char *name = path && strcmp(path, "-") != 0 ? path : "stdin";
    tg_buf bytes = {0};
    tg_status st = read_all(path, &bytes, err);
    size_t line = 0;
    for (size_t at = 0; st == TG_OK && at < bytes.len;) {
        const char *begin = bytes.data + at, *end = memchr(begin, '\n', bytes.len - at);
        size_t len = end ? (size_t)(end - begin) : bytes.len - at;
        line++;
        at += len + 1;
        if (strspn(begin, " \t\r") >= len) continue;
        st = add_line(t, begin, len, err);
        if (st != TG_OK) tg_error_prefix(err, "%s:%zu: ", name, line);
    }
    tg_buf_fini(&bytes);
    if (st == TG_OK && t->n == 0)
        st = tg_fail(err, TG_DATA, "%s: nothing to score; expected one {\"prediction\": …} a line",
                     name);
    if (st != TG_OK) tg_texts_fini(t);
    return st;
}

void tg_texts_fini(tg_texts *t) {
    tg_arena_fini(&t->arena);
    memset(t, 0, sizeof *t);
}
