/* The beam search of one prompt, without the model: logits of the running beams go in, the next tokens and whom they continue come out.
 * Plain, sampling and group search, by the settings.
 *
 *     tg_beams_start(b, &prompt);                 // all beams continue one row: the prompt's last
 *     while (!tg_beams_done(b)) {
 *         tg_beams_step(b, rows, space, err);     // rows[i]: logits of beam i where it is live
 *         for each live i: tg_beams_get(b, i, …)  // beam i continues former beam `parent` by `token`
 *     }
 *     tg_beams_result(b, 0)                       // the best
 */
#ifndef TG_POLICY_BEAM_H
#define TG_POLICY_BEAM_H

#include "common/base/rng.h"
#include "learner/policy/stop.h"
#include "learner/policy/warpers.h"

typedef struct tg_beam_prompt {
    const int32_t *tokens; /* (n) of the decoder; copied */
    int n;
    int max_new;
    /* (n_source) of the encoder, or the prompt; borrowed until the search is done */
    const int32_t *source;
    int n_source;
    uint64_t seed, number; /* of the stream that beam sampling draws from */
    tg_rng_domain domain;
} tg_beam_prompt;

/* Finished, or running. */
typedef struct tg_hypothesis {
    int32_t *tokens; /* (n) prompt and new tokens */
    float *logp;     /* of each new token under the model's distribution */
    float *step;     /* what each added to the score: its processed log-prob */
    int n;
    double score; /* finished: divided by the length as length_penalty says; running: the sum */
    tg_gen_end end;
} tg_hypothesis;

typedef struct tg_beams tg_beams;

/* max_len: most tokens of prompt and result together. The settings are borrowed. */
tg_status tg_beams_create(tg_beams **out, const tg_gen_settings *s, int V, int max_len,
                          tg_error *err) TG_MUST_CHECK;
void tg_beams_destroy(tg_beams **b);

/* In every step to come beam i may only go on with the tokens of allowed[i] (mask.h), behind the processors; log-probs stay those of the
 * whole distribution. Borrowed; what the sets hold may change between steps. NULL: all tokens. */
void tg_beams_allow(tg_beams *b, const uint32_t *const *allowed);
void tg_beams_start(tg_beams *b, const tg_beam_prompt *p);
/* TG_DATA: a broken model, or every token of every beam is forbidden. */
tg_status tg_beams_step(tg_beams *b, const float *const *rows, tg_gen_space *w,
                        tg_error *err) TG_MUST_CHECK;
bool tg_beams_done(const tg_beams *b);

typedef struct tg_beam {
    bool live;  /* wants logits */
    int parent; /* which beam of the step before it continues */
    const tg_hypothesis *h;
} tg_beam;
tg_beam tg_beams_get(const tg_beams *b, int beam); /* 0 .. num_beams - 1 */

/* k-th best, 0 .. num_return_sequences - 1; NULL: there are fewer. */
const tg_hypothesis *tg_beams_result(const tg_beams *b, int k);

#endif
