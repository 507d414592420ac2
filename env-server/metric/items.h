/* What every metric against references asks of its input. */
#ifndef TG_ENV_METRIC_ITEMS_H
#define TG_ENV_METRIC_ITEMS_H

#include "env-server/metric/metric.h"

static inline size_t tg_item_references(const tg_metric_item *item) {
    return item->sample ? item->sample->n_references : 0;
}

/* TG_DATA naming the first sample without a reference. */
tg_status tg_items_need_references(const tg_metric_input *in, tg_error *err) TG_MUST_CHECK;
/* TG_DATA unless all samples have the same number of them, as RL4LMs's sacrebleu family demands. */
tg_status tg_items_need_equal(const tg_metric_input *in, tg_error *err) TG_MUST_CHECK;

#endif
