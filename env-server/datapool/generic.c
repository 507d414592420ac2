/* Rows of any layout: JSON lines, separated text, Parquet and plain text, with fields and templates
 * by config. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/str.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/datapool/table/files.h"
#include "env-server/datapool/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_REFERENCES = 1024, MAX_ID = 256, MAX_COLUMNS = 64 };

struct options {
    tg_pool_common common;
    const char *prompt, *prompt_template, *references, *reference_template, *id, *meta, *weight;
    const char *on_error, *unit;
    const tg_node *ratios;
};
#define FIELDS(default_prompt)                                                                     \
    TG_OPT_STR(struct options, prompt, default_prompt, "Field with the prompt."),                  \
        TG_OPT_ROW_KEY("template", struct options, prompt_template, TG_T_STR, TG_OPT_NULLABLE,     \
                       NULL, 0, 0, NULL,                                                           \
                       "Prompt made of fields, such as \"Summarize: {article}\", instead of one "  \
                       "field."),                                                                  \
        TG_OPT_STR(struct options, references, NULL,                                               \
                   "Field with a text or a list of texts; unset: \"references\" where a row has "  \
                   "it."),                                                                         \
        TG_OPT_STR(struct options, reference_template, NULL,                                       \
                   "The reference made of fields, instead of references."),                        \
        TG_OPT_STR(struct options, id, NULL,                                                       \
                   "Field with the id; unset: \"id\" where a row has it, else SPLIT_INDEX."),      \
        TG_OPT_STR(struct options, meta, NULL,                                                     \
                   "Field with further data for rewards; unset: \"meta\" where a row has it."),    \
        TG_OPT_STR(struct options, weight, NULL,                                                   \
                   "Field with the sample's weight for env.args.priority_scale."),                 \
        TG_OPT_NODE(struct options, ratios,                                                        \
                    "Parts of path for train, val and test, such as [0.8, 0.1, 0.1]; unset: all "  \
                    "of it for each.")
static const tg_opt row_options[] = {FIELDS("prompt"), TG_POOL_OPTIONS(struct options), TG_OPT_END};
static const tg_opt jsonl_options[] = {FIELDS("prompt"), TG_POOL_OPTIONS(struct options),
                                       TG_OPT_ROW(struct options, on_error, TG_T_STR,
                                                  TG_OPT_NULLABLE, NULL, 0, 0, "fail|skip",
                                                  "Earlier name of on_bad_row."),
                                       TG_OPT_END};
static const tg_opt text_options[] = {
    TG_OPT_STR_ONE_OF(struct options, unit, "file", "file|line", "What a sample is."),
    FIELDS("text"), TG_POOL_OPTIONS(struct options), TG_OPT_END};

/* ---- one row ------------------------------------------------------------------------------- */

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

static tg_status put_prompt(const struct options *o, const json_t *row, tg_arena *arena,
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

static tg_status put_references(const struct options *o, const json_t *row, tg_arena *arena,
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
    const struct options *o = p->options;
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

static tg_status put_meta(const struct options *o, const json_t *row, tg_arena *arena,
                          tg_sample *out, tg_error *err) {
    const json_t *v;
    tg_status st = find_field(row, "meta", o->meta, "meta", &v, err);
    return st == TG_OK && v ? tg_sample_meta(out, json_incref((json_t *)v), arena, err) : st;
}

static tg_status read_weight(const struct options *o, const json_t *row, double *out,
                             tg_error *err) {
    const json_t *v;
    *out = 1;
    if (!o->weight) return TG_OK;
    tg_status st = find_field(row, "weight", o->weight, o->weight, &v, err);
    if (st != TG_OK) return st;
    *out = json_number_value(v);
    bool number =
        json_is_number(v) || (json_is_string(v) && tg_parse_f64(json_string_value(v), out));
    if (!number || !(*out >= 0))
        return tg_fail(err, TG_DATA, "field \"%s\" is not a number of at least 0", o->weight);
    return TG_OK;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    const json_t *row = picked->rows[0];
    tg_status st = put_prompt(p->options, row, arena, out, err);
    if (st == TG_OK) st = put_references(p->options, row, arena, out, err);
    if (st == TG_OK) st = put_id(p, row, picked->number, arena, out, err);
    if (st == TG_OK) st = put_meta(p->options, row, arena, out, err);
    return st;
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    (void)info;
    tg_arena arena = {0};
    tg_sample sample = {0};
    json_t *rows[] = {(json_t *)row};
    const tg_picked picked = {rows, 1, 0, 0, 0};
    double weight;
    tg_status st = make(p, &picked, &arena, &sample, err);
    if (st == TG_OK) st = read_weight(p->options, row, &weight, err);
    tg_arena_fini(&arena);
    return st;
}

static tg_status weight(const void *state, uint64_t i, double *out, tg_error *err) {
    const tg_rowpool *p = state;
    const struct options *o = p->options;
    *out = 1;
    if (!o->weight) return TG_OK;
    json_t *row;
    tg_status st = tg_rowpool_row(p, i, &row, err);
    if (st == TG_OK) st = read_weight(o, row, out, err);
    json_decref(row);
    return st;
}

/* ---- tables -------------------------------------------------------------------------------- */

typedef tg_status (*opener)(const tg_rowpool *p, const char *path, const char *const *columns,
                            tg_table *out, tg_error *err);

static tg_status open_jsonl(const tg_rowpool *p, const char *path, const char *const *columns,
                            tg_table *out, tg_error *err) {
    (void)p;
    (void)columns;
    return tg_table_open_jsonl(out, path, err);
}
static tg_status open_csv(const tg_rowpool *p, const char *path, const char *const *columns,
                          tg_table *out, tg_error *err) {
    static const tg_csv_format format = {.separator = ','};
    (void)p;
    (void)columns;
    return tg_table_open_csv(out, path, &format, err);
}
static tg_status open_tsv(const tg_rowpool *p, const char *path, const char *const *columns,
                          tg_table *out, tg_error *err) {
    static const tg_csv_format format = {.separator = '\t'};
    (void)p;
    (void)columns;
    return tg_table_open_csv(out, path, &format, err);
}
static tg_status open_parquet(const tg_rowpool *p, const char *path, const char *const *columns,
                              tg_table *out, tg_error *err) {
    (void)p;
    return tg_table_open_parquet(out, path, columns, err);
}

/* The text files of a folder (of its part for the split, where it has one), or one file. */
static tg_status list_texts(const tg_rowpool *p, const char *path, tg_files *files, tg_error *err) {
    if (!tg_path_is_dir(path)) return tg_files_push(files, tg_strdup(path), err);
    tg_files below = {0};
    tg_status st = tg_files_list(&below, path, NULL, err);
    for (size_t i = 0; i < below.n && st == TG_OK; i++) {
        const char *name = tg_file_name(below.paths[i]);
        if (!tg_split_named(name, p->split)) continue;
        if (tg_path_is_dir(below.paths[i]))
            st = tg_files_list(files, below.paths[i], ".txt", err);
        else if (tg_str_ends(name, ".txt") || tg_str_ends(name, ".txt.gz"))
            st = tg_files_push(files, tg_strdup(below.paths[i]), err);
    }
    tg_files_fini(&below);
    if (st == TG_OK && !files->n) st = tg_files_list(files, path, ".txt", err);
    if (st == TG_OK && !files->n)
        st = tg_fail(err, TG_NOINPUT, "%s: no .txt files for the %s split", path,
                     tg_split_name(p->split));
    return st;
}

static tg_status open_text(const tg_rowpool *p, const char *path, const char *const *columns,
                           tg_table *out, tg_error *err) {
    const struct options *o = p->options;
    tg_files files = {0};
    (void)columns;
    tg_status st = list_texts(p, path, &files, err);
    if (st == TG_OK && !strcmp(o->unit, "file")) {
        size_t n;
        tg_files_sort_by_number(&files);
        char **paths = tg_files_take(&files, &n);
        return tg_table_open_texts(out, paths, n, err);
    }
    tg_table *parts = tg_alloc_array(files.n ? files.n : 1, sizeof *parts);
    size_t n = 0;
    if (st == TG_OK && !parts) st = tg_fail_nomem(err, files.n);
    for (; n < files.n && st == TG_OK; n++)
        st = tg_table_open_lines(&parts[n], files.paths[n], err);
    if (st == TG_OK)
        st = tg_table_concat(out, parts, n, err);
    else
        for (size_t i = 0; parts && i < n; i++) tg_table_close(&parts[i]);
    tg_free(parts);
    tg_files_fini(&files);
    return st;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* *file NULL: the config leaves the split out. */
static tg_status choose_file(const struct options *o, const char *pool, tg_split split,
                             const char **file, tg_error *err) {
    const tg_pool_common *c = &o->common;
    const char *by_split[] = {NULL, c->train, c->val, c->test};
    if (c->path && (c->train || c->val || c->test))
        return tg_fail(
            err, TG_CONFIG,
            "datapool.args: give either path (one file for all splits) or train, val, test");
    if (!c->path && !c->train)
        return tg_fail(
            err, TG_CONFIG,
            "datapool.args: %s needs path (one file for all splits) or train (and val, test)",
            pool);
    if (!c->path && !tg_node_is_null(o->ratios))
        return tg_fail(err, TG_CONFIG,
                       "datapool.args.ratios: needs path (one file for all splits)");
    *file = c->path ? c->path : by_split[split];
    return TG_OK;
}

static tg_status check_templates(const struct options *o, tg_error *err) {
    const char *const texts[] = {o->prompt_template, o->reference_template};
    static const char *const names[] = {"template", "reference_template"};
    for (size_t i = 0; i < 2; i++) {
        tg_status st = texts[i] ? tg_template_check(texts[i], err) : TG_OK;
        if (st != TG_OK) {
            tg_error_prefix(err, "datapool.args.%s: ", names[i]);
            return st;
        }
    }
    return TG_OK;
}

/* What a columnar file is read for. */
static tg_status list_columns(const struct options *o, tg_arena *arena, const char **columns,
                              tg_error *err) {
    const char *const fields[] = {o->prompt_template ? NULL : o->prompt,
                                  o->references ? o->references : "references",
                                  o->id ? o->id : "id", o->meta ? o->meta : "meta", o->weight};
    size_t n = 0;
    tg_filter filter;
    tg_status st = tg_filter_read(&filter, o->common.filter, err);
    if (st != TG_OK) return st;
    const char *roots[MAX_COLUMNS];
    size_t n_roots = tg_filter_fields(&filter, roots, 16);
    for (size_t i = 0; i < n_roots; i++) columns[n++] = tg_arena_strdup(arena, roots[i]);
    tg_filter_fini(&filter);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i]) columns[n++] = tg_arena_strndup(arena, fields[i], strcspn(fields[i], "."));
    const char *const templates[] = {o->prompt_template, o->reference_template};
    for (size_t i = 0; i < 2; i++) {
        const char *at = templates[i], *field;
        size_t len;
        while (at && tg_template_next(&at, &field, &len)) {
            if (n + 1 == MAX_COLUMNS)
                return tg_fail(err, TG_CONFIG, "datapool.args.template: too many fields");
            const char *dot = memchr(field, '.', len);
            columns[n++] = tg_arena_strndup(arena, field, dot ? (size_t)(dot - field) : len);
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!columns[i]) return tg_fail_nomem(err, 64);
    columns[n] = NULL;
    return TG_OK;
}

/* RL4LMs's split(): each part is the whole number of samples below n times the ratio. */
static tg_status cut(tg_rowpool *p, const struct options *o, tg_error *err) {
    double ratios[3], sum = 0;
    const tg_node *node = o->ratios;
    if (tg_node_is_null(node)) return TG_OK;
    bool ok = node->kind == TG_NODE_LIST && node->n_items >= 1 && node->n_items <= 3;
    for (size_t i = 0; ok && i < 3; i++) {
        ratios[i] = 0;
        if (i < node->n_items)
            ok = tg_node_float(node->items[i], &ratios[i]) && ratios[i] >= 0 && ratios[i] <= 1;
        sum += ratios[i];
    }
    if (!ok || sum > 1 + 1e-9)
        return tg_node_fail(node, "datapool.args.ratios", err,
                            "expected up to three numbers of at least 0 that add up to at most 1");
    uint64_t n = p->table.count, begin = 0, size = 0;
    for (int i = 0; i <= (int)p->split - TG_SPLIT_TRAIN; i++) {
        begin += size;
        size = (uint64_t)((double)n * ratios[i]);
    }
    if (p->shuffle != INT64_MIN) { /* of the whole, so that the parts stay disjoint */
        p->order = tg_alloc_array(n ? n : 1, sizeof *p->order);
        if (!p->order) return tg_fail_nomem(err, n * sizeof *p->order);
        for (uint64_t i = 0; i < n; i++)
            p->order[i] = tg_permute((uint64_t)p->shuffle, TG_RNG_DATA, 0, i, n);
        p->shuffle = INT64_MIN;
    }
    p->begin = begin;
    p->end = begin + size;
    p->sliced = true;
    return TG_OK;
}

static tg_status open_table(tg_rowpool *p, opener open, const char *file, tg_error *err) {
    const char *columns[MAX_COLUMNS];
    tg_arena arena = {0};
    tg_status st = list_columns(p->options, &arena, columns, err);
    bool folder = open != open_text && tg_path_is_dir(file);
    if (st == TG_OK && folder)
        st = tg_dataset_open_folder(file, p->split, columns, &p->table, err);
    else if (st == TG_OK)
        st = open(p, file, columns, &p->table, err);
    if (st == TG_NOINPUT && !folder && !tg_path_exists(file))
        st = tg_fail(err, TG_NOINPUT, "%s: not found; expected %s for the %s split", file,
                     open == open_jsonl     ? "a file with one JSON object a line"
                     : open == open_parquet ? "a Parquet file"
                     : open == open_text    ? "a text file or a folder of them"
                                            : "a file with the names of its columns first",
                     tg_split_name(p->split));
    tg_arena_fini(&arena);
    return st;
}

static tg_status open_pool(void *state, const char *name, opener open, const void *options,
                           const tg_datapool_context *context, tg_split split, uint64_t *count,
                           tg_error *err) {
    static const char *const none[] = {NULL};
    static const tg_recipe recipe = {.structured = none, .inspect = inspect, .make = make};
    const struct options *o = options;
    const char *file = NULL;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    if (o->on_error) p->skip_bad |= !strcmp(o->on_error, "skip");
    tg_status st = check_templates(o, err);
    if (st == TG_OK) st = choose_file(o, name, split, &file, err);
    if (st != TG_OK || !file) return st;
    st = open_table(p, open, file, err);
    if (st == TG_OK && !p->table.ops) { /* a folder without files of this split */
        if (split != TG_SPLIT_TRAIN) {
            tg_log_info("datapool", "%s has no %s split", file, tg_split_name(split));
            return TG_OK;
        }
        st = tg_fail(err, TG_NOINPUT, "%s: no file of the train split, such as train.jsonl", file);
    }
    if (st == TG_OK) st = cut(p, o, err);
    if (st == TG_OK && p->sliced && p->begin == p->end) { /* its ratio is 0 */
        tg_rowpool_close(p);
        return TG_OK;
    }
    return tg_rowpool_finish(p, st, count, err);
}

#define POOL(id, text, table)                                                                      \
    static tg_status open_pool_##id(void *state, const void *options,                              \
                                    const tg_datapool_context *context, tg_split split,            \
                                    uint64_t *count, tg_error *err) {                              \
        return open_pool(state, #id, open_##id, options, context, split, count, err);              \
    }                                                                                              \
    const tg_datapool_ops tg_datapool_##id = {                                                     \
        .entry = {.name = #id,                                                                     \
                  .summary = text,                                                                 \
                  .options = table,                                                                \
                  .options_size = sizeof(struct options),                                          \
                  .built = true},                                                                  \
        .open = open_pool_##id,                                                                    \
        .weight = weight,                                                                          \
        TG_ROWPOOL_OPS,                                                                            \
    }

POOL(jsonl, "JSON lines; fields and prompt template by config.", jsonl_options);
POOL(csv, "Comma-separated text; fields and prompt template by config.", row_options);
POOL(tsv, "Tab-separated text; fields and prompt template by config.", row_options);
POOL(parquet, "Parquet files; fields and prompt template by config.", row_options);
POOL(text, "Plain text: a sample for each file of a folder, or for each line.", text_options);
