/* Batched generation with a key/value cache: sequences enter slots, leave as they end, and the next ones take their place.
 *
 *     tg_generator *g;
 *     tg_generator_create(&g, model, &settings, n_slots, max_len, err);
 *     tg_generator_add(g, id, prompt, n_prompt, stream, err);        // any number; they queue for a free slot
 *     while (tg_generator_active(g)) tg_generator_advance(g, on_done, arg, err);
 *
 * A sequence's tokens depend only on the model, the settings, its prompt and its stream (seed, domain, number): not on what else is in
 * the batch, nor on when it entered. */
#ifndef TG_POLICY_GENERATE_H
#define TG_POLICY_GENERATE_H

#include "common/base/rng.h"
#include "common/config/option.h"
#include "common/nn/decoder.h"

#include <stdbool.h>
#include <stdint.h>

/* generation_kwargs, with the defaults of transformers 4.18 (top_k 50) unless the model's config says otherwise. */
typedef struct tg_gen_settings {
    bool do_sample;
    double temperature, top_p;
    int64_t top_k;          /* 0: off */
    int64_t min_length;     /* in new tokens (causal policies count from the end of the prompt) */
    int64_t min_new_tokens, max_new_tokens;
    double repetition_penalty;
    int64_t no_repeat_ngram_size;
    int64_t num_beams, num_return_sequences;
    int32_t eos_id, pad_id; /* filled by the caller; -1: none */
} tg_gen_settings;

extern const tg_opt tg_gen_options[]; /* every key RL4LMs passes through; unsupported values are refused by name */

/* Reads generation_kwargs (a map node or NULL). */
tg_status tg_gen_settings_read(tg_gen_settings *s, const tg_node *node, const char *path, tg_arena *arena,
                               tg_error *err) TG_MUST_CHECK;

typedef struct tg_gen_result {
    uint64_t id;
    const int32_t *tokens; /* new tokens only, the final eos included; borrowed during the callback */
    const float *logp;     /* log-prob of each under the full distribution */
    const float *sample_logp; /* under the distribution it was drawn from (temperature, top-k …) */
    int n;
    bool eos; /* ended by eos, not by length */
} tg_gen_result;
typedef tg_status tg_gen_done(void *arg, const tg_gen_result *result, tg_error *err);

typedef struct tg_generator tg_generator;
tg_status tg_generator_create(tg_generator **out, tg_model *m, const tg_gen_settings *s, int n_slots,
                              int max_len, tg_error *err) TG_MUST_CHECK;
void tg_generator_destroy(tg_generator **g);
tg_status tg_generator_add(tg_generator *g, uint64_t id, const int32_t *prompt, int n_prompt, uint64_t seed,
                           tg_rng_domain domain, uint64_t number, tg_error *err) TG_MUST_CHECK;
int tg_generator_active(const tg_generator *g); /* queued or running */
int64_t tg_generator_tokens(const tg_generator *g); /* new tokens so far, of finished and running sequences */
/* Fills free slots from the queue (prefill), then one token for every running sequence; `done` is called for those that ended. */
tg_status tg_generator_advance(tg_generator *g, tg_gen_done *done, void *arg, tg_error *err) TG_MUST_CHECK;

#endif
