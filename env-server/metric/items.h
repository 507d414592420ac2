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

/* A value for each item by f, and their mean, under the key. work and state are handed to f. */
typedef tg_status tg_item_score(void *work, const void *state, const tg_metric_item *item,
                                double *out, tg_error *err);
tg_status tg_items_mean(const tg_metric_input *in, tg_item_score *f, void *work, const void *state,
                        const char *key, tg_metric_out *out, tg_error *err) TG_MUST_CHECK;

/* RL4LMs's captioning metrics keep results by prompt: the last text and references of a prompt stand at its first
 * place, for all samples that have it. */
typedef struct tg_by_prompt {
    tg_metric_item *items; /* n of them */
    double *values;        /* n, to be filled */
    size_t n;
    size_t *place; /* of each sample, n_all of them */
    size_t n_all;
} tg_by_prompt;

/* together false: every sample stands for itself. */
tg_status tg_by_prompt_init(tg_by_prompt *b, const tg_metric_item *items, size_t n, bool together,
                            tg_error *err) TG_MUST_CHECK;
void tg_by_prompt_spread(const tg_by_prompt *b, double *out, double *mean); /* of n_all; of n */
void tg_by_prompt_fini(tg_by_prompt *b);

#endif
