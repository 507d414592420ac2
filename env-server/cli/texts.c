/* Reading of the texts to be judged. Everything lives in the arena. */
#include "env-server/cli/texts.h"

#include "common/base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_BYTES = (size_t)4 << 30;

static const char *name_of(const char *path) {
    return strcmp(path, "-") != 0 ? path : "stdin";
}

static tg_status read_all(const char *path, tg_buf *out, tg_error *err) {
    if (strcmp(path, "-") != 0) return tg_file_read(path, MAX_BYTES, out, err);
    return tg_stream_read(stdin, "stdin", out, err);
}

static bool blank(const char *line, size_t len) {
    while (len && (*line == ' ' || *line == '\t' || *line == '\r')) line++, len--;
    return !len;
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
    tg_sample *s = (tg_sample *)out->sample;
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

/* A new item without anything. */
static tg_metric_item *add_item(tg_texts *t, tg_error *err) {
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        tg_metric_item *items = tg_arena_array(&t->arena, cap, sizeof *items);
        if (!items) {
            tg_fail_nomem(err, cap * sizeof *items);
            return NULL;
        }
        if (t->n) memcpy(items, t->items, t->n * sizeof *items);
        t->items = items, t->cap = cap;
    }
    tg_sample *s = tg_arena_alloc(&t->arena, sizeof *s);
    if (!s) {
        tg_fail_nomem(err, sizeof *s);
        return NULL;
    }
    *s = (tg_sample){.id = "", .prompt_text = "", .meta_json = ""};
    t->items[t->n] = (tg_metric_item){.sample = s, .text = ""};
    return &t->items[t->n];
}

static json_t *parse(const char *line, size_t len, tg_error *err) {
    json_error_t e;
    json_t *value = json_loadb(line, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
    if (!value) tg_fail(err, TG_DATA, "not JSON: %s", e.text);
    return value;
}

static tg_status copy_plain(tg_arena *a, const char *line, size_t len, const char **out,
                            tg_error *err) {
    *out = tg_arena_strndup(a, line, len);
    return *out ? TG_OK : tg_fail_nomem(err, len);
}

tg_status tg_texts_add_line(tg_texts *t, const char *line, size_t len, bool json, tg_error *err) {
    tg_metric_item *item = add_item(t, err);
    if (!item) return TG_NOMEM;
    tg_status st;
    if (json) {
        json_t *value = parse(line, len, err);
        if (!value) return TG_DATA;
        st = json_is_string(value)
                 ? copy_text(&t->arena, value, "prediction", &item->text, &item->text_len, err)
                 : read_item(&t->arena, value, item, err);
        json_decref(value);
    } else {
        st = copy_plain(&t->arena, line, len, &item->text, err);
        item->text_len = len;
    }
    if (st == TG_OK) t->n++;
    return st;
}

/* ---- files line by line ------------------------------------------------------------------------ */

static bool is_json_name(const char *path) {
    static const char *const ends[] = {".jsonl", ".json", ".ndjson"};
    size_t n = strlen(path);
    for (size_t i = 0; i < 3; i++) {
        size_t k = strlen(ends[i]);
        if (n > k && !strcmp(path + n - k, ends[i])) return true;
    }
    return false;
}

typedef tg_status line_fn(void *arg, size_t number, const char *line, size_t len, bool json,
                          tg_error *err);

/* Calls f for every line, numbers from 0; empty lines of JSON are no lines. *n gets how many there were. */
static tg_status each_line(const char *path, bool json, line_fn *f, void *arg, size_t *n,
                           tg_error *err) {
    tg_buf bytes = {0};
    tg_status st = read_all(path, &bytes, err);
    size_t line = 0;
    *n = 0;
    for (size_t at = 0; st == TG_OK && at < bytes.len;) {
        const char *begin = bytes.data + at, *end = memchr(begin, '\n', bytes.len - at);
        size_t len = end ? (size_t)(end - begin) : bytes.len - at;
        line++;
        at += len + 1;
        if (len && begin[len - 1] == '\r') len--;
        if (json && blank(begin, len)) continue;
        st = f(arg, (*n)++, begin, len, json, err);
        if (st != TG_OK) tg_error_prefix(err, "%s:%zu: ", name_of(path), line);
    }
    tg_buf_fini(&bytes);
    return st;
}

static tg_status take_prediction(void *arg, size_t number, const char *line, size_t len, bool json,
                                 tg_error *err) {
    (void)number;
    return tg_texts_add_line(arg, line, len, json, err);
}

static tg_status take_prompt(void *arg, size_t number, const char *line, size_t len, bool json,
                             tg_error *err) {
    tg_texts *t = arg;
    if (number >= t->n) return TG_OK; /* the counts are compared at the end */
    tg_sample *s = (tg_sample *)t->items[number].sample;
    if (!json) return copy_plain(&t->arena, line, len, &s->prompt_text, err);
    json_t *value = parse(line, len, err);
    if (!value) return TG_DATA;
    const json_t *text = json_is_object(value) ? json_object_get(value, "prompt") : value;
    tg_status st = copy_text(&t->arena, text, "prompt", &s->prompt_text, &len, err);
    json_decref(value);
    return st;
}

/* Appends to the sample's references. */
static tg_status more_references(tg_texts *t, tg_sample *s, const tg_sample *more, tg_error *err) {
    size_t n = s->n_references + more->n_references;
    const char **texts = tg_arena_array(&t->arena, n + 1, sizeof *texts);
    if (!texts) return tg_fail_nomem(err, n * sizeof *texts);
    if (s->n_references) memcpy(texts, s->references, s->n_references * sizeof *texts);
    memcpy(texts + s->n_references, more->references, more->n_references * sizeof *texts);
    s->references = texts, s->n_references = n;
    return TG_OK;
}

static tg_status take_references(void *arg, size_t number, const char *line, size_t len, bool json,
                                 tg_error *err) {
    tg_texts *t = arg;
    const char *text;
    tg_sample more = {.references = &text, .n_references = 1};
    if (number >= t->n) return TG_OK;
    tg_status st;
    if (json) {
        json_t *value = parse(line, len, err);
        if (!value) return TG_DATA;
        const json_t *list = value;
        if (json_is_object(value)) {
            list = json_object_get(value, "references");
            if (!list) list = json_object_get(value, "reference");
        }
        more.n_references = 0;
        st = list ? read_references(&t->arena, list, &more, err)
                  : tg_fail(err, TG_DATA, "\"references\" is missing");
        if (st == TG_OK && !more.n_references)
            st = tg_fail(err, TG_DATA, "expected at least one reference");
        json_decref(value);
    } else {
        st = copy_plain(&t->arena, line, len, &text, err);
    }
    return st == TG_OK ? more_references(t, (tg_sample *)t->items[number].sample, &more, err) : st;
}

static tg_status check_count(const tg_texts *t, const char *own, const char *path, size_t n,
                             tg_error *err) {
    if (n == t->n) return TG_OK;
    return tg_fail(err, TG_DATA,
                   "%s has %zu lines and %s has %zu; they belong together line by line", own, t->n,
                   path, n);
}

tg_status tg_texts_read_files(tg_texts *t, const tg_texts_files *files, tg_error *err) {
    memset(t, 0, sizeof *t);
    size_t n;
    tg_status st = each_line(files->predictions, is_json_name(files->predictions), take_prediction,
                             t, &n, err);
    if (st == TG_OK && !t->n)
        st = tg_fail(err, TG_DATA, "%s: nothing to score; expected a text a line",
                     files->predictions);
    if (st == TG_OK && files->prompts) {
        st = each_line(files->prompts, is_json_name(files->prompts), take_prompt, t, &n, err);
        if (st == TG_OK) st = check_count(t, files->predictions, files->prompts, n, err);
    }
    for (size_t i = 0; i < files->n_references && st == TG_OK; i++) {
        st = each_line(files->references[i], is_json_name(files->references[i]), take_references, t,
                       &n, err);
        if (st == TG_OK) st = check_count(t, files->predictions, files->references[i], n, err);
    }
    if (st != TG_OK) tg_texts_fini(t);
    return st;
}

tg_status tg_texts_read(tg_texts *t, const char *path, tg_error *err) {
    memset(t, 0, sizeof *t);
    if (!path) path = "-";
    size_t n;
    tg_status st = each_line(path, true, take_prediction, t, &n, err);
    if (st == TG_OK && !t->n)
        st = tg_fail(err, TG_DATA, "%s: nothing to score; expected one {\"prediction\": …} a line",
                     name_of(path));
    if (st != TG_OK) tg_texts_fini(t);
    return st;
}

void tg_texts_fini(tg_texts *t) {
    tg_arena_fini(&t->arena);
    memset(t, 0, sizeof *t);
}
