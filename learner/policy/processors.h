/* Logits processors: penalties and prohibitions on the next token's scores, in the order in which transformers applies them. Greedy
 * search, sampling and beam search all use them; beams on log-probs, the others on logits. */
#ifndef TG_POLICY_PROCESSORS_H
#define TG_POLICY_PROCESSORS_H

#include "learner/policy/gen_settings.h"

/* The sequence so far. */
typedef struct tg_gen_context {
    const int32_t *tokens; /* (n) prompt and new tokens; of an encoder-decoder the decoder's */
    int n, n_prompt;
    int max_new;
    const int32_t *source; /* (n_source) the encoder's input; of a causal model the prompt */
    int n_source;
} tg_gen_context;

/* False: scores come out as they go in, at any time. */
bool tg_processors_any(const tg_gen_settings *s);

/* scores (V) in place. work (V). */
void tg_process(const tg_gen_settings *s, const tg_gen_context *c, float *scores, int V,
                float *work);

/* Adds what the next token is forced to be, if it is, to a set of allowed tokens (words of V bits): it is nobody's choice, and a set
 * without it would leave none. */
void tg_process_allow_forced(const tg_gen_settings *s, const tg_gen_context *c, uint32_t *bits,
                             int V);

#endif
