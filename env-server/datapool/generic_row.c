/* From a row of any layout to a sample: prompt, references, id, meta and weight out of the fields that the config names. */
#include "common/base/str.h"
#include "env-server/datapool/generic_impl.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/datapool/template.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REFERENCES = 1024, MAX_ID = 256 };

/* The value of a field that an option names, or of a usual name when the option is unset (then it
 * may be absent). */
static tg_status find_field(const json_t *row, const char *option, const char *named,
                            const char *usual, const json_t **out, tg_error *err) {
    const char *field = named ? named : usual;
    /* NOLINTNEXTLINE: one of the two names is given */
    *out = tg_json_at(row, field, strlen(field));
    if (*out && json_is_null(*out)) *out = NULL;
    if (*out || !named) return TG_OK;
    if (tg_row_field(row, field, err)) tg_fail(err, TG_DATA, "no field \"%s\"", field);
    tg_error_prefix(err, "datapool.args.%s: ", option);
    return TG_DATA;
}

static tg_status render(const char *template, const json_t *row, tg_arena *arena, const char **out,
                        tg_error *err) {
    tg_buf text = {0};
    tg_status st = tg_template_render(template, row, &text, err);
    if (st == TG_OK && text.len > TG_ROW_TEXT_MAX)
        st = tg_fail(err, TG_DATA, "the text is longer than %d MiB", TG_ROW_TEXT_MAX >> 20);
    if (st == TG_OK && !(*out = tg_arena_strndup(arena, text.data ? text.data : "", text.len)))
        st = tg_fail_nomem(err, text.len);
    tg_buf_fini(&text);
    return st;
}

static tg_status put_prompt(const tg_generic_options *o, const json_t *row, tg_arena *arena,
                            tg_sample *out, tg_error *err) {
    if (o->prompt_template) return render(o->prompt_template, row, arena, &out->prompt_text, err);
    const json_t *v;
    const char *field = o->prompt ? o->prompt : "prompt";
    tg_status st = find_field(row, "prompt", field, field, &v, err);
    const char *text = st == TG_OK ? tg_value_text(v, field, err) : NULL;
    if (!text) return TG_DATA;
    out->prompt_text = tg_arena_strdup(arena, text);
    return out->prompt_text ? TG_OK : tg_fail_nomem(err, strlen(text));
}

static tg_status put_references(const tg_generic_options *o, const json_t *row, tg_arena *arena,
                                tg_sample *out, tg_error *err) {
    if (o->reference_template) {
        tg_status st = tg_sample_references(out, 1, arena, err);
        return st == TG_OK ? render(o->reference_template, row, arena, &out->references[0], err)
                           : st;
    }
    const char *name = o->references ? o->references : "references";
    const json_t *v;
    tg_status st = find_field(row, "references", o->references, name, &v, err);
    if (st != TG_OK || !v) return st;
    bool list = json_is_array(v);
    size_t n = list ? json_array_size(v) : 1;
    if (n > MAX_REFERENCES)
        return tg_fail(err, TG_DATA, "field \"%s\" has more than %d references", name,
                       MAX_REFERENCES);
    st = tg_sample_references(out, n, arena, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        const char *text = tg_value_text(list ? json_array_get(v, i) : v, name, err);
        st = text ? tg_sample_reference(out, i, text, strlen(text), arena, err) : TG_DATA;
    }
    return st;
}

static tg_status put_id(const tg_rowpool *p, const json_t *row, uint64_t number, tg_arena *arena,
                        tg_sample *out, tg_error *err) {
    const tg_generic_options *o = p->options;
    const json_t *v;
    tg_status st = find_field(row, "id", o->id, "id", &v, err);
    if (st != TG_OK) return st;
    if (!v) return tg_sample_number(out, p->split, number, arena, err);
    char text[64];
    const char *id = text;
    if (json_is_string(v))
        id = json_string_value(v);
    else if (json_is_integer(v))
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else
        return tg_fail(err, TG_DATA, "field \"%s\" is not a text or a whole number",
                       o->id ? o->id : "id");
    if (strlen(id) > MAX_ID) return tg_fail(err, TG_DATA, "the id is longer than %d bytes", MAX_ID);
    out->id = tg_arena_strdup(arena, id);
    return out->id ? TG_OK : tg_fail_nomem(err, strlen(id));
}

static tg_status put_meta(const tg_generic_options *o, const json_t *row, tg_arena *arena,
                          tg_sample *out, tg_error *err) {
    const json_t *v;
    tg_status st = find_field(row, "meta", o->meta, "meta", &v, err);
    return st == TG_OK && v ? tg_sample_meta(out, json_incref((json_t *)v), arena, err) : st;
}

static tg_status read_weight(const tg_generic_options *o, const json_t *row, double *out,
                             tg_error *err) {
    const json_t *v;
    *out = 1;
    if (!o->weight) return TG_OK;
    tg_status st = find_field(row, "weight", o->weight, o->weight, &v, err);
    if (st != TG_OK) return st;
    *out = json_number_value(v);
    bool number =
        json_is_number(v) || (json_is_string(v) && tg_parse_f64(json_string_value(v), out));
    if (!number || !(*out >= 0) || !isfinite(*out))
        return tg_fail(err, TG_DATA, "field \"%s\" is not a finite number of at least 0",
                       o->weight);
    return TG_OK;
}

tg_status tg_generic_make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                          tg_sample *out, tg_error *err) {
    const json_t *row = picked->rows[0];
    tg_status st = put_prompt(p->options, row, arena, out, err);
    if (st == TG_OK) st = put_references(p->options, row, arena, out, err);
    if (st == TG_OK) st = put_id(p, row, picked->number, arena, out, err);
    if (st == TG_OK) st = put_meta(p->options, row, arena, out, err);
    return st;
}

tg_status tg_generic_inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                             tg_error *err) {
    (void)info;
    tg_arena arena = {0};
    tg_sample sample = {0};
    json_t *rows[] = {(json_t *)row};
    const tg_picked picked = {rows, 1, 0, 0, 0};
    double weight;
    tg_status st = tg_generic_make(p, &picked, &arena, &sample, err);
    if (st == TG_OK) st = read_weight(p->options, row, &weight, err);
    tg_arena_fini(&arena);
    return st;
}

tg_status tg_generic_weight(const void *state, uint64_t i, double *out, tg_error *err) {
    const tg_rowpool *p = state;
    const tg_generic_options *o = p->options;
    *out = 1;
    if (!o->weight) return TG_OK;
    json_t *row;
    tg_status st = tg_rowpool_row(p, i, &row, err);
    if (st == TG_OK) st = read_weight(o, row, out, err);
    json_decref(row);
    return st;
}
