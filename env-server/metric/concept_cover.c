/* The metric concept_cover: share of the prompt's concepts used by each text, and its mean. */
#include "common/base/alloc.h"
#include "env-server/metric/rows.h"
#include "env-server/reward/common_gen.h"

static const tg_opt no_options[] = {TG_OPT_END};

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    (void)state;
    double *values = tg_alloc_array(in->n, sizeof *values), sum = 0;
    if (!values) return tg_fail_nomem(err, in->n * sizeof *values);
    tg_status st = TG_OK;
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        const tg_metric_item *item = &in->items[i];
        st = tg_concept_cover(item->sample->prompt_text, item->text, item->text_len, &values[i],
                              err);
        sum += values[i];
    }
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/concept_cover", sum / (double)in->n, values, in->n, err);
    tg_free(values);
    return st;
}

const tg_metric_ops tg_metric_concept_cover = {
    .entry = {.name = "concept_cover",
              .summary = "Share of the prompt's concepts that a text uses, by Porter stem.",
              .options = no_options,
              .built = true},
    .compute = compute,
};
