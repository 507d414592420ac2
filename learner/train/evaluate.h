/* Evaluation of a split: generate for every sample, let a worker compute the metrics, report both. */
#ifndef TG_TRAIN_EVALUATE_H
#define TG_TRAIN_EVALUATE_H

#include "learner/train/run.h"

/* epoch names the files; heading: show samples under it, or NULL. Sampling depends on (seed, split, epoch, sample) alone.
 * TG_INTERRUPTED: a stop was requested; nothing was reported. */
tg_status tg_evaluate(tg_run *run, tg_model *m, tg_model *mask_model, tg_split split, double epoch,
                      const char *heading, tg_error *err) TG_MUST_CHECK;

/* All samples of a split, in chunks as the workers send them. */
typedef struct tg_split_samples {
    tg_samples **chunks; /* owned messages */
    size_t n_chunks, n;
    const tg_sample **all; /* (n) */
} tg_split_samples;
tg_status tg_split_samples_load(tg_split_samples *s, tg_pool *pool, tg_split split,
                                tg_error *err) TG_MUST_CHECK;
void tg_split_samples_fini(tg_split_samples *s);

#endif
