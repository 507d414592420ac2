/* From the logits of one position to a token: processors, warpers and the draw, in the order of transformers.
 * The draw is the inverse of the cumulative distribution in order of token id at a given uniform number, so it is a
 * pure function of (logits, settings, sequence, u). O(V). */
#ifndef TG_POLICY_SAMPLE_H
#define TG_POLICY_SAMPLE_H

#include "common/base/status.h"
#include "learner/policy/processors.h"
#include "learner/policy/warpers.h"

#include <stdint.h>

typedef struct tg_draw {
    int32_t token;
    float logp;        /* under the full, unprocessed distribution */
    float sample_logp; /* under the distribution it was drawn from; 0 when greedy */
} tg_draw;

/* What a mask says of the token to be drawn: `allowed` (words of V bits) restricts it, behind the processors and before the warpers; what is
 * left after all of them goes to `left`, unless NULL. */
typedef struct tg_sample_mask {
    const uint32_t *allowed;
    uint32_t *left;
} tg_sample_mask;

/* logits (V). mask may be NULL. TG_DATA: a logit is NaN or all are -inf (a broken model), or every token is forbidden. */
tg_status tg_sample(const tg_gen_settings *s, const tg_gen_context *c, const float *logits, int V,
                    const tg_sample_mask *mask, double u, tg_gen_space *w, tg_draw *out,
                    tg_error *err) TG_MUST_CHECK;

#endif
