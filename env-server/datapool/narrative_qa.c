/* NarrativeQA: answer a question about a story, in UnifiedQA's form "question \n summary" (with a
 * backslash and an n), lower-cased.
 *
 * UnifiedQA's .tsv files have a line for each answer; lines with one prompt are one sample. RL4LMs means
 * to remove apostrophes and does not: we do, and under `compat: rl4lms` we do not. */
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/narrative_csv.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/metric/pystr.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

struct options {
    tg_pool_common common;
};
static const tg_opt options[] = {TG_POOL_OPTIONS(struct options), TG_OPT_END};

/* ---- files --------------------------------------------------------------------------------- */

static tg_status open_tsv(const char *path, tg_table *out, tg_error *err) {
    static const char *const names[] = {"prompt", "answer", NULL};
    static const tg_csv_format format = {'\t', names};
    return tg_table_open_csv(out, path, &format, err);
}

static tg_status native(const tg_place *place, tg_table *out, tg_error *err) {
    static const char *const files[][3] = {[TG_SPLIT_TRAIN] = {"train.tsv", NULL},
                                           [TG_SPLIT_VAL] = {"dev.tsv", "val.tsv", NULL},
                                           [TG_SPLIT_TEST] = {"test.tsv", NULL}};
    if (place->is_file)
        return tg_path_exists(place->root) && tg_str_ends(place->root, ".tsv")
                   ? open_tsv(place->root, out, err)
                   : TG_OK;
    for (const char *const *f = files[place->split]; *f && !out->ops; f++) {
        char *path = tg_path_join(place->root, *f);
        if (!path) return tg_fail_nomem(err, strlen(place->root));
        tg_status st = tg_path_exists(path) ? open_tsv(path, out, err) : TG_OK;
        tg_free(path);
        if (st != TG_OK) return st;
    }
    return out->ops ? TG_OK : tg_narrative_csv_open(place->root, place->split, out, err);
}

static const tg_dataset dataset = {
    .title = "NarrativeQA",
    .names = {"narrative_qa", "narrativeqa"},
    .home = "narrative_qa",
    .hub = {"deepmind/narrativeqa", "narrativeqa"},
    .layout = "UnifiedQA's {train,dev,test}.tsv, or NarrativeQA's qaps.csv and "
              "third_party/wikipedia/summaries.csv, or rows with question, document and answers;",
    .native = native,
};

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *inner_text(const json_t *row, const char *outer, const char *inner,
                              tg_error *err) {
    const json_t *v = tg_row_field(row, outer, err);
    if (json_is_object(v) && inner) v = tg_row_field(v, inner, err);
    if (json_is_object(v)) v = tg_row_field(v, "text", err);
    return v ? tg_value_text(v, outer, err) : NULL;
}

/* Appends the prompt as stored. */
static tg_status put_prompt(const json_t *row, tg_buf *out, tg_error *err) {
    if (json_object_get(row, "prompt")) {
        const char *prompt = tg_row_text(row, "prompt", err);
        if (!prompt) return TG_DATA;
        tg_buf_puts(out, prompt);
        return TG_OK;
    }
    const char *question = inner_text(row, "question", "text", err);
    const char *summary = !question ? NULL
                          : json_object_get(row, "summary")
                              ? inner_text(row, "summary", "text", err)
                              : inner_text(row, "document", "summary", err);
    if (!summary) return TG_DATA;
    tg_buf_printf(out, "%s \\n %s", question, summary);
    return TG_OK;
}

static size_t count_answers(const json_t *row) {
    const json_t *list = json_object_get(row, "answers");
    return json_is_array(list) ? json_array_size(list) : 1;
}

static const char *answer(const json_t *row, size_t i, tg_error *err) {
    const json_t *list = json_object_get(row, "answers");
    if (!json_is_array(list)) return tg_row_text(row, "answer", err);
    const json_t *one = json_array_get(list, i);
    return tg_value_text(json_is_object(one) ? json_object_get(one, "text") : one, "answers", err);
}

/* What pandas reads as a missing value, at which RL4LMs fails. */
static bool is_missing(const char *text) {
    static const char *const words[] = {
        "",        "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
        "1.#QNAN", "<NA>", "N/A",      "NA",  "NULL",    "NaN",      "n/a",  "nan",  "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i])) return true;
    return false;
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    (void)info;
    tg_buf prompt = {0};
    tg_status st = put_prompt(row, &prompt, err);
    if (st == TG_OK && p->context.compat && is_missing(prompt.data ? prompt.data : ""))
        st = tg_fail(err, TG_DATA, "the prompt is a missing value to RL4LMs (compat: rl4lms)");
    tg_buf_fini(&prompt);
    for (size_t i = 0; st == TG_OK && i < count_answers(row); i++) {
        const char *text = answer(row, i, err);
        if (!text) return TG_DATA;
        if (p->context.compat && is_missing(text))
            return tg_fail(err, TG_DATA,
                           "the answer \"%s\" is a missing value to RL4LMs (compat: rl4lms)", text);
    }
    return st;
}

static tg_status group_key(const tg_rowpool *p, const json_t *row, tg_buf *key, tg_error *err) {
    (void)p;
    return put_prompt(row, key, err);
}

/* ---- samples ------------------------------------------------------------------------------- */

static void normalize(const tg_rowpool *p, const char *text, size_t len, tg_buf *out) {
    size_t from = out->len;
    tg_py_lower(out, text, len);
    if (p->context.compat || out->failed || !out->data) return;
    size_t kept = from;
    for (size_t i = from; i < out->len; i++)
        if (out->data[i] != '\'') out->data[kept++] = out->data[i];
    out->len = kept;
    out->data[kept] = '\0';
}

/* Lower-cased and stripped. */
static tg_status put_answer(const tg_rowpool *p, const char *text, size_t i, tg_arena *arena,
                            tg_sample *out, tg_error *err) {
    tg_buf clean = {0};
    normalize(p, text, strlen(text), &clean);
    size_t len = clean.len;
    const char *begin = tg_py_strip(clean.data ? clean.data : "", &len);
    tg_status st = clean.failed ? tg_fail_nomem(err, clean.len)
                                : tg_sample_reference(out, i, begin, len, arena, err);
    tg_buf_fini(&clean);
    return st;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    tg_buf raw = {0}, prompt = {0};
    size_t n = 0, k = 0;
    tg_status st = put_prompt(picked->rows[0], &raw, err);
    if (st == TG_OK) normalize(p, raw.data ? raw.data : "", raw.len, &prompt);
    if (st == TG_OK) st = tg_sample_prompt(out, &prompt, arena, err);
    tg_buf_fini(&raw);
    tg_buf_fini(&prompt);
    for (size_t r = 0; r < picked->n_rows; r++) n += count_answers(picked->rows[r]);
    if (st == TG_OK) st = tg_sample_references(out, n, arena, err);
    for (size_t r = 0; r < picked->n_rows && st == TG_OK; r++)
        for (size_t i = 0; i < count_answers(picked->rows[r]) && st == TG_OK; i++) {
            const char *text = answer(picked->rows[r], i, err);
            st = text ? put_answer(p, text, k++, arena, out, err) : TG_DATA;
        }
    if (st == TG_OK) st = tg_sample_number(out, p->split, picked->index, arena, err);
    return st;
}

static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const structured[] = {"answers", NULL};
    static const char *const columns[] = {"prompt",  "answer",  "question", "document",
                                          "summary", "answers", NULL};
    static const tg_recipe recipe = {
        .structured = structured, .inspect = inspect, .group_key = group_key, .make = make};
    const struct options *o = opts;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &dataset, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_narrative_qa = {
    .entry = {.name = "narrative_qa",
              .summary = "NarrativeQA: answer a question about a story.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_pool,
    TG_ROWPOOL_OPS,
};
