/* Batched generation with a key/value cache: prompts queue for free slots, leave as they end, and the next ones take their place.
 * Several samples or beams of one prompt compute it once.
 *
 *     tg_generator *g;
 *     tg_generator_create(&g, model, &settings, (tg_decoder_caps){.slots = 16, .len = 128}, err);
 *     tg_generator_add(g, id, prompt, n_prompt, seed, domain, number, err);     // any number
 *     while (tg_generator_active(g)) tg_generator_advance(g, on_done, arg, err);
 *
 * A result depends only on the model, the settings, its prompt and its stream (seed, domain, number): not on what else is in the
 * batch, nor on when it entered. Result k of num_return_sequences draws from stream number * num_return_sequences + k. */
#ifndef TG_POLICY_GENERATE_H
#define TG_POLICY_GENERATE_H

#include "common/base/rng.h"
#include "common/nn/decoder.h"
#include "learner/policy/gen_settings.h"
#include "learner/policy/mask.h"
#include "learner/policy/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* Borrowed during the callback. */
typedef struct tg_gen_result {
    uint64_t id;
    int index;             /* which of the prompt's num_return_sequences; beams: best first */
    const int32_t *tokens; /* new tokens only, the final eos included */
    const float *logp;     /* log-prob of each under the full distribution */
    /* under the distribution it was drawn from (temperature, top-k …), 0 when greedy; beams: what it added to the score */
    const float *sample_logp;
    /* what the value head said of the text before each; NULL: not asked for (caps.values), or beams */
    const float *value;
    /* (n, words of V) the tokens that each was chosen from; NULL: without a mask */
    const uint32_t *masks;
    int n;
    tg_gen_end end;
    bool eos; /* ended by eos, not by length or a stop sequence */
    /* of a beam, as transformers's sequences_scores; NaN without beams. Where fewer texts are possible than results are
     * wanted, the others are empty, with end NONE and -1e9: transformers repeats itself there */
    double score;
} tg_gen_result;
typedef tg_status tg_gen_done(void *arg, const tg_gen_result *result, tg_error *err);

typedef struct tg_generator tg_generator;
/* The settings are copied; what they point to is borrowed. caps.slots is made a multiple of num_beams (tg_gen_slots); caps.len: most tokens
 * that prompt and result may have together, without the last; of a seq2seq model the start token and the result. */
tg_status tg_generator_create(tg_generator **out, tg_model *m, const tg_gen_settings *s,
                              tg_decoder_caps caps, tg_error *err) TG_MUST_CHECK;
void tg_generator_destroy(tg_generator **g);
/* Room for prompts and results of these lengths. */
tg_decoder_caps tg_generator_caps(const tg_arch *arch, int slots, int max_prompt, int max_new);
/* What a generator of these caps takes, with the decoder's caches and packed weights; masked: the mask model's decoder too. For the memory
 * plan: prompts that wait are not counted. */
size_t tg_generator_bytes(const tg_arch *arch, const tg_gen_settings *s, tg_decoder_caps caps,
                          int threads, bool masked);
/* What a seq2seq model's answers begin with; -1: the model is causal. */
int32_t tg_generator_start(const tg_generator *g);
/* Restricts every token to what `opts` makes of this model's distribution on the same tokens (mask.h). Before the first prompt. The model and
 * `always` (words of V bits: the special tokens) are borrowed. With beams results have no
 * masks, and a set is applied to log-probs of the whole distribution. TG_UNSUPPORTED: several results of a prompt without beams. */
tg_status tg_generator_mask(tg_generator *g, tg_model *mask_model, const tg_mask_opts *opts,
                            const uint32_t *always, tg_error *err) TG_MUST_CHECK;
/* A seq2seq model's prompt is its source; the answer begins with decoder_start_token_id. TG_DATA: the prompt is empty, or it and the
 * result would not fit. */
tg_status tg_generator_add(tg_generator *g, uint64_t id, const int32_t *prompt, int n_prompt,
                           uint64_t seed, tg_rng_domain domain, uint64_t number,
                           tg_error *err) TG_MUST_CHECK;
int tg_generator_active(const tg_generator *g); /* prompts queued or running */
/* New tokens so far, of finished and running sequences; of beams those of the results. */
int64_t tg_generator_tokens(const tg_generator *g);
/* Fills free slots from the queue (prefill), then one token for every running sequence; `done` is
 * called for those that ended. After the first tokens nothing is allocated. */
tg_status tg_generator_advance(tg_generator *g, tg_gen_done *done, void *arg,
                               tg_error *err) TG_MUST_CHECK;

#endif
