/* The metrics spice, F of every text's propositions, and spider, the mean of it and CIDEr-D. */
#include "common/base/alloc.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/spice.h"

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    (void)work;
    tg_spice_score score = {0};
    tg_status st = tg_spice_sample(state, item->text, item->text_len, item->sample, &score, err);
    *(double *)out = score.f;
    return st;
}

tg_status tg_spice_corpus(const tg_spice *s, const tg_metric_input *in, bool together, double *out,
                          double *mean, tg_error *err) {
    static const tg_item_loop loop = {0, sizeof(double), NULL, one, NULL};
    tg_by_prompt by = {0};
    tg_status st = tg_by_prompt_init(&by, in->items, in->n, together, err);
    tg_metric_input each = *in;
    each.items = by.items, each.n = by.n;
    if (st == TG_OK) st = tg_items_run(&each, &loop, s, by.values, err);
    if (st == TG_OK) tg_by_prompt_spread(&by, out, mean);
    tg_by_prompt_fini(&by);
    return st;
}

struct state {
    tg_spice spice;
    tg_cider cider; /* of spider only */
    bool compat;
};
static const tg_opt no_options[] = {TG_OPT_END};
static const tg_opt cider_options[] = {TG_OPT_SPLITTER(tg_cider_options, tokenize),
                                       TG_OPT_CIDER_DF(tg_cider_options, df), TG_OPT_END};

static tg_status open_spice(void *state, const void *opts, const tg_open_context *ctx,
                            tg_error *err) {
    (void)opts;
    struct state *s = state;
    s->compat = ctx->compat;
    return tg_spice_open(&s->spice, ctx->compat, err);
}

static tg_status open_spider(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    tg_status st = open_spice(state, NULL, ctx, err);
    if (st != TG_OK) return st;
    st = tg_cider_open(&s->cider, opts, ctx, err);
    if (st != TG_OK) tg_spice_close(&s->spice);
    return st;
}

static void close_metric(void *state) {
    struct state *s = state;
    tg_spice_close(&s->spice);
    tg_cider_close(&s->cider);
}

static tg_status compute_spice(const void *state, const tg_metric_input *in, tg_metric_out *out,
                               tg_error *err) {
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    double *values = tg_alloc_array(in->n, sizeof *values), mean;
    if (!values) return tg_fail_nomem(err, in->n * sizeof *values);
    st = tg_spice_corpus(&s->spice, in, s->compat, values, &mean, err);
    if (st == TG_OK) st = tg_metric_emit(out, "lexical/spice", mean, values, in->n, err);
    tg_free(values);
    return st;
}

static tg_status compute_spider(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                tg_error *err) {
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    double *values = tg_alloc_array(2 * in->n, sizeof *values), spice, cider;
    if (!values) return tg_fail_nomem(err, in->n * sizeof *values);
    st = tg_spice_corpus(&s->spice, in, s->compat, values, &spice, err);
    if (st == TG_OK)
        st = tg_cider_corpus(&s->cider, in->items, in->n, in->threads, values + in->n, &cider, err);
    for (size_t i = 0; i < in->n; i++) values[i] = (values[i] + values[in->n + i]) / 2;
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/spider", (spice + cider) / 2, values, in->n, err);
    tg_free(values);
    return st;
}

const tg_metric_ops tg_metric_spice = {
    .entry = {.name = "spice",
              .summary = "SPICE's rules on this project's own scene graphs.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_spice,
    .close = close_metric,
    .compute = compute_spice,
};

const tg_metric_ops tg_metric_spider = {
    .entry = {.name = "spider",
              .summary = "Mean of SPICE and CIDEr-D.",
              .options = cider_options,
              .options_size = sizeof(tg_cider_options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_spider,
    .close = close_metric,
    .compute = compute_spider,
};
