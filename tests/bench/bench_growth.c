/* How the time and memory of a training step grow: with the tokens of a sequence, the sequences of a batch, the vocabulary and the layers.
 * Each line doubles one of them and leaves the others as they are; the exponent is log2 of what doubling costs. Linear is 1; attention
 * makes tokens a little more, fixed costs the others a little less. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/rng.h"
#include "common/nn/pass.h"
#include "learner/optim/optim.h"
#include "tests/support/bench_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tg_error err;

static void must(tg_status st) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_growth: %s\n", err.msg);
    exit(tg_status_exit_code(st));
}

typedef struct shape {
    int tokens, batch, vocab, layers;
} shape;

typedef struct work {
    tg_model *model;
    tg_pass *pass;
    tg_optim *optim;
    tg_batch batch;
    float *logp, *entropy, *dlogp;
} work;

static void step(void *arg) {
    work *w = arg;
    must(tg_pass_forward(w->pass, &w->batch, (tg_pass_out){.logp = w->logp, .entropy = w->entropy},
                         &err));
    must(tg_pass_backward(w->pass, w->dlogp, NULL, NULL, &err));
    tg_optim_step(w->optim, 1e-5, 1);
}

/* Sequences of equal length, an action at every row. */
static void fill_batch(work *w, const shape *s) {
    int n = s->tokens * s->batch;
    int32_t *ids = tg_alloc_array(3 * (size_t)n + (size_t)s->batch + 1, sizeof *ids);
    w->logp = tg_alloc_array(3 * (size_t)n, sizeof(float));
    TG_ASSERT(ids && w->logp);
    w->entropy = w->logp + n;
    w->dlogp = w->entropy + n;
    int32_t *rows = ids + n, *next = rows + n, *offsets = next + n;
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < n; i++) {
        ids[i] = (int32_t)tg_rng_below(&rng, (uint64_t)s->vocab);
        next[i] = (int32_t)tg_rng_below(&rng, (uint64_t)s->vocab);
        rows[i] = i;
        w->dlogp[i] = 1.0f / (float)n;
    }
    for (int k = 0; k <= s->batch; k++) offsets[k] = k * s->tokens;
    w->batch = (tg_batch){.n_tokens = n,
                          .n_seqs = s->batch,
                          .n_actions = n,
                          .tokens = ids,
                          .offsets = offsets,
                          .act_row = rows,
                          .act_token = next};
}

/* Seconds of a step; *mb: its buffers, parameters, gradients and moments. */
static double measure(tg_backend *be, const shape *s, double *mb) {
    tg_arch arch = {.family = "gpt2",
                    .n_layers = s->layers,
                    .n_heads = 6,
                    .n_kv_heads = 6,
                    .head_dim = 64,
                    .width = 384,
                    .mlp_width = 1536,
                    .vocab_size = s->vocab,
                    .max_positions = 1024,
                    .norm_eps = 1e-5f,
                    .tied_head = true,
                    .bos_id = -1,
                    .eos_id = -1,
                    .pad_id = -1};
    work w = {0};
    size_t before = be->bytes_used;
    must(tg_model_create(&w.model, be, &arch, TG_MODEL_TRAINABLE, 1, &err));
    fill_batch(&w, s);
    tg_pass_caps caps = {
        .tokens = w.batch.n_tokens, .seqs = s->batch, .actions = w.batch.n_actions};
    must(tg_pass_create(&w.pass, w.model, caps, TG_PASS_TRAIN, &err));
    tg_optim_opts opts = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    must(tg_optim_create(&w.optim, &w.model, 1, &opts, &err));
    *mb = (double)(be->bytes_used - before) / 1e6;
    double seconds = tg_bench_best(step, &w);
    tg_optim_destroy(&w.optim);
    tg_pass_destroy(&w.pass);
    tg_model_destroy(&w.model);
    tg_free((void *)(uintptr_t)w.batch.tokens);
    tg_free(w.logp);
    return seconds;
}

/* Multiply-adds of a step, counted as two. */
static double flops_of(const shape *s) {
    const double C = 384, tokens = (double)s->tokens * s->batch;
    return 6 * tokens *
           (12 * C * C * s->layers + C * s->vocab + C * s->layers * (double)(s->tokens + 1));
}

int main(void) {
    tg_backend *be;
    must(tg_backend_open(&be, "cpu", 0, &err));
    static const shape start = {128, 4, 4000, 4};
    static const char *const names[] = {"tokens", "batch", "vocabulary", "layers"};
    printf("training step, GPT-2 shape of width 384: %d tokens, %d sequences, vocabulary %d, %d "
           "layers, one of them doubled\n",
           start.tokens, start.batch, start.vocab, start.layers);
    for (int what = 0; what < 4; what++) {
        shape s = start;
        int *grown[] = {&s.tokens, &s.batch, &s.vocab, &s.layers};
        double last = 0, last_mb = 0;
        for (int k = 0; k < 3; k++, *grown[what] *= 2) {
            double mb, seconds = measure(be, &s, &mb);
            printf("  %-10s %6d  %8.1f ms  %7.1f MB", names[what], *grown[what], seconds * 1e3, mb);
            if (k)
                printf("   exponent %.2f, of memory %.2f", log2(seconds / last),
                       log2(mb / last_mb));
            printf("\n");
            char name[64];
            snprintf(name, sizeof name, "growth/%s_%d", names[what], *grown[what]);
            tg_bench_line(&(tg_bench_result){name, seconds, flops_of(&s), .peak_mb = mb});
            last = seconds;
            last_mb = mb;
        }
    }
    tg_backend_close(&be);
    return 0;
}
