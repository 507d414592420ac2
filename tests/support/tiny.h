/* Small random models and packed batches for the tests of passes and decoding. */
#ifndef TG_TEST_TINY_H
#define TG_TEST_TINY_H

#include "common/nn/pass.h"

/* A GPT-2 whose every tensor is random and large enough to matter; 3 heads of 4, two layers. */
tg_arch tg_tiny_arch(void);
tg_model *tg_tiny_model(tg_backend *be, const tg_arch *arch, unsigned flags, uint64_t seed);

typedef struct tg_tiny_batch {
    tg_batch batch; /* points into the arrays below */
    int32_t tokens[512], offsets[33], act_row[512], act_token[512];
} tg_tiny_batch;

/* Sequences of the given lengths; every row from `prompt` - 1 on carries an action (the next token, a random one at the end). */
void tg_tiny_fill(tg_tiny_batch *b, const tg_arch *arch, const int *lengths, int n, int prompt,
                  uint64_t seed);

tg_backend *tg_tiny_backend(const char *name,
                            int threads);     /* a failed check when it does not open */
tg_pass_caps tg_tiny_caps(const tg_batch *b); /* as many as the batch has */
double tg_tiny_worst(const float *a, const float *b, size_t n); /* largest difference; NaN stays */

#endif
