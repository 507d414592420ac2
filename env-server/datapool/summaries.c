/* Texts with a summary: CNN/DailyMail (rows, or the original .story files) and XSum. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/datapool/story.h"
#include "env-server/metric/nltk.h"

#include <string.h>

struct options {
    tg_pool_common common;
    const char *prompt_prefix, *prompt_suffix;
    int64_t truncate_article;
};
static const tg_opt cnn_options[] = {
    TG_OPT_STR(struct options, prompt_suffix, "", "Text behind the prompt."),
    TG_OPT_STR(struct options, prompt_prefix, "", "Text before the prompt."),
    TG_OPT_INT_OR_NULL(struct options, truncate_article, 0, 1e15,
                       "Keep this many words of an article, joined by spaces."),
    TG_POOL_OPTIONS(struct options), TG_OPT_END};
static const tg_opt xsum_options[] = {
    TG_OPT_STR(struct options, prompt_suffix, "TL;DR:", "Text behind the prompt."),
    TG_OPT_STR(struct options, prompt_prefix, "", "Text before the prompt."),
    TG_POOL_OPTIONS(struct options), TG_OPT_END};

static const tg_dataset cnn = {
    .title = "CNN/DailyMail",
    .names = {"cnn_dailymail", "cnn_daily_mail"},
    .hub = {"abisee/cnn_dailymail", "cnn_dailymail"},
    .config = "3.0.0",
    .layout =
        "{cnn,dailymail}/stories/*.story with all_{train,val,test}.txt, or "
        "{train,val,test}/*.story, "
        "or train, validation and test as .jsonl, .csv or .parquet with article and highlights;",
    .native = tg_stories_open,
};
static const tg_dataset xsum = {
    .title = "XSum",
    .names = {"xsum"},
    .hub = {"GEM/gem", "EdinburghNLP/xsum", NULL},
    .config = "xsum",
    .layout = "train, validation and test as .jsonl, .csv or .parquet with document and target (or "
              "summary);",
};

/* ---- texts --------------------------------------------------------------------------------- */

static tg_status put_words(const tg_rowpool *p, const char *text, tg_buf *out, tg_error *err) {
    const struct options *o = p->options;
    tg_nltk_list words = {0};
    tg_status st = tg_nltk_words(p->extra, text, strlen(text), &words, err);
    for (size_t i = 0; st == TG_OK && i < words.n && i < (uint64_t)o->truncate_article; i++) {
        if (i) tg_buf_putc(out, ' ');
        tg_buf_append(out, tg_nltk_at(&words, i), words.words[i].len);
    }
    tg_nltk_list_fini(&words);
    return st;
}

static tg_status make(const tg_rowpool *p, const tg_picked *picked, const char *text,
                      const char *summary, tg_arena *arena, tg_sample *out, tg_error *err) {
    const struct options *o = p->options;
    tg_buf prompt = {0};
    tg_status st = TG_OK;
    if (o->prompt_prefix) tg_buf_puts(&prompt, o->prompt_prefix);
    if (p->extra)
        st = put_words(p, text, &prompt, err);
    else
        tg_buf_puts(&prompt, text);
    if (o->prompt_suffix) tg_buf_puts(&prompt, o->prompt_suffix);
    if (st == TG_OK) st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK) st = tg_sample_only(out, summary, arena, err);
    if (st == TG_OK) st = tg_sample_number(out, p->split, picked->number, arena, err);
    tg_buf_fini(&prompt);
    return st;
}

/* ---- CNN/DailyMail ------------------------------------------------------------------------- */

static tg_status inspect_cnn(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                             tg_error *err) {
    (void)p;
    (void)info;
    if (tg_story_is(row)) return tg_row_text(row, "text", err) ? TG_OK : TG_DATA;
    return tg_row_text(row, "article", err) && tg_row_text(row, "highlights", err) ? TG_OK
                                                                                   : TG_DATA;
}

static tg_status make_cnn(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                          tg_sample *out, tg_error *err) {
    tg_row_info info;
    const json_t *row = picked->rows[0];
    tg_status st = inspect_cnn(p, row, &info, err);
    if (st != TG_OK) return st;
    if (!tg_story_is(row))
        return make(p, picked, json_string_value(json_object_get(row, "article")),
                    json_string_value(json_object_get(row, "highlights")), arena, out, err);
    tg_buf article = {0}, highlights = {0};
    tg_story_split(json_string_value(json_object_get(row, "text")), &article, &highlights);
    if (article.failed || highlights.failed)
        st = tg_fail_nomem(err, article.len);
    else
        st = make(p, picked, article.data ? article.data : "",
                  highlights.data ? highlights.data : "", arena, out, err);
    tg_buf_fini(&article);
    tg_buf_fini(&highlights);
    return st;
}

static void free_nltk(void *extra) {
    tg_nltk *w = extra;
    tg_nltk_destroy(&w);
}

static tg_status open_cnn(void *state, const void *options, const tg_datapool_context *context,
                          tg_split split, uint64_t *count, tg_error *err) {
    static const char *const columns[] = {"article", "highlights", NULL};
    static const tg_recipe recipe = {.inspect = inspect_cnn, .make = make_cnn};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &cnn, split, columns, err);
    if (st == TG_OK && o->truncate_article != INT64_MIN) {
        tg_nltk *nltk = NULL;
        st = tg_nltk_create(&nltk, context->compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT, err);
        p->extra = nltk;
        p->free_extra = free_nltk;
    }
    return tg_rowpool_finish(p, st, count, err);
}

/* ---- XSum ---------------------------------------------------------------------------------- */

static tg_status inspect_xsum(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                              tg_error *err) {
    (void)p;
    (void)info;
    return tg_row_text(row, "document", err) && tg_row_text(row, "target|summary", err) ? TG_OK
                                                                                        : TG_DATA;
}

static tg_status make_xsum(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                           tg_sample *out, tg_error *err) {
    const char *document = tg_row_text(picked->rows[0], "document", err);
    const char *target = document ? tg_row_text(picked->rows[0], "target|summary", err) : NULL;
    return target ? make(p, picked, document, target, arena, out, err) : TG_DATA;
}

static tg_status open_xsum(void *state, const void *options, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const columns[] = {"document", "target", "summary", NULL};
    static const tg_recipe recipe = {.inspect = inspect_xsum, .make = make_xsum};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &xsum, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_cnn_daily_mail = {
    .entry = {.name = "cnn_daily_mail",
              .summary = "CNN/DailyMail: summarise a news article.",
              .options = cnn_options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_cnn,
    TG_ROWPOOL_OPS,
};

const tg_datapool_ops tg_datapool_xsum = {
    .entry = {.name = "xsum",
              .summary = "XSum: summarise an article in one sentence.",
              .options = xsum_options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_xsum,
    TG_ROWPOOL_OPS,
};
