/* Translation: wmt16 for any data set and language pair, and the three fixed English-German pools.
 * Rows are {"translation": {"en": …, "de": …}} as at the hub, flat columns "en" and "de", or two text
 * files. */
#include "common/base/str.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/parallel.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    tg_pool_common common;
    const char *wmt_id, *source_language, *target_language;
    const char *prompt_prefix, *prompt_suffix;
};
#define AFFIXES                                                                                    \
    TG_OPT_STR(struct options, prompt_suffix, "", "Text behind the prompt."),                      \
        TG_OPT_STR(struct options, prompt_prefix, "", "Text before the prompt.")
static const tg_opt any_options[] = {
    TG_OPT_STR_REQUIRED(struct options, wmt_id, "Name of the data set, such as wmt16."),
    TG_OPT_STR_REQUIRED(struct options, source_language, "Language of the prompt."),
    TG_OPT_STR_REQUIRED(struct options, target_language, "Language of the reference."),
    AFFIXES,
    TG_POOL_OPTIONS(struct options),
    TG_OPT_END};
static const tg_opt fixed_options[] = {AFFIXES, TG_POOL_OPTIONS(struct options), TG_OPT_END};

static const char *source_of(const tg_rowpool *p) {
    const struct options *o = p->options;
    return o->source_language ? o->source_language : "en";
}
static const char *target_of(const tg_rowpool *p) {
    const struct options *o = p->options;
    return o->target_language ? o->target_language : "de";
}

/* ---- rows ---------------------------------------------------------------------------------- */

static tg_status texts(const tg_rowpool *p, const json_t *row, const char **source,
                       const char **target, tg_error *err) {
    const json_t *pair = json_object_get(row, "translation");
    if (!pair) pair = row;
    *source = tg_row_text(pair, source_of(p), err);
    *target = *source ? tg_row_text(pair, target_of(p), err) : NULL;
    return *target ? TG_OK : TG_DATA;
}

static tg_status inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err) {
    const char *source, *target;
    (void)info;
    return texts(p, row, &source, &target, err);
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err) {
    const struct options *o = p->options;
    const char *source, *target;
    tg_status st = texts(p, picked->rows[0], &source, &target, err);
    if (st != TG_OK) return st;
    tg_buf prompt = {0};
    if (o->prompt_prefix) tg_buf_puts(&prompt, o->prompt_prefix);
    tg_buf_puts(&prompt, source);
    if (o->prompt_suffix) tg_buf_puts(&prompt, o->prompt_suffix);
    st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK) st = tg_sample_only(out, target, arena, err);
    if (st == TG_OK) st = tg_sample_number(out, p->split, picked->number, arena, err);
    return st;
}

/* ---- data sets ----------------------------------------------------------------------------- */

static tg_status native(const tg_place *place, tg_table *out, tg_error *err) {
    const struct options *o = place->pool->options;
    tg_parallel pair = {source_of(place->pool), target_of(place->pool), 0};
    const char *id = o->wmt_id ? o->wmt_id : "wmt16";
    if (tg_str_starts(id, "wmt") && atoi(id + 3) > 0) pair.year = 2000 + atoi(id + 3) % 2000;
    return tg_parallel_open(&pair, place, out, err);
}

#define LAYOUT                                                                                     \
    "train, val (or dev) and test in two files each, such as val.en and val.de (text, .sgm, "      \
    ".xml, "                                                                                       \
    "also .gz), or train, validation and test as .jsonl, .csv or .parquet with translation;"

static const tg_dataset processed = {
    .title = "WMT 14 English-German, pre-processed",
    .names = {"wmt14-en-de-pre-processed", "wmt14_processed_en_de"},
    .hub = {"stas/wmt14-en-de-pre-processed"},
    .layout = LAYOUT,
    .native = native,
};
static const tg_dataset wmt16_news = {
    .title = "WMT 16 English-German",
    .names = {"wmt16/de-en", "wmt16"},
    .hub = {"wmt/wmt16", "wmt16"},
    .config = "de-en",
    .layout = LAYOUT,
    .native = native,
};
static const tg_dataset news_commentary = {
    .title = "News Commentary English-German",
    .names = {"news_commentary/de-en", "news_commentary"},
    .hub = {"Helsinki-NLP/news_commentary", "news_commentary"},
    .config = "de-en",
    .layout = LAYOUT,
    .native = native,
};
static const tg_dataset iwslt = {
    .title = "IWSLT 2017 English-German",
    .names = {"iwslt2017", "iwslt2017-de-en", "iwslt2017/de-en"},
    .hub = {"IWSLT/iwslt2017", "iwslt2017"},
    .config = "iwslt2017-de-en",
    .layout = "train.tags.en-de.{en,de}, IWSLT17.TED.dev2010.en-de.{en,de}.xml and …tst2010 to "
              "tst2015, or "
              "train, validation and test as .jsonl, .csv or .parquet with translation;",
    .native = native,
};

/* ---- the pools ----------------------------------------------------------------------------- */

static tg_status open_from(void *state, const tg_dataset *d, const void *options,
                           const tg_datapool_context *context, tg_split split, uint64_t *count,
                           tg_error *err) {
    static const char *const structured[] = {"translation", NULL};
    static const tg_recipe recipe = {.structured = structured, .inspect = inspect, .make = make};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    const char *const columns[] = {"translation", source_of(p), target_of(p), NULL};
    tg_status st = tg_dataset_open(p, d, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

/* RL4LMs asks for "source-target" first, then for "target-source". */
static tg_status open_any(void *state, const void *options, const tg_datapool_context *context,
                          tg_split split, uint64_t *count, tg_error *err) {
    const struct options *o = options;
    const char *id = o->wmt_id, *a = o->source_language, *b = o->target_language;
    char forward[128], reverse[128], title[128], hub[128], config[64];
    if (!*id || !*a || !*b || strlen(id) > 60 || strlen(a) > 15 || strlen(b) > 15)
        return tg_fail(err, TG_CONFIG,
                       "datapool.args: wmt_id, source_language and target_language must be short "
                       "names, such as wmt16, en and de");
    snprintf(forward, sizeof forward, "%s/%s-%s", id, a, b);
    snprintf(reverse, sizeof reverse, "%s/%s-%s", id, b, a);
    snprintf(config, sizeof config, "%s-%s", b, a);
    snprintf(title, sizeof title, "%s, %s to %s", id, a, b);
    snprintf(hub, sizeof hub, strchr(id, '/') ? "%s" : "wmt/%s", id);
    const tg_dataset any = {.title = title,
                            .names = {forward, reverse, id},
                            .hub = {hub, id},
                            .config = config,
                            .layout = LAYOUT,
                            .native = native};
    return open_from(state, &any, options, context, split, count, err);
}

static tg_status open_processed(void *state, const void *options,
                                const tg_datapool_context *context, tg_split split, uint64_t *count,
                                tg_error *err) {
    return open_from(state, &processed, options, context, split, count, err);
}

/* Train comes from one data set, val and test from another. */
static tg_status open_newsonly(void *state, const void *options, const tg_datapool_context *context,
                               tg_split split, uint64_t *count, tg_error *err) {
    const tg_dataset *d = split == TG_SPLIT_TRAIN ? &news_commentary : &wmt16_news;
    return open_from(state, d, options, context, split, count, err);
}

static tg_status open_iwslt(void *state, const void *options, const tg_datapool_context *context,
                            tg_split split, uint64_t *count, tg_error *err) {
    return open_from(state, &iwslt, options, context, split, count, err);
}

#define ROW(id, text, table, fn)                                                                   \
    {                                                                                              \
        .entry = {.name = id,                                                                      \
                  .summary = text,                                                                 \
                  .options = table,                                                                \
                  .options_size = sizeof(struct options),                                          \
                  .built = true},                                                                  \
        .open = fn, TG_ROWPOOL_OPS,                                                                \
    }

const tg_datapool_ops tg_datapool_wmt16 =
    ROW("wmt16", "WMT translation of any language pair.", any_options, open_any);
const tg_datapool_ops tg_datapool_wmt14_processed_en_de =
    ROW("wmt14_processed_en_de", "WMT 14, English to German, pre-processed.", fixed_options,
        open_processed);
const tg_datapool_ops tg_datapool_wmt16newsonly =
    ROW("wmt16newsonly", "WMT 16, English to German, news only.", fixed_options, open_newsonly);
const tg_datapool_ops tg_datapool_iwslt2017en_de =
    ROW("iwslt2017en_de", "IWSLT 2017, English to German.", fixed_options, open_iwslt);
