/* The metric concept_cover: share of the prompt's concepts used by each text, and its mean. */
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"
#include "env-server/reward/common_gen.h"

static const tg_opt no_options[] = {TG_OPT_END};

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    (void)work;
    (void)state;
    return tg_concept_cover(item->sample->prompt_text, item->text, item->text_len, out, err);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {0, sizeof(double), NULL, one, NULL};
    return tg_items_mean(in, &loop, state, "lexical/concept_cover", true, out, err);
}

const tg_metric_ops tg_metric_concept_cover = {
    .entry = {.name = "concept_cover",
              .summary = "Share of the prompt's concepts that a text uses, by Porter stem.",
              .options = no_options,
              .built = true},
    .compute = compute,
};
