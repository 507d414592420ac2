/* Rows of any layout: JSON lines, separated text, Parquet and plain text, with fields and templates
 * by config. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "env-server/datapool/generic_impl.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/template.h"
#include "proto/split.h"

#include <inttypes.h>
#include <string.h>

#define FIELDS(default_prompt)                                                                     \
    TG_OPT_STR(tg_generic_options, prompt, default_prompt, "Field with the prompt."),              \
        TG_OPT_ROW_KEY("template", tg_generic_options, prompt_template, TG_T_STR, TG_OPT_NULLABLE, \
                       NULL, 0, 0, NULL,                                                           \
                       "Prompt made of fields, such as \"Summarize: {article}\", instead of one "  \
                       "field."),                                                                  \
        TG_OPT_STR(tg_generic_options, references, NULL,                                           \
                   "Field with a text or a list of texts; unset: \"references\" where a row has "  \
                   "it."),                                                                         \
        TG_OPT_STR(tg_generic_options, reference_template, NULL,                                   \
                   "The reference made of fields, instead of references."),                        \
        TG_OPT_STR(tg_generic_options, id, NULL,                                                   \
                   "Field with the id; unset: \"id\" where a row has it, else SPLIT_INDEX."),      \
        TG_OPT_STR(tg_generic_options, meta, NULL,                                                 \
                   "Field with further data for rewards; unset: \"meta\" where a row has it."),    \
        TG_OPT_STR(tg_generic_options, weight, NULL,                                               \
                   "Field with the sample's weight for env.args.priority_scale."),                 \
        TG_OPT_NODE(tg_generic_options, ratios,                                                    \
                    "Parts of path for train, val and test, such as [0.8, 0.1, 0.1]; unset: all "  \
                    "of it for each.")
static const tg_opt row_options[] = {FIELDS("prompt"), TG_POOL_OPTIONS(tg_generic_options),
                                     TG_OPT_END};
static const tg_opt jsonl_options[] = {FIELDS("prompt"), TG_POOL_OPTIONS(tg_generic_options),
                                       TG_OPT_ROW(tg_generic_options, on_error, TG_T_STR,
                                                  TG_OPT_NULLABLE, NULL, 0, 0, "fail|skip",
                                                  "Earlier name of on_bad_row."),
                                       TG_OPT_END};
static const tg_opt text_options[] = {
    TG_OPT_STR_ONE_OF(tg_generic_options, unit, "file", "file|line", "What a sample is."),
    FIELDS("text"), TG_POOL_OPTIONS(tg_generic_options), TG_OPT_END};

/* ---- opening ------------------------------------------------------------------------------- */

/* *file NULL: the config leaves the split out. */
static tg_status choose_file(const tg_generic_options *o, const char *pool, tg_split split,
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

static tg_status check_templates(const tg_generic_options *o, tg_error *err) {
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

/* RL4LMs's split(): each part is the whole number of samples below n times the ratio. */
static tg_status cut(tg_rowpool *p, const tg_generic_options *o, tg_error *err) {
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
    double ratio = ratios[p->split - TG_SPLIT_TRAIN];
    if (size == 0 && ratio > 0) /* as in RL4LMs, but hardly meant */
        tg_log_warn("datapool",
                    "datapool.args.ratios: %g of %" PRIu64
                    " samples is less than one: the %s split "
                    "is empty",
                    ratio, n, tg_split_name(p->split));
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

static tg_status open_pool(void *state, const char *name, tg_generic_opener *open,
                           const void *options, const tg_datapool_context *context, tg_split split,
                           uint64_t *count, tg_error *err) {
    static const char *const none[] = {NULL};
    static const tg_recipe recipe = {
        .structured = none, .inspect = tg_generic_inspect, .make = tg_generic_make};
    const tg_generic_options *o = options;
    const char *file = NULL;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    if (o->on_error) p->skip_bad |= !strcmp(o->on_error, "skip");
    tg_status st = check_templates(o, err);
    if (st == TG_OK) st = choose_file(o, name, split, &file, err);
    if (st != TG_OK || !file) return st;
    st = tg_generic_open_table(p, open, file, err);
    if (st == TG_OK && !p->table.ops) { /* a folder without files of this split */
        if (split != TG_SPLIT_TRAIN) {
            tg_log_info("datapool", "%s has no %s split", file, tg_split_name(split));
            return TG_OK;
        }
        st = tg_fail(err, TG_NOINPUT, "%s: no file of the train split, such as train.jsonl", file);
    }
    if (st == TG_OK) st = cut(p, o, err);
    if (st == TG_OK && p->sliced && p->begin == p->end) { /* its part is empty */
        tg_rowpool_close(p);
        return TG_OK;
    }
    return tg_rowpool_finish(p, st, count, err);
}

#define POOL(id, text, table)                                                                      \
    static tg_status open_pool_##id(void *state, const void *options,                              \
                                    const tg_datapool_context *context, tg_split split,            \
                                    uint64_t *count, tg_error *err) {                              \
        return open_pool(state, #id, tg_generic_open_##id, options, context, split, count, err);   \
    }                                                                                              \
    const tg_datapool_ops tg_datapool_##id = {                                                     \
        .entry = {.name = #id,                                                                     \
                  .summary = text,                                                                 \
                  .options = table,                                                                \
                  .options_size = sizeof(tg_generic_options),                                      \
                  .built = true},                                                                  \
        .open = open_pool_##id,                                                                    \
        .weight = tg_generic_weight,                                                               \
        TG_ROWPOOL_OPS,                                                                            \
    }

POOL(jsonl, "JSON lines; fields and prompt template by config.", jsonl_options);
POOL(csv, "Comma-separated text; fields and prompt template by config.", row_options);
POOL(tsv, "Tab-separated text; fields and prompt template by config.", row_options);
POOL(parquet, "Parquet files; fields and prompt template by config.", row_options);
POOL(text, "Plain text: a sample for each file of a folder, or for each line.", text_options);
