/* JSON lines: one object a line, fields and prompt template by config.
 *
 * The file is mapped, and the index keeps where each sample's line starts, so memory is 16 bytes a
 * sample whatever the file's size. Lines are parsed when a sample is asked for; at opening they are
 * all parsed once (check: all) so that a bad line is found before a run, not in it. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/template.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 64 << 20, MAX_REFERENCES = 1024, MAX_TEXT = 4 << 20, MAX_ID = 256 };

struct options {
    const char *path, *train, *val, *test;
    const char *prompt, *prompt_template, *references, *id, *meta, *weight;
    const char *on_error, *check;
    int64_t max_size;
};
static const tg_opt options[] = {
    TG_OPT_STR(struct options, path, NULL, "One file for all splits."),
    TG_OPT_STR(struct options, train, NULL, "File of the train split."),
    TG_OPT_STR(struct options, val, NULL, "File of the val split."),
    TG_OPT_STR(struct options, test, NULL, "File of the test split."),
    TG_OPT_STR(struct options, prompt, "prompt", "Field with the prompt."),
    {"template", TG_T_STR, TG_OPT_NULLABLE, offsetof(struct options, prompt_template), NULL, 0, 0,
     NULL, "Prompt made of fields, such as \"Summarize: {article}\", instead of one field."},
    TG_OPT_STR(struct options, references, NULL,
               "Field with a text or a list of texts; unset: \"references\" where a line has it."),
    TG_OPT_STR(struct options, id, NULL,
               "Field with the id; unset: \"id\" where a line has it, else SPLIT_INDEX."),
    TG_OPT_STR(struct options, meta, NULL,
               "Field with further data for rewards; unset: \"meta\" where a line has it."),
    TG_OPT_STR(struct options, weight, NULL,
               "Field with the sample's weight for env.args.priority_scale."),
    TG_OPT_STR_ONE_OF(struct options, on_error, "fail", "fail|skip", "What a bad line does."),
    TG_OPT_STR_ONE_OF(struct options, check, "all", "all|lazy",
                      "Parse every line at opening, or only when it is used."),
    TG_OPT_INT(struct options, max_size, "0", 0, 1e15, "Stop after this many samples; 0: all."),
    TG_OPT_END};

typedef struct row {
    uint64_t at, line; /* byte offset, 1-based line number */
} row;

typedef struct pool {
    struct options o;
    const char *file;
    tg_split split;
    tg_filemap map;
    row *rows;
    size_t n, cap;
    uint64_t digest;
} pool;

/* ---- one line ------------------------------------------------------------------------------ */

/* Says where; returns st. */
static tg_status bad_line(const pool *p, uint64_t line, tg_status st, tg_error *err) {
    tg_error_prefix(err, "%s:%" PRIu64 ": ", p->file, line);
    return st;
}

static const char *line_end(const pool *p, uint64_t at) {
    const char *begin = (const char *)p->map.data + at;
    const char *end = memchr(begin, '\n', p->map.len - at);
    return end ? end : (const char *)p->map.data + p->map.len;
}

/* The line's object; *out is owned. */
static tg_status parse_line(const pool *p, row r, json_t **out, tg_error *err) {
    const char *begin = (const char *)p->map.data + r.at;
    size_t len = (size_t)(line_end(p, r.at) - begin);
    json_error_t e;
    *out = NULL;
    tg_status st = TG_OK;
    if (len > MAX_LINE)
        st = tg_fail(err, TG_DATA, "the line is longer than %d MiB", MAX_LINE >> 20);
    else if (!(*out = json_loadb(begin, len, 0, &e)))
        st = tg_fail(err, TG_DATA, "not JSON: %s (column %d)", e.text, e.column);
    else if (!json_is_object(*out))
        st = tg_fail(err, TG_DATA, "expected a JSON object {…}");
    if (st == TG_OK) return TG_OK;
    json_decref(*out);
    *out = NULL;
    return bad_line(p, r.line, st, err);
}

/* "a, b, c": what the object has instead of the missing field. */
static tg_status missing_field(const json_t *object, const char *option, const char *field,
                               tg_error *err) {
    tg_buf keys = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        (void)value;
        if (keys.len > 200) break;
        tg_buf_printf(&keys, "%s%s", keys.len ? ", " : "", key);
    }
    tg_fail(err, TG_DATA, "no field \"%s\" (datapool.args.%s); the line has: %s", field, option,
            keys.data ? keys.data : "nothing");
    tg_buf_fini(&keys);
    return TG_DATA;
}

/* The value of a field that an option names, or of a usual name when the option is unset (then it
 * may be absent). */
static tg_status find_field(const json_t *object, const char *option, const char *named,
                            const char *usual, const json_t **out, tg_error *err) {
    const char *field = named ? named : usual;
    /* NOLINTNEXTLINE: one of the two names is given */
    *out = tg_json_at(object, field, strlen(field));
    if (*out && json_is_null(*out) && !named) *out = NULL;
    if (!*out && named) return missing_field(object, option, field, err);
    return TG_OK;
}

static tg_status copy_text(const json_t *value, const char *what, tg_arena *arena, const char **out,
                           tg_error *err) {
    if (!json_is_string(value)) return tg_fail(err, TG_DATA, "field \"%s\" is not a text", what);
    if (json_string_length(value) > MAX_TEXT)
        return tg_fail(err, TG_DATA, "field \"%s\" is longer than %d MiB", what, MAX_TEXT >> 20);
    *out = tg_arena_strndup(arena, json_string_value(value), json_string_length(value));
    return *out ? TG_OK : tg_fail_nomem(err, json_string_length(value));
}

static tg_status read_prompt(const pool *p, const json_t *object, tg_arena *arena, tg_sample *out,
                             tg_error *err) {
    if (!p->o.prompt_template) {
        const json_t *v;
        tg_status st = find_field(object, "prompt", p->o.prompt, p->o.prompt, &v, err);
        return st == TG_OK ? copy_text(v, p->o.prompt, arena, &out->prompt_text, err) : st;
    }
    tg_buf text = {0};
    tg_status st = tg_template_render(p->o.prompt_template, object, &text, err);
    if (st == TG_OK && text.len > MAX_TEXT)
        st = tg_fail(err, TG_DATA, "the prompt is longer than %d MiB", MAX_TEXT >> 20);
    if (st == TG_OK &&
        !(out->prompt_text = tg_arena_strndup(arena, text.data ? text.data : "", text.len)))
        st = tg_fail_nomem(err, text.len);
    tg_buf_fini(&text);
    return st;
}

static tg_status read_references(const pool *p, const json_t *object, tg_arena *arena,
                                 tg_sample *out, tg_error *err) {
    const char *name = p->o.references ? p->o.references : "references";
    const json_t *v;
    tg_status st = find_field(object, "references", p->o.references, name, &v, err);
    if (st != TG_OK || !v) return st;
    bool list = json_is_array(v);
    size_t n = list ? json_array_size(v) : 1;
    if (n > MAX_REFERENCES)
        return tg_fail(err, TG_DATA, "field \"%s\" has more than %d references", name,
                       MAX_REFERENCES);
    const char **texts = tg_arena_array(arena, n ? n : 1, sizeof *texts);
    if (!texts) return tg_fail_nomem(err, n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        st = copy_text(list ? json_array_get(v, i) : v, name, arena, &texts[i], err);
        if (st != TG_OK) return st;
    }
    out->references = n ? texts : NULL;
    out->n_references = n;
    return TG_OK;
}

static tg_status read_id(const pool *p, const json_t *object, uint64_t index, tg_arena *arena,
                         tg_sample *out, tg_error *err) {
    const json_t *v;
    tg_status st = find_field(object, "id", p->o.id, "id", &v, err);
    if (st != TG_OK) return st;
    char number[64] = "";
    const char *id = number;
    if (!v)
        snprintf(number, sizeof number, "%s_%" PRIu64, tg_split_name(p->split), index);
    else if (json_is_string(v))
        id = json_string_value(v);
    else if (json_is_integer(v))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else
        return tg_fail(err, TG_DATA, "field \"%s\" is not a text or a whole number",
                       p->o.id ? p->o.id : "id");
    if (strlen(id) > MAX_ID) return tg_fail(err, TG_DATA, "the id is longer than %d bytes", MAX_ID);
    out->id = tg_arena_strdup(arena, id);
    return out->id ? TG_OK : tg_fail_nomem(err, strlen(id));
}

static tg_status read_meta(const pool *p, const json_t *object, tg_arena *arena, tg_sample *out,
                           tg_error *err) {
    const json_t *v;
    tg_status st = find_field(object, "meta", p->o.meta, "meta", &v, err);
    if (st != TG_OK || !v) return st;
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) return tg_fail_nomem(err, 1);
    size_t len = strlen(text);
    if (len > MAX_TEXT)
        st = tg_fail(err, TG_DATA, "the meta data is longer than %d MiB", MAX_TEXT >> 20);
    else if (!(out->meta_json = tg_arena_strndup(arena, text, len)))
        st = tg_fail_nomem(err, len);
    free(text);
    return st;
}

static tg_status read_weight(const pool *p, const json_t *object, double *out, tg_error *err) {
    const json_t *v;
    tg_status st = find_field(object, "weight", p->o.weight, p->o.weight, &v, err);
    if (st != TG_OK) return st;
    *out = json_number_value(v);
    if (!json_is_number(v) || !(*out >= 0))
        return tg_fail(err, TG_DATA, "field \"%s\" is not a number of at least 0", p->o.weight);
    return TG_OK;
}

static tg_status read_sample(const pool *p, const json_t *object, uint64_t index, tg_arena *arena,
                             tg_sample *out, tg_error *err) {
    tg_status st = read_prompt(p, object, arena, out, err);
    if (st == TG_OK) st = read_references(p, object, arena, out, err);
    if (st == TG_OK) st = read_id(p, object, index, arena, out, err);
    if (st == TG_OK) st = read_meta(p, object, arena, out, err);
    return st;
}

/* ---- the index ----------------------------------------------------------------------------- */

/* Parses the line as get() and weight() would. */
static tg_status check_line(const pool *p, row r, tg_arena *arena, tg_error *err) {
    json_t *object;
    tg_status st = parse_line(p, r, &object, err);
    if (st != TG_OK) return st;
    tg_sample sample = {0};
    double weight;
    st = read_sample(p, object, p->n, arena, &sample, err);
    if (st == TG_OK && p->o.weight) st = read_weight(p, object, &weight, err);
    if (st != TG_OK) bad_line(p, r.line, st, err);
    json_decref(object);
    tg_arena_reset(arena);
    return st;
}

static bool push_row(pool *p, row r) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 1024;
        row *rows = tg_realloc_array(p->rows, cap, sizeof *rows);
        if (!rows) return false;
        p->rows = rows, p->cap = cap;
    }
    p->rows[p->n++] = r;
    return true;
}

static bool is_blank(const char *begin, const char *end) {
    for (; begin < end; begin++)
        if (*begin != ' ' && *begin != '\t' && *begin != '\r') return false;
    return true;
}

static tg_status build_index(pool *p, tg_error *err) {
    static const char bom[] = "\xEF\xBB\xBF";
    bool skip = !strcmp(p->o.on_error, "skip"), check = skip || !strcmp(p->o.check, "all");
    uint64_t at = 0, line = 0, skipped = 0;
    tg_arena arena = {0};
    tg_error first = {0};
    tg_status st = TG_OK;
    if (p->map.len >= 3 && !memcmp(p->map.data, bom, 3)) at = 3;
    while (st == TG_OK && at < p->map.len && (!p->o.max_size || p->n < (uint64_t)p->o.max_size)) {
        const char *begin = (const char *)p->map.data + at, *end = line_end(p, at);
        row r = {at, ++line};
        at = (uint64_t)(end - (const char *)p->map.data) + 1;
        if (is_blank(begin, end)) continue;
        if (check) st = check_line(p, r, &arena, err);
        if (st == TG_DATA && skip) {
            if (!skipped++ && err) first = *err;
            st = TG_OK;
        } else if (st == TG_OK && !push_row(p, r))
            st = tg_fail_nomem(err, p->cap * sizeof r);
    }
    tg_arena_fini(&arena);
    if (st == TG_OK && skipped)
        tg_log_warn("datapool", "%" PRIu64 " bad lines skipped; the first: %s", skipped, first.msg);
    if (st == TG_OK && p->n == 0)
        st = tg_fail(err, TG_DATA, "%s: no samples%s (expected one JSON object a line)", p->file,
                     skipped ? ", all lines were bad" : "");
    return st;
}

/* ---- the pool ------------------------------------------------------------------------------ */

static tg_status choose_file(const struct options *o, tg_split split, const char **out,
                             tg_error *err) {
    const char *by_split[] = {NULL, o->train, o->val, o->test};
    if (o->path && (o->train || o->val || o->test))
        return tg_fail(
            err, TG_CONFIG,
            "datapool.args: give either path (one file for all splits) or train, val, test");
    if (!o->path && !o->train)
        return tg_fail(
            err, TG_CONFIG,
            "datapool.args: jsonl needs path (one file for all splits) or train (and val, test)");
    *out = o->path ? o->path : by_split[split];
    return TG_OK;
}

static void close_pool(void *state) {
    pool *p = state;
    tg_filemap_close(&p->map);
    tg_free(p->rows);
}

static tg_status open_pool(void *state, const void *opts, tg_split split, uint64_t *count,
                           tg_error *err) {
    pool *p = state;
    p->o = *(const struct options *)opts;
    p->split = split;
    if (p->o.prompt_template) {
        tg_status st = tg_template_check(p->o.prompt_template, err);
        if (st != TG_OK) {
            tg_error_prefix(err, "datapool.args.template: ");
            return st;
        }
    }
    tg_status st = choose_file(&p->o, split, &p->file, err);
    if (st != TG_OK || !p->file) return st;
    st = tg_filemap_open(&p->map, p->file, err);
    if (st == TG_NOINPUT)
        return tg_fail(
            err, TG_NOINPUT,
            "%s: not found; expected a file with one JSON object a line for the %s split", p->file,
            tg_split_name(split));
    if (st != TG_OK) return st;
    p->digest = tg_hash64(p->map.data, p->map.len);
    st = build_index(p, err);
    if (st != TG_OK) close_pool(p);
    *count = p->n;
    return st;
}

static tg_status get(const void *state, uint64_t i, tg_arena *arena, tg_sample *out,
                     tg_error *err) {
    const pool *p = state;
    json_t *object;
    tg_status st = parse_line(p, p->rows[i], &object, err);
    if (st != TG_OK) return st;
    st = read_sample(p, object, i, arena, out, err);
    json_decref(object);
    return st == TG_OK ? st : bad_line(p, p->rows[i].line, st, err);
}

static tg_status weight(const void *state, uint64_t i, double *out, tg_error *err) {
    const pool *p = state;
    *out = 1;
    if (!p->o.weight) return TG_OK;
    json_t *object;
    tg_status st = parse_line(p, p->rows[i], &object, err);
    if (st != TG_OK) return st;
    st = read_weight(p, object, out, err);
    json_decref(object);
    return st == TG_OK ? st : bad_line(p, p->rows[i].line, st, err);
}

static uint64_t digest(const void *state) {
    const pool *p = state;
    return p->digest;
}

const tg_datapool_ops tg_datapool_jsonl = {
    .entry = {.name = "jsonl",
              .summary = "JSON lines; fields and prompt template by config.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(pool),
    .open = open_pool,
    .close = close_pool,
    .get = get,
    .weight = weight,
    .digest = digest,
};
