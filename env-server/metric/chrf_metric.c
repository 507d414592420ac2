/* The metric chrf. After open a state is read-only. */
#include "common/base/alloc.h"
#include "env-server/metric/chrf.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"

#define S tg_chrf_options
const tg_opt tg_chrf_table[] = {
    TG_OPT_INT(S, char_order, "6", 1, TG_CHRF_CHARS, "Longest character n-gram."),
    TG_OPT_INT(S, word_order, "0", 0, TG_CHRF_WORDS, "Longest word n-gram; 2 is chrF++."),
    TG_OPT_INT(S, beta, "2", 0, 1000, "Weight of recall."),
    TG_OPT_BOOL(S, lowercase, "false", "Ignore case."),
    TG_OPT_BOOL(S, whitespace, "false", "White space counts as characters."),
    TG_OPT_BOOL(S, eps_smoothing, "false", "Mean of the orders' F with a small constant for none."),
    TG_OPT_END};
#undef S

struct state {
    tg_chrf_options options;
    bool compat;
};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)err;
    struct state *s = state;
    s->options = *(const tg_chrf_options *)opts;
    s->compat = ctx->compat;
    return TG_OK;
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    return tg_chrf_count(work, &((const struct state *)state)->options, item->text, item->text_len,
                         item->sample, out, err);
}

static void end(void *work) {
    tg_chrf_fini(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_chrf), sizeof(tg_chrf_stats), NULL, one, end};
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st == TG_OK && s->compat) st = tg_items_need_equal(in, err);
    if (st != TG_OK) return st;
    tg_chrf_stats *each = tg_alloc_array(in->n, sizeof *each), sum = {0};
    double *samples = tg_alloc_array(in->n, sizeof *samples);
    st = each && samples ? tg_items_run(in, &loop, state, each, err)
                         : tg_fail_nomem(err, in->n * sizeof *each);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        samples[i] = tg_chrf_score(&s->options, &each[i]) / 100;
        tg_chrf_add(&sum, &each[i]);
    }
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/chrf", tg_chrf_score(&s->options, &sum) / 100,
                            s->compat ? NULL : samples, in->n, err);
    tg_free(each);
    tg_free(samples);
    return st;
}

const tg_metric_ops tg_metric_chrf = {
    .entry = {.name = "chrf",
              .summary = "chrF, between 0 and 1.",
              .options = tg_chrf_table,
              .options_size = sizeof(tg_chrf_options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute,
};
