/* The metric meteor: the value of every text, and its mean. */
#include "common/base/alloc.h"
#include "env-server/metric/items.h"
#include "env-server/metric/meteor.h"
#include "env-server/metric/rows.h"

struct state {
    tg_meteor *meteor;
    bool compat;
};
static const tg_opt no_options[] = {TG_OPT_END};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)opts;
    struct state *s = state;
    s->compat = ctx->compat;
    return tg_meteor_create(&s->meteor, ctx->compat, err);
}

static void close_metric(void *state) {
    tg_meteor_destroy(&((struct state *)state)->meteor);
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    return tg_meteor_sample(((const struct state *)state)->meteor, work, item->text, item->text_len,
                            item->sample, out, err);
}

static void end(void *work) {
    tg_meteor_work_fini(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_meteor_work), sizeof(double), NULL, one, end};
    const struct state *s = state;
    tg_status st = s->compat ? TG_OK : tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    return tg_items_mean(in, &loop, state, "lexical/meteor", !s->compat, out, err);
}

const tg_metric_ops tg_metric_meteor = {
    .entry = {.name = "meteor",
              .summary = "METEOR against the best reference: words, stems and WordNet synonyms.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
