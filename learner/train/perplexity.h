/* The metric causal_perplexity: of the references of a split under the policy. Only the learner has the policy, so it is computed here and not by
 * a worker. */
#ifndef TG_TRAIN_PERPLEXITY_H
#define TG_TRAIN_PERPLEXITY_H

#include "learner/train/evaluate.h"

#define TG_PERPLEXITY_KEY "fluency_metrics/perplexity"

/* What train_evaluation.metrics asks of the learner. The workers check the keys. */
tg_status tg_perplexity_read(tg_perplexity_settings *s, const tg_node *metrics, tg_arena *arena,
                             tg_error *err) TG_MUST_CHECK;
/* Opens the tokenizer that a run's metric needs. Before the memory plan: what it takes, tens of MB for a large vocabulary, is then part of the
 * program's. A folder that is not there is an evaluation's trouble. */
void tg_perplexity_prepare(tg_run *run);
/* TG_DATA, TG_UNSUPPORTED, TG_NOINPUT: there is no value, for the reason in err. */
tg_status tg_perplexity_of_split(tg_run *run, tg_model *m, const tg_split_samples *samples,
                                 double *out, tg_error *err) TG_MUST_CHECK;

#endif
