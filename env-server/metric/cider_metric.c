/* The metric cider: CIDEr-D of every text, and its mean. */
#include "common/base/alloc.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"

#include <string.h>

static const tg_opt options[] = {TG_OPT_SPLITTER(tg_cider_options, tokenize),
                                 TG_OPT_CIDER_DF(tg_cider_options, df), TG_OPT_END};

static tg_status choose_df(tg_cider *c, const char *df, const tg_open_context *ctx, tg_error *err) {
    if (!df) return TG_OK;
    if (strcmp(df, "pool") != 0) return tg_cider_df_read(&c->df, df, &c->splitter, err);
    if (ctx->train) return tg_cider_df_pool(&c->df, ctx->train, &c->splitter, err);
    return tg_fail(err, TG_CONFIG,
                   "df: pool: there is no data pool here; give a file of references instead");
}

tg_status tg_cider_open(tg_cider *c, const tg_cider_options *o, const tg_open_context *ctx,
                        tg_error *err) {
    memset(c, 0, sizeof *c);
    c->compat = ctx->compat;
    tg_status st = tg_splitter_open(&c->splitter, o->tokenize, ctx->compat, err);
    if (st == TG_OK) st = choose_df(c, o->df, ctx, err);
    if (st != TG_OK) tg_cider_close(c);
    return st;
}

void tg_cider_close(tg_cider *c) {
    tg_splitter_close(&c->splitter);
    tg_cider_df_destroy(&c->df);
}

static bool has_words(const tg_metric_item *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < items[i].sample->n_references; k++)
            if (items[i].sample->references[k][strspn(items[i].sample->references[k], " \t\r\n")])
                return true;
    return false;
}

tg_status tg_cider_corpus(const tg_cider *c, const tg_metric_item *items, size_t n, int threads,
                          double *out, double *mean, tg_error *err) {
    tg_by_prompt by = {0};
    tg_status st = tg_by_prompt_init(&by, items, n, c->compat, err);
    if (st == TG_OK && c->compat && !has_words(by.items, by.n))
        st = tg_fail(err, TG_DATA, "all references are empty");
    if (st == TG_OK)
        st = tg_cider_score(by.items, by.n, &c->splitter, c->df, threads, by.values, err);
    if (st == TG_OK) tg_by_prompt_spread(&by, out, mean);
    tg_by_prompt_fini(&by);
    return st;
}

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    return tg_cider_open(state, opts, ctx, err);
}

static void close_metric(void *state) {
    tg_cider_close(state);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    tg_status st = tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    double *values = tg_alloc_array(in->n, sizeof *values), mean;
    if (!values) return tg_fail_nomem(err, in->n * sizeof *values);
    st = tg_cider_corpus(state, in->items, in->n, in->threads, values, &mean, err);
    if (st == TG_OK) st = tg_metric_emit(out, "lexical/cider", mean, values, in->n, err);
    tg_free(values);
    return st;
}

const tg_metric_ops tg_metric_cider = {
    .entry = {.name = "cider",
              .summary = "CIDEr-D.",
              .options = options,
              .options_size = sizeof(tg_cider_options),
              .built = true},
    .state_size = sizeof(tg_cider),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
