/* ToTTo: a sentence about highlighted table cells. The prompt is the table as text twice, without and
 * with its titles, as RL4LMs has it.
 *
 * Native rows and those of the hub differ in details (ids, annotations, truth values as texts); the
 * meta data has RL4LMs's shape for both. */
#include "env-server/datapool/totto_text.h"

#include "env-server/datapool/dataset.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    tg_pool_common common;
    const char *representation;
};
static const tg_opt options[] = {TG_OPT_STR_ONE_OF(struct options, representation, "subtable",
                                                   "subtable|fulltable",
                                                   "What of the table is shown."),
                                 TG_POOL_OPTIONS(struct options), TG_OPT_END};

static const tg_dataset dataset = {
    .title = "ToTTo",
    .names = {"totto_data", "totto"},
    .hub = {"google-research-datasets/totto", "GEM/totto", NULL},
    .layout =
        "totto_data/totto_{train,dev}_data.jsonl and unlabeled_totto_test_data.jsonl, or train, "
        "validation and test files with the hub's columns;",
};

static const char *const steps[] = {"original_sentence", "sentence_after_deletion",
                                    "sentence_after_ambiguity", "final_sentence"};
enum { STEPS = sizeof steps / sizeof *steps, FINAL = STEPS - 1 };

/* ---- annotations --------------------------------------------------------------------------- */

/* How many there are, as a list of objects (native) or an object of lists (the hub's). */
static bool count_annotations(const json_t *a, size_t *n, tg_error *err) {
    *n = json_is_array(a) ? json_array_size(a) : json_array_size(json_object_get(a, steps[FINAL]));
    for (size_t k = 0; k < STEPS; k++)
        for (size_t i = 0; i < *n; i++) {
            const json_t *text = json_is_array(a) ? json_object_get(json_array_get(a, i), steps[k])
                                                  : json_array_get(json_object_get(a, steps[k]), i);
            if (!tg_value_text(text, steps[k], err)) {
                tg_error_prefix(err, "\"sentence_annotations\": ");
                return false;
            }
        }
    return true;
}

static const char *annotation(const json_t *a, size_t i, size_t k) {
    return json_string_value(json_is_array(a) ? json_object_get(json_array_get(a, i), steps[k])
                                              : json_array_get(json_object_get(a, steps[k]), i));
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    (void)p;
    (void)info;
    tg_totto_table table;
    size_t n;
    const json_t *a = json_object_get(row, "sentence_annotations");
    tg_status st = tg_totto_table_read(row, &table, err);
    return st != TG_OK || !a || json_is_null(a) || count_annotations(a, &n, err) ? st : TG_DATA;
}

/* As RL4LMs hands them on; a test row has one, of "none" where the file has no annotations. */
static json_t *annotation_list(const tg_rowpool *p, const json_t *a, size_t n) {
    json_t *list = json_array();
    size_t wanted = p->split == TG_SPLIT_TEST ? 1 : n;
    for (size_t i = 0; i < wanted && list; i++) {
        json_t *one = json_object();
        for (size_t k = 0; k < STEPS && one; k++)
            json_object_set_new(one, steps[k], json_string(i < n ? annotation(a, i, k) : "none"));
        json_array_append_new(list, one);
    }
    return list;
}

/* ---- meta data ----------------------------------------------------------------------------- */

static json_t *example_id(const json_t *row) {
    const json_t *v = json_object_get(row, "example_id");
    char number[32];
    if (!json_is_integer(v)) return v ? json_copy((json_t *)v) : json_string("");
    snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    return json_string(number);
}

static bool is_overlap(const json_t *row) {
    const json_t *v = json_object_get(row, "overlap_subset");
    const char *text = json_string_value(v);
    return text ? !strcmp(text, "True") : json_is_true(v);
}

static json_t *raw_table(const tg_rowpool *p, const tg_picked *picked, const json_t *a, size_t n) {
    static const char *const copied[] = {"table_page_title",
                                         "table_webpage_url",
                                         "table_section_title",
                                         "table_section_text",
                                         "table",
                                         "highlighted_cells"};
    const json_t *row = picked->rows[0], *id = json_object_get(row, "id");
    json_t *out = json_object();
    if (!out) return NULL;
    json_object_set_new(out, "id",
                        json_is_integer(id) ? json_copy((json_t *)id)
                                            : json_integer((json_int_t)picked->number));
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        json_t *v = json_object_get(row, copied[i]);
        if (v) json_object_set(out, copied[i], v);
    }
    json_object_set_new(out, "example_id", example_id(row));
    json_object_set_new(out, "overlap_subset", json_boolean(is_overlap(row)));
    json_object_set_new(out, "sentence_annotations", annotation_list(p, a, n));
    return json_pack("{s:o}", "raw_table", out);
}

/* ---- samples ------------------------------------------------------------------------------- */

static tg_status put_references(const tg_rowpool *p, const json_t *a, size_t n, tg_arena *arena,
                                tg_sample *out, tg_error *err) {
    if (p->split == TG_SPLIT_TEST) return tg_sample_only(out, "", arena, err);
    tg_status st = tg_sample_references(out, n, arena, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        const char *text = annotation(a, i, FINAL);
        st = tg_sample_reference(out, i, text, strlen(text), arena, err);
    }
    return st;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    const struct options *o = p->options;
    const json_t *row = picked->rows[0], *a = json_object_get(row, "sentence_annotations");
    tg_totto_table table;
    size_t n = 0;
    tg_status st = tg_totto_table_read(row, &table, err);
    if (st != TG_OK) return st;
    if (a && !json_is_null(a) && !count_annotations(a, &n, err)) return TG_DATA;
    tg_buf prompt = {0};
    bool sub = !strcmp(o->representation, "subtable");
    for (int titles = 0; titles < 2; titles++)
        (sub ? tg_totto_subtable : tg_totto_fulltable)(&table, titles, &prompt);
    st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK) st = tg_sample_number(out, p->split, picked->number, arena, err);
    if (st == TG_OK) st = put_references(p, a, n, arena, out, err);
    if (st == TG_OK) st = tg_sample_meta(out, raw_table(p, picked, a, n), arena, err);
    return st;
}

static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const structured[] = {"table", "highlighted_cells", "sentence_annotations",
                                             NULL};
    static const tg_recipe recipe = {.structured = structured, .inspect = inspect, .make = make};
    const struct options *o = opts;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &dataset, split, NULL, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_totto = {
    .entry = {.name = "totto",
              .summary = "ToTTo: a sentence about highlighted table cells.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_pool,
    TG_ROWPOOL_OPS,
};
