/* From the logits of one position to a token: processors, warpers and the draw, in the order of
 * transformers.
 *
 *   processors: repetition penalty, no-repeat n-gram, minimum length
 *   warpers (only when sampling): temperature, top-k, top-p
 * The draw is the inverse of the cumulative distribution in order of token id at a given uniform
 * number, so it is a pure function of (logits, settings, history, u). */
#ifndef TG_POLICY_SAMPLE_H
#define TG_POLICY_SAMPLE_H

#include "common/base/status.h"
#include "learner/policy/gen_settings.h"

#include <stdint.h>

typedef struct tg_draw {
    int32_t token;
    float logp;        /* under the full, unprocessed distribution */
    float sample_logp; /* under the distribution it was drawn from; 0 when greedy */
} tg_draw;

/* logits (V) are overwritten. history (n_history): prompt and new tokens so far, n_new of them new.
 * scratch (2 V) floats. TG_DATA: a logit is NaN or all are -inf (a broken model). */
tg_status tg_sample(const tg_gen_settings *s, float *logits, int V, const int32_t *history,
                    int n_history, int n_new, double u, float *scratch, tg_draw *out,
                    tg_error *err) TG_MUST_CHECK;

#endif
