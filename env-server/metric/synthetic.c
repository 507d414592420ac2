/* The metrics of the two synthetic tasks: the reward of every text, and its mean. */
#include "common/base/alloc.h"
#include "env-server/metric/rows.h"
#include "env-server/reward/dates.h"
#include "env-server/reward/increasing_numbers.h"

#include <stdint.h>

struct options {
    int64_t min_tokens;
};
static const tg_opt increasing_options[] = {
    TG_OPT_ROW(struct options, min_tokens, TG_T_INT, TG_OPT_REQUIRED, NULL, 0, 1e9, NULL,
               "Texts of fewer than half as many words are scored as if they had that many."),
    TG_OPT_END};
static const tg_opt no_options[] = {TG_OPT_END};

static tg_status open_increasing(void *state, const void *opts, const tg_open_context *ctx,
                                 tg_error *err) {
    (void)ctx;
    (void)err;
    *(struct options *)state = *(const struct options *)opts;
    return TG_OK;
}

typedef tg_status value_fn(const tg_metric_item *item, const struct options *o, double *out,
                           tg_error *err);

static tg_status increasing_value(const tg_metric_item *item, const struct options *o, double *out,
                                  tg_error *err) {
    return tg_increasing_numbers(item->text, item->text_len, o->min_tokens, out, err);
}

static tg_status dates_value(const tg_metric_item *item, const struct options *o, double *out,
                             tg_error *err) {
    (void)o;
    (void)err;
    *out = tg_date_in_text(item->text, item->text_len);
    return TG_OK;
}

static tg_status mean_of(value_fn *value, const struct options *o, const tg_metric_input *in,
                         const char *key, tg_metric_out *out, tg_error *err) {
    double *samples = tg_alloc_array(in->n, sizeof *samples), sum = 0;
    if (!samples) return tg_fail_nomem(err, in->n * sizeof *samples);
    tg_status st = TG_OK;
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        st = value(&in->items[i], o, &samples[i], err);
        sum += samples[i];
    }
    if (st == TG_OK) st = tg_metric_emit(out, key, sum / (double)in->n, samples, in->n, err);
    tg_free(samples);
    return st;
}

static tg_status compute_increasing(const void *state, const tg_metric_input *in,
                                    tg_metric_out *out, tg_error *err) {
    return mean_of(increasing_value, state, in, "synthetic/increasing_numbers_in_text", out, err);
}

static tg_status compute_dates(const void *state, const tg_metric_input *in, tg_metric_out *out,
                               tg_error *err) {
    return mean_of(dates_value, state, in, "synthetic/dates_in_text", out, err);
}

const tg_metric_ops tg_metric_increasing_numbers = {
    .entry = {.name = "increasing_numbers",
              .summary = "Share of the text that is a run of increasing numbers.",
              .options = increasing_options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct options),
    .open = open_increasing,
    .compute = compute_increasing,
};

const tg_metric_ops tg_metric_dates = {
    .entry = {.name = "dates",
              .summary = "Share of the texts that hold a date such as 2026-11-16.",
              .options = no_options,
              .built = true},
    .compute = compute_dates,
};
