/* Requests and replies as JSON. A reply comes from a program we do not know: everything in it is checked. */
#include "env-server/reward/score_json.h"

#include "proto/limits.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- request ------------------------------------------------------------------------------- */

static void write_string(tg_buf *out, const char *text) {
    tg_json_string(out, text, strlen(text));
}

static int append(const char *bytes, size_t len, void *buf) {
    tg_buf_append(buf, bytes, len);
    return ((tg_buf *)buf)->failed ? -1 : 0;
}

/* Written anew, on one line. What is no JSON (there should be none) becomes a string. */
static void write_meta(tg_buf *out, const char *meta) {
    json_t *value = *meta ? json_loads(meta, JSON_DECODE_ANY, NULL) : json_null();
    if (!value)
        write_string(out, meta);
    else
        json_dump_callback(value, append, out, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
}

static void write_item(tg_buf *out, const tg_score_text *t) {
    tg_buf_puts(out, "{\"prompt\": ");
    write_string(out, t->item.prompt);
    tg_buf_puts(out, ", \"completion\": ");
    write_string(out, t->item.completion);
    tg_buf_puts(out, ", \"references\": [");
    for (size_t i = 0; i < t->item.n_references; i++) {
        if (i) tg_buf_puts(out, ", ");
        write_string(out, t->item.references[i]);
    }
    tg_buf_puts(out, "], \"meta\": ");
    write_meta(out, t->item.meta_json);
    tg_buf_printf(out, ", \"n_tokens\": %u, \"done\": %s}", t->n_tokens,
                  t->done ? "true" : "false");
}

void tg_score_json_write(tg_buf *out, uint64_t id, const tg_score_call *call) {
    tg_buf_printf(out, "{\"id\": %" PRIu64 ", \"ranked\": %s, \"items\": [", id,
                  call->ranked ? "true" : "false");
    for (size_t i = 0; i < call->n; i++) {
        if (i) tg_buf_puts(out, ", ");
        write_item(out, call->texts[i]);
    }
    tg_buf_puts(out, "]}");
}

/* ---- reply --------------------------------------------------------------------------------- */

static tg_status copy_message(const json_t *error, tg_arena *arena, const char **out,
                              tg_error *err) {
    const char *text = json_string_value(error);
    size_t len = text ? strnlen(text, TG_LIMIT_NOTE / 4) : 0;
    while (len && ((unsigned char)text[len] & 0xC0) == 0x80) len--; /* not within a character */
    *out = !text    ? "the error is not a string"
           : !*text ? "the error is an empty string"
                    : tg_arena_strndup(arena, text, len);
    return *out ? TG_OK : tg_fail_nomem(err, len);
}

static bool finite_number(const json_t *v, double *out) {
    *out = json_is_number(v) ? json_number_value(v) : (double)NAN;
    return isfinite(*out);
}

static tg_status read_components(const json_t *parts, tg_score_result *out, tg_arena *arena,
                                 tg_error *err) {
    const char *name;
    json_t *value;
    if (!parts || json_is_null(parts)) return TG_OK;
    size_t n = json_object_size(parts);
    if (!json_is_object(parts) || n > TG_LIMIT_COMPONENTS)
        return tg_fail(err, TG_DATA, "components: expected an object of at most %d numbers",
                       TG_LIMIT_COMPONENTS);
    tg_component *items = tg_arena_array(arena, n + 1, sizeof *items);
    if (!items) return tg_fail_nomem(err, n * sizeof *items);
    json_object_foreach((json_t *)(uintptr_t)parts, name, value) {
        tg_component *c = &items[out->n_components++];
        if (!*name || strlen(name) > TG_LIMIT_NAME)
            return tg_fail(err, TG_DATA, "components: a name of %zu bytes", strlen(name));
        c->name = tg_arena_strdup(arena, name);
        if (!c->name) return tg_fail_nomem(err, strlen(name));
        c->status = finite_number(value, &c->value) ? TG_REWARD_OK : TG_REWARD_INVALID;
    }
    out->components = items;
    return TG_OK;
}

static tg_status read_result(const json_t *v, tg_score_result *out, tg_arena *arena,
                             tg_error *err) {
    const json_t *error = json_object_get(v, "error");
    out->message = "";
    if (error && !json_is_null(error)) {
        out->status = TG_REWARD_FAILED;
        out->value = (double)NAN;
        return copy_message(error, arena, &out->message, err);
    }
    const json_t *value = json_is_object(v) ? json_object_get(v, "value") : v;
    if (finite_number(value, &out->value)) {
        out->status = TG_REWARD_OK;
    } else {
        out->status = TG_REWARD_INVALID;
        out->message = "the value is not a finite number";
    }
    return read_components(json_object_get(v, "components"), out, arena, err);
}

static tg_status read_reply(const json_t *root, const uint64_t *want_id, size_t n,
                            tg_score_result *results, tg_arena *arena, tg_error *err) {
    if (!json_is_object(root)) return tg_fail(err, TG_DATA, "the answer is not a JSON object");
    const json_t *id = json_object_get(root, "id");
    if (want_id && (!json_is_integer(id) || (uint64_t)json_integer_value(id) != *want_id))
        return tg_fail(err, TG_DATA, "the answer does not have the id %" PRIu64 " of the request",
                       *want_id);
    const json_t *error = json_object_get(root, "error");
    if (error && !json_is_null(error)) {
        const char *why;
        tg_status st = copy_message(error, arena, &why, err);
        return st == TG_OK ? tg_fail(err, TG_UNAVAILABLE, "%.600s", why) : st;
    }
    const json_t *list = json_object_get(root, "results");
    if (!json_is_array(list))
        return tg_fail(err, TG_DATA, "the answer has neither a list \"results\" nor an \"error\"");
    if (json_array_size(list) != n)
        return tg_fail(err, TG_DATA, "the answer has %zu results for %zu texts",
                       json_array_size(list), n);
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++)
        st = read_result(json_array_get(list, i), &results[i], arena, err);
    return st;
}

tg_status tg_score_json_read(const char *text, size_t len, const uint64_t *want_id, size_t n,
                             tg_score_result *results, tg_arena *arena, tg_error *err) {
    json_error_t where;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!root) return tg_fail(err, TG_DATA, "the answer is not JSON: %.200s", where.text);
    tg_status st = read_reply(root, want_id, n, results, arena, err);
    json_decref(root);
    return st;
}
