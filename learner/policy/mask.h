/* Action masks: which tokens a maskable policy may choose in a state, and what log-probs mean then.
 *
 * The mask model's distribution on the same tokens gives the set: its k most probable tokens (learned_top_k), its top-p nucleus
 * (learned_top_p), or the policy's own k most probable (topk). The tokenizer's special tokens are always allowed. */
#ifndef TG_POLICY_MASK_H
#define TG_POLICY_MASK_H

#include "learner/policy/warpers.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tg_mask_kind {
    TG_MASK_NONE,
    TG_MASK_LEARNED_TOP_K,
    TG_MASK_LEARNED_TOP_P,
    TG_MASK_TOP_K
} tg_mask_kind;

typedef struct tg_mask_opts {
    tg_mask_kind kind;
    double top;       /* share of probability, or number of tokens */
    int64_t min_keep; /* tokens that learned_top_p keeps at least */
    int64_t every;    /* iterations between copies of the policy */
    /* RL4LMs's ways: the mask model is never replaced; the sets recorded are what is left after all other processors and warpers;
     * log-probs are those of the whole distribution, and the entropy is -sum over the set of q log p, with q the
     * renormalised and p the whole distribution. */
    bool compat;
} tg_mask_opts;

/* What to do where a mask and the penalties leave no token. */
#define TG_MASK_ADVICE                                                                             \
    "generation_kwargs forbid all that the mask allows; give a larger top_mask or "                \
    "min_tokens_to_keep"

/* bits (words of V): the tokens allowed in a state, from the mask model's and the policy's logits (V) there. `always` (words): the special
 * tokens. A state has at least min_keep tokens; w->e, w->work and w->blocks are used. */
void tg_mask_make(const tg_mask_opts *o, const float *learned, const float *policy, int V,
                  const uint32_t *always, uint32_t *bits, tg_gen_space *w);
/* Scores (V) of tokens that are not in the set become -infinity. */
void tg_mask_forbid(float *scores, const uint32_t *bits, int V);

#endif
