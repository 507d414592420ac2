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

/* What a metric does with one item after another, each on its own. */
typedef struct tg_item_loop {
    size_t work_size; /* of the scratch memory that every thread has, zeroed at first */
    size_t out_size;  /* of an item's result */
    tg_status (*start)(void *work, const void *state, tg_error *err); /* NULL: zeroed will do */
    tg_status (*one)(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err);
    void (*end)(void *work); /* NULL: nothing to free */
} tg_item_loop;

/* Fills outs, in->n results, on in->threads threads. On failure err is that of the first item that failed. */
tg_status tg_items_run(const tg_metric_input *in, const tg_item_loop *loop, const void *state,
                       void *outs, tg_error *err) TG_MUST_CHECK;
/* The same where a result is one number: its values (left out if !samples) and their mean under the key. */
tg_status tg_items_mean(const tg_metric_input *in, const tg_item_loop *loop, const void *state,
                        const char *key, bool samples, tg_metric_out *out,
                        tg_error *err) TG_MUST_CHECK;

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
