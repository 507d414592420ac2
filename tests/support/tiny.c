#include "tests/support/tiny.h"

#include "common/base/check.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tg_arch tg_tiny_arch(void) {
    return (tg_arch){.family = "gpt2",
                     .n_layers = 2,
                     .n_heads = 3,
                     .n_kv_heads = 3,
                     .head_dim = 4,
                     .width = 12,
                     .mlp_width = 48,
                     .vocab_size = 29,
                     .max_positions = 24,
                     .norm_eps = 1e-5f,
                     .tied_head = true,
                     .bos_id = 28,
                     .eos_id = 28,
                     .pad_id = -1};
}

tg_model *tg_tiny_model(tg_backend *be, const tg_arch *arch, unsigned flags, uint64_t seed) {
    tg_model *m;
    TG_ASSERT(tg_model_create(&m, be, arch, flags, seed, NULL) == TG_OK);
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        float *x = malloc(p->count * sizeof *x);
        tg_rng r = tg_rng_at(seed, TG_RNG_TEST, i, 0);
        for (size_t k = 0; k < p->count; k++)
            x[k] = (float)(0.2 * tg_rng_normal(&r) + (p->init == TG_INIT_ONE ? 1.0 : 0.0));
        TG_ASSERT(tg_model_set(m, p->name, x, p->count, NULL) == TG_OK);
        free(x);
    }
    return m;
}

void tg_tiny_fill(tg_tiny_batch *b, const tg_arch *arch, const int *lengths, int n, int prompt,
                  uint64_t seed) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, 1 << 20, 0);
    memset(b, 0, sizeof *b);
    int N = 0, A = 0;
    for (int s = 0; s < n; s++) {
        b->offsets[s] = N;
        for (int i = 0; i < lengths[s]; i++) {
            b->tokens[N] = (int32_t)tg_rng_below(&r, (uint64_t)arch->vocab_size);
            if (i >= prompt) b->act_token[A - 1] = b->tokens[N];
            if (i >= prompt - 1) {
                b->act_row[A] = N;
                b->act_token[A++] = (int32_t)tg_rng_below(&r, (uint64_t)arch->vocab_size);
            }
            TG_ASSERT(++N <= 512);
        }
    }
    b->offsets[n] = N;
    b->batch = (tg_batch){.n_tokens = N,
                          .n_seqs = n,
                          .n_actions = A,
                          .tokens = b->tokens,
                          .offsets = b->offsets,
                          .act_row = b->act_row,
                          .act_token = b->act_token};
}

tg_backend *tg_tiny_backend(const char *name, int threads) {
    tg_backend *be = NULL;
    tg_error err;
    CHECK_OK(tg_backend_open(&be, name, threads, &err));
    return be;
}

tg_pass_caps tg_tiny_caps(const tg_batch *b) {
    return (tg_pass_caps){.tokens = b->n_tokens, .seqs = b->n_seqs, .actions = b->n_actions};
}

double tg_tiny_worst(const float *a, const float *b, size_t n) {
    double w = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= w)) w = d;
    }
    return w;
}
