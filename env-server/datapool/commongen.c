/* CommonGen: a sentence with given concepts. Rows are the hub's ({concepts, target, references}) or
 * the native ones ({"concept_set": "a#b", "scene": […]}): of these a train row gives a sample for
 * each scene, a val row one with the first scene, as the hub's loader does. */
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"

#include <string.h>

struct options {
    tg_pool_common common;
    const char *concept_separator_token, *concept_end_token, *prefix;
    bool group;
};
static const tg_opt options[] = {
    TG_OPT_STR(struct options, concept_separator_token, " ", "Between two concepts."),
    TG_OPT_STR(struct options, concept_end_token, " ", "Behind the last concept."),
    TG_OPT_STR(struct options, prefix, "summarize: ", "Before the first concept."),
    TG_OPT_BOOL(struct options, group, "false",
                "One sample for each set of concepts, with all its references."),
    TG_POOL_OPTIONS(struct options),
    TG_OPT_END};

static const tg_dataset dataset = {
    .title = "CommonGen",
    .names = {"commongen", "common_gen"},
    .hub = {"GEM/gem", "GEM/common_gen", NULL},
    .config = "common_gen",
    .layout =
        "commongen.{train,dev,test_noref}.jsonl with concept_set and scene, or train, validation "
        "and test files with concepts, target and references;",
};

/* ---- rows ---------------------------------------------------------------------------------- */

static bool is_native(const json_t *row) {
    return json_object_get(row, "concept_set") != NULL;
}

/* The scenes of a native row; an empty list where it has none. NULL: bad. */
static const json_t *scenes_of(const json_t *row, tg_error *err) {
    return json_object_get(row, "scene") ? tg_row_texts(row, "scene", err)
                                         : json_object_get(row, "concept_set");
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    const struct options *o = p->options;
    if (!is_native(row)) {
        if (!tg_row_texts(row, "concepts", err) || !tg_row_text(row, "target", err)) return TG_DATA;
        return TG_OK;
    }
    const json_t *scenes = scenes_of(row, err);
    if (!scenes || !tg_row_text(row, "concept_set", err)) return TG_DATA;
    if (p->split == TG_SPLIT_TRAIN && !o->group && json_is_array(scenes))
        info->samples = info->advance = json_array_size(scenes);
    return TG_OK;
}

/* The concepts as a list; owned. */
static json_t *concepts_of(const json_t *row) {
    if (!is_native(row)) return json_deep_copy(json_object_get(row, "concepts"));
    json_t *list = json_array();
    const char *at = json_string_value(json_object_get(row, "concept_set"));
    while (list && at) {
        size_t n = strcspn(at, "#");
        json_array_append_new(list, json_stringn(at, n));
        at = at[n] ? at + n + 1 : NULL;
    }
    return list;
}

static void put_prompt(const struct options *o, const json_t *concepts, tg_buf *out) {
    if (o->prefix) tg_buf_puts(out, o->prefix);
    for (size_t i = 0; i < json_array_size(concepts); i++) {
        if (i && o->concept_separator_token) tg_buf_puts(out, o->concept_separator_token);
        tg_buf_puts(out, json_string_value(json_array_get(concepts, i)));
    }
    if (o->concept_end_token) tg_buf_puts(out, o->concept_end_token);
}

static tg_status group_key(const tg_rowpool *p, const json_t *row, tg_buf *key, tg_error *err) {
    (void)err;
    json_t *concepts = concepts_of(row);
    put_prompt(p->options, concepts, key);
    json_decref(concepts);
    return TG_OK;
}

/* ---- references ---------------------------------------------------------------------------- */

/* Metrics need a text, so an empty target becomes one. */
static const char *or_empty(const char *target) {
    return *target ? target : "empty reference";
}

static const char *target_of(const tg_rowpool *p, const json_t *row, uint64_t sub) {
    if (!is_native(row)) return or_empty(json_string_value(json_object_get(row, "target")));
    const json_t *scene =
        p->split == TG_SPLIT_TEST ? NULL : json_array_get(json_object_get(row, "scene"), sub);
    return or_empty(scene ? json_string_value(scene) : "");
}

/* All references of a row when rows are grouped; NULL: its target alone. */
static const json_t *all_of(const json_t *row, tg_error *err) {
    const char *name = is_native(row) ? "scene" : "references";
    const json_t *list = json_object_get(row, name);
    return json_array_size(list) ? tg_row_texts(row, name, err) : NULL;
}

static tg_status put_grouped(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                             tg_sample *out, tg_error *err) {
    size_t n = 0, k = 0;
    for (size_t r = 0; r < picked->n_rows; r++) {
        const json_t *list = all_of(picked->rows[r], err);
        n += list ? json_array_size(list) : 1;
    }
    tg_status st = tg_sample_references(out, n, arena, err);
    for (size_t r = 0; r < picked->n_rows && st == TG_OK; r++) {
        const json_t *list = all_of(picked->rows[r], err);
        for (size_t i = 0; i < (list ? json_array_size(list) : 1) && st == TG_OK; i++) {
            const char *text = list ? json_string_value(json_array_get(list, i))
                                    : target_of(p, picked->rows[r], 0);
            st = tg_sample_reference(out, k++, text, strlen(text), arena, err);
        }
    }
    return st;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    tg_row_info info = {1, 1};
    tg_status st = inspect(p, picked->rows[0], &info, err);
    if (st != TG_OK) return st;
    const struct options *o = p->options;
    json_t *concepts = concepts_of(picked->rows[0]);
    tg_buf prompt = {0};
    put_prompt(o, concepts, &prompt);
    st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK && o->group)
        st = put_grouped(p, picked, arena, out, err);
    else if (st == TG_OK)
        st = tg_sample_only(out, target_of(p, picked->rows[0], picked->sub), arena, err);
    if (st == TG_OK) st = tg_sample_number(out, p->split, picked->number + picked->sub, arena, err);
    if (st == TG_OK) st = tg_sample_meta(out, json_pack("{s:O}", "concepts", concepts), arena, err);
    json_decref(concepts);
    return st;
}

static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const structured[] = {"concepts", "references", "scene", NULL};
    static const char *const columns[] = {"concepts", "target",      "references",
                                          "scene",    "concept_set", NULL};
    static const tg_recipe single = {
        .structured = structured, .inspect = inspect, .must_inspect = true, .make = make};
    static const tg_recipe grouped = {.structured = structured,
                                      .inspect = inspect,
                                      .must_inspect = true,
                                      .group_key = group_key,
                                      .make = make};
    const struct options *o = opts;
    tg_rowpool *p =
        tg_rowpool_init(state, o->group ? &grouped : &single, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &dataset, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_commongen = {
    .entry = {.name = "commongen",
              .summary = "CommonGen: a sentence with given concepts.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_pool,
    TG_ROWPOOL_OPS,
};
