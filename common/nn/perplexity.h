/* Perplexity of a long text under a causal model, window by window, as RL4LMs counts it: every window judges the next `stride` tokens, and
 * starts as far before them as the model's positions allow. The mean of a window counts for all of them, also where the first, which nothing
 * stands before, has no probability. */
#ifndef TG_NN_PERPLEXITY_H
#define TG_NN_PERPLEXITY_H

#include "common/nn/pass.h"

typedef struct tg_perplexity_opts {
    int stride;              /* at least 1 */
    bool (*stop)(void *arg); /* asked before every window: TG_INTERRUPTED; NULL: nobody stops it */
    void *arg;
} tg_perplexity_opts;

/* tokens: n >= 2 of them. TG_DATA: fewer, one outside the vocabulary, or a stride beyond the positions that leaves a window empty;
 * TG_UNSUPPORTED: no causal model. */
tg_status tg_perplexity(tg_model *m, const int32_t *tokens, size_t n, tg_perplexity_opts opts,
                        double *out, tg_error *err) TG_MUST_CHECK;
/* Bytes of its buffers, for any text. */
size_t tg_perplexity_bytes(const tg_arch *arch, int stride);
/* And of what its ops work in. */
size_t tg_perplexity_workspace(const tg_arch *arch, unsigned model_flags, int stride);

#endif
