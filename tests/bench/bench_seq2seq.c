/* A T5-base-shaped model (223 M parameters) with random weights, f32, all cores: forward, training step and decoding. Names and shapes are
 * those of peer_torch.py.
 *
 *   bench_seq2seq [CASE…]      default: every case, each in a process of its own so that peak memory is its own */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/rng.h"
#include "common/nn/pass.h"
#include "learner/optim/optim.h"
#include "learner/policy/generate.h"
#include "tests/support/bench_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 8, SOURCE = 64, TARGET = 48, SLOTS = 16, PROMPT = 64, NEW = 64 };

typedef struct bench {
    const char *name;
    tg_weight_form weights; /* of decoding */
    tg_backend *be;
    tg_arch arch;
    tg_model *model;
    tg_pass *pass;
    tg_optim *optim;
    tg_batch packed;
    tg_generator *generator;
    float *logp, *dlogp;
    int32_t *prompts;
} bench;

static tg_error err;

static void must(tg_status st) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_seq2seq: %s\n", err.msg);
    exit(tg_status_exit_code(st));
}

static void report(const bench *b, double seconds, double flops, double bytes, const char *note) {
    double peak = tg_bench_peak_mb();
    printf("%-34s %9.1f ms  %7.1f GFLOP/s  peak %.2f GB%s\n", b->name, seconds * 1e3,
           flops / seconds * 1e-9, peak / 1e3, note);
    tg_bench_line(&(tg_bench_result){b->name, seconds, flops, bytes, peak, NULL});
}

static void open_model(bench *b, unsigned flags) {
    b->arch = (tg_arch){.family = "t5",
                        .kind = TG_KIND_SEQ2SEQ,
                        .n_layers = 12,
                        .n_heads = 12,
                        .n_kv_heads = 12,
                        .head_dim = 64,
                        .width = 768,
                        .mlp_width = 3072,
                        .enc_layers = 12,
                        .enc_heads = 12,
                        .enc_head_dim = 64,
                        .enc_mlp_width = 3072,
                        .vocab_size = 32128,
                        .max_positions = 512,
                        .norm = TG_NORM_RMS,
                        .norm_eps = 1e-6f,
                        .out_in = true,
                        .unscaled_attn = true,
                        .final_norm = true,
                        .rel_buckets = 32,
                        .rel_distance = 128,
                        .act = TG_ACT_RELU,
                        .tied_head = true,
                        .logit_scale = 0.0360844f,
                        .bos_id = -1,
                        .eos_id = -1,
                        .pad_id = 0,
                        .start_id = 0};
    must(tg_model_create(&b->model, b->be, &b->arch, flags, 1, &err));
}

static int32_t *random_tokens(const bench *b, size_t n) {
    int32_t *tokens = tg_alloc_array(n, sizeof *tokens);
    TG_ASSERT(tokens);
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, n, 0);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)tg_rng_below(&rng, (uint64_t)b->arch.vocab_size);
    return tokens;
}

static int32_t *steps_of(int n, int step) {
    int32_t *list = tg_alloc_array((size_t)n, sizeof *list);
    TG_ASSERT(list);
    for (int i = 0; i < n; i++) list[i] = i * step;
    return list;
}

/* Multiply-adds, counted as two, of so many sources and answers of so many tokens: matrices, scores and sums. */
static double flops_of(const tg_arch *a, int n, int source, int target) {
    const double C = a->width, attn = 4 * C * C, mlp = 2 * C * a->mlp_width, L = a->n_layers;
    const double src = (double)n * source, dst = (double)n * target;
    double matrices = src * L * (attn + mlp) + dst * L * (attn + 2 * C * C + mlp) +
                      src * L * 2 * C * C + dst * C * a->vocab_size;
    double scores = L * 2 * C * (src * source + dst * (target + 1) / 2.0 + dst * source);
    return 2 * (matrices + scores);
}

static void open_pass(bench *b, bool train) {
    open_model(b, train ? TG_MODEL_TRAINABLE : 0);
    const int N = BATCH * TARGET, P = BATCH * SOURCE;
    int32_t *tokens = random_tokens(b, (size_t)N + 1);
    b->packed = (tg_batch){.n_tokens = N,
                           .n_seqs = BATCH,
                           .n_actions = N,
                           .tokens = tokens,
                           .offsets = steps_of(BATCH + 1, TARGET),
                           .act_row = steps_of(N, 1),
                           .act_token = tokens + 1,
                           .n_src = P,
                           .src_tokens = random_tokens(b, (size_t)P),
                           .src_offsets = steps_of(BATCH + 1, SOURCE)};
    b->logp = tg_alloc_array((size_t)N, sizeof(float));
    b->dlogp = tg_alloc_array((size_t)N, sizeof(float));
    TG_ASSERT(b->logp && b->dlogp);
    for (int i = 0; i < N; i++) b->dlogp[i] = -1.0f / (float)N;
    const tg_pass_caps caps = {.tokens = N, .seqs = BATCH, .actions = N, .src = P};
    must(tg_pass_create(&b->pass, b->model, caps, train ? TG_PASS_TRAIN : TG_PASS_SCORE, &err));
}

static void forward(void *arg) {
    bench *b = arg;
    must(tg_pass_forward(b->pass, &b->packed, (tg_pass_out){.logp = b->logp}, &err));
}

static void bench_forward(bench *b) {
    open_pass(b, false);
    report(b, tg_bench_best(forward, b), flops_of(&b->arch, BATCH, SOURCE, TARGET), 0, "");
}

static void train_step(void *arg) {
    bench *b = arg;
    forward(b);
    must(tg_pass_backward(b->pass, b->dlogp, NULL, NULL, &err));
    double norm = tg_optim_grad_norm(b->optim);
    tg_optim_step(b->optim, 1e-5, norm > 0.5 ? (float)(0.5 / (norm + 1e-6)) : 1.0f);
}

static void bench_train_step(bench *b) {
    open_pass(b, true);
    const tg_optim_opts opts = {
        .kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2};
    must(tg_optim_create(&b->optim, &b->model, 1, &opts, &err));
    report(b, tg_bench_best(train_step, b), 3 * flops_of(&b->arch, BATCH, SOURCE, TARGET), 0, "");
}

static tg_status ignore(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)arg, (void)r, (void)e;
    return TG_OK;
}

static void decode(void *arg) {
    bench *b = arg;
    for (int i = 0; i < SLOTS; i++)
        must(tg_generator_add(b->generator, (uint64_t)i, b->prompts + (size_t)i * PROMPT, PROMPT, 1,
                              TG_RNG_SAMPLE, (uint64_t)i, &err));
    while (tg_generator_active(b->generator))
        must(tg_generator_advance(b->generator, ignore, NULL, &err));
}

static void bench_decode(bench *b) {
    open_model(b, 0);
    b->prompts = random_tokens(b, (size_t)SLOTS * PROMPT);
    tg_gen_settings s;
    tg_arena arena = {0};
    must(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.do_sample = false;
    s.max_new_tokens = NEW;
    s.weights = b->weights;
    must(tg_generator_create(&b->generator, b->model, &s,
                             tg_generator_caps(&b->arch, SLOTS, PROMPT, NEW), &err));
    tg_arena_fini(&arena);
    double seconds = tg_bench_best(decode, b);
    /* A step reads the decoder's matrices, all keys and values, and those of the sources. */
    const tg_arch *a = &b->arch;
    const double C = a->width, L = a->n_layers;
    const double matrices = L * (6 * C * C + 2 * C * a->mlp_width) + C * a->vocab_size;
    const double rows = 2 * L * C * (PROMPT + NEW / 2.0) * SLOTS;
    const double bytes = (b->weights == TG_WEIGHT_PACKED_BF16 ? 2 : 4) * matrices + 4 * rows;
    char note[64];
    snprintf(note, sizeof note, "  %.0f new tokens/s", SLOTS * NEW / seconds);
    report(b, seconds, flops_of(a, SLOTS, PROMPT, NEW), bytes * NEW, note);
}

static const struct {
    const char *name;
    void (*run)(bench *b);
    tg_weight_form weights;
} cases[] = {{"t5-base/forward", bench_forward, 0},
             {"t5-base/train_step", bench_train_step, 0},
             {"t5-base/decode_b16", bench_decode, TG_WEIGHT_PACKED},
             {"t5-base/decode_b16_bf16", bench_decode, TG_WEIGHT_PACKED_BF16}};

/* Memory is left to the end of the process. */
static int run_case(size_t i) {
    bench b = {.name = cases[i].name, .weights = cases[i].weights};
    must(tg_backend_open(&b.be, "cpu", 0, &err));
    cases[i].run(&b);
    tg_generator_destroy(&b.generator);
    tg_optim_destroy(&b.optim);
    tg_pass_destroy(&b.pass);
    tg_model_destroy(&b.model);
    tg_backend_close(&b.be);
    return 0;
}

static int in_process(size_t i) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) exit(run_case(i));
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 71;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}

int main(int argc, char **argv) {
    int ran = 0, code = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !code; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted = wanted || !strcmp(argv[k], cases[i].name);
        if (!wanted) continue;
        code = in_process(i);
        ran++;
    }
    if (ran) return code;
    fprintf(stderr, "usage: bench_seq2seq [CASE…]; the cases are:\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fprintf(stderr, "  %s\n", cases[i].name);
    return 64;
}
