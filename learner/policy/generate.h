/* Batched generation with a key/value cache: sequences enter slots, leave as they end, and the next
 * ones take their place.
 *
 *     tg_generator *g;
 *     tg_generator_create(&g, model, &settings, n_slots, max_len, err);
 *     tg_generator_add(g, id, prompt, n_prompt, stream, err);        // any number; they queue for
 * a free slot while (tg_generator_active(g)) tg_generator_advance(g, on_done, arg, err);
 *
 * A sequence's tokens depend only on the model, the settings, its prompt and its stream (seed,
 * domain, number): not on what else is in the batch, nor on when it entered. */
#ifndef TG_POLICY_GENERATE_H
#define TG_POLICY_GENERATE_H

#include "common/base/rng.h"
#include "common/nn/decoder.h"
#include "learner/policy/gen_settings.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_gen_result {
    uint64_t id;
    const int32_t
        *tokens;       /* new tokens only, the final eos included; borrowed during the callback */
    const float *logp; /* log-prob of each under the full distribution */
    const float *sample_logp; /* under the distribution it was drawn from (temperature, top-k …) */
    int n;
    bool eos; /* ended by eos, not by length */
} tg_gen_result;
typedef tg_status tg_gen_done(void *arg, const tg_gen_result *result, tg_error *err);

typedef struct tg_generator tg_generator;
tg_status tg_generator_create(tg_generator **out, tg_model *m, const tg_gen_settings *s,
                              int n_slots, int max_len, tg_error *err) TG_MUST_CHECK;
void tg_generator_destroy(tg_generator **g);
tg_status tg_generator_add(tg_generator *g, uint64_t id, const int32_t *prompt, int n_prompt,
                           uint64_t seed, tg_rng_domain domain, uint64_t number,
                           tg_error *err) TG_MUST_CHECK;
int tg_generator_active(const tg_generator *g); /* queued or running */
int64_t tg_generator_tokens(
    const tg_generator *g); /* new tokens so far, of finished and running sequences */
/* Fills free slots from the queue (prefill), then one token for every running sequence; `done` is
 * called for those that ended. */
tg_status tg_generator_advance(tg_generator *g, tg_gen_done *done, void *arg,
                               tg_error *err) TG_MUST_CHECK;

#endif
