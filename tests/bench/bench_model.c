/* GPT-2 of 124 M parameters and T5-base with random weights, all cores: forward, training step and decoding, and the fused head alone.
 * Names and shapes are those of peer_torch.py; f32 with the best kernels unless the name ends in _avx2 or _bf16.
 *
 *   bench_model --list | [--batch N] [CASE…]     default: every case, each in a process of its own so that peak memory is its own */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/str.h"
#include "common/nn/cpu/kernels.h"
#include "common/nn/pass.h"
#include "learner/optim/optim.h"
#include "learner/policy/generate.h"
#include "tests/support/bench_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 112, SOURCE = 64, TARGET = 48, PROMPT = 64, HEAD_VOCAB = 50257, HEAD_WIDTH = 768 };

typedef struct bench {
    const char *name, *who;
    int batch, slots;   /* sequences of a pass; of decoding */
    int new, head_rows; /* new tokens of a sequence; rows of the head alone */
    tg_backend *be;
    tg_arch arch;
    tg_model *model;
    tg_pass *pass;
    tg_optim *optim;
    tg_batch packed;
    tg_generator *generator;
    tg_weight_form weights; /* of decoding */
    bool half_cache;
    bool rounded; /* products of passes and of the head in bf16 */
    float *logp, *entropy, *dlogp;
    int32_t *prompts;
    float *x, *w, *dx, *dw, *lse; /* of the head alone, on the device */
    int32_t *tokens;
} bench;

static tg_error err;

static void must(tg_status st) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_model: %s\n", err.msg);
    exit(tg_status_exit_code(st));
}

static void *allocated(void *p) {
    TG_ASSERT(p);
    return p;
}

/* first: of flops, those of prompts, before anything is generated. */
static void report(const bench *b, double seconds, double flops, double first, double bytes,
                   const char *note) {
    double peak = tg_bench_peak_mb();
    printf("%-34s %-24s %9.1f ms", b->name, b->who ? b->who : "", seconds * 1e3);
    if (flops > 0) printf("  %7.1f GFLOP/s", flops / seconds * 1e-9);
    if (bytes > 0) printf("  %6.1f GB/s", bytes / seconds * 1e-9);
    printf("  peak %.2f GB%s\n", peak / 1e3, note);
    const char *isa = b->be->kernels->isa;
    const bool limited = getenv("TEXTGEN_CPU_ISA") != NULL;
    const bool half = b->weights == TG_WEIGHT_PACKED_BF16 || b->rounded;
    const bool pairs = half && !strcmp(isa, "avx512_bf16");
    tg_bench_line(&(tg_bench_result){b->name, seconds, flops, bytes, first, peak, b->who,
                                     limited || pairs ? isa : NULL});
}

static bool is_t5(const bench *b) {
    return !strncmp(b->name, "t5", 2);
}

/* The architecture as a model folder describes it. */
static void t5_arch(tg_arch *arch) {
    static const char config[] =
        "{\"model_type\": \"t5\", \"d_model\": 768, \"d_kv\": 64, \"d_ff\": 3072, \"num_layers\": "
        "12, \"num_heads\": 12, \"vocab_size\": 32128, \"decoder_start_token_id\": 0, "
        "\"pad_token_id\": 0, \"eos_token_id\": 1}";
    char folder[] = "/tmp/textgen-bench.XXXXXX";
    TG_ASSERT(mkdtemp(folder));
    char *path = tg_path_join(folder, "config.json");
    TG_ASSERT(path);
    must(tg_file_write_atomic(path, config, sizeof config - 1, &err));
    must(tg_arch_load(arch, folder, &err));
    must(tg_dir_remove(folder, &err));
    tg_free(path);
}

static void open_model(bench *b, unsigned flags) {
    if (is_t5(b)) {
        t5_arch(&b->arch);
        must(tg_model_create(&b->model, b->be, &b->arch, flags, 1, &err));
        return;
    }
    b->arch = (tg_arch){.family = "gpt2",
                        .n_layers = 12,
                        .n_heads = 12,
                        .n_kv_heads = 12,
                        .head_dim = 64,
                        .width = 768,
                        .mlp_width = 3072,
                        .vocab_size = 50257,
                        .max_positions = 1024,
                        .norm_eps = 1e-5f,
                        .tied_head = true,
                        .bos_id = -1,
                        .eos_id = -1,
                        .pad_id = -1};
    must(tg_model_create(&b->model, b->be, &b->arch, flags, 1, &err));
}

/* Weights that every token is multiplied with. */
static double matrix_weights(const tg_arch *a) {
    double C = a->width;
    return a->n_layers * (4 * C * C + 2 * C * a->mlp_width) + C * a->vocab_size;
}

/* Multiply-adds of a forward pass, counted as two: the matrices, and scores and sums of causal attention. */
static double forward_flops(const bench *b) {
    const double C = b->arch.width, layers = b->arch.n_layers, F = b->arch.mlp_width;
    double tokens = (double)b->batch * LENGTH;
    double attention = 2.0 * layers * C * tokens * (LENGTH + 1);
    if (!is_t5(b)) return 2 * matrix_weights(&b->arch) * tokens + attention;
    const double source = (double)b->batch * SOURCE, target = (double)b->batch * TARGET;
    const double layer =
        4 * C * C + 2 * C * F; /* the decoder's also queries what it is given keys and values of */
    attention = 4 * layers * C * (source * SOURCE + target * ((TARGET + 1) / 2.0 + SOURCE));
    return 2 * (layers * (layer * (source + target) + 2 * C * C * (source + target)) +
                C * b->arch.vocab_size * target) +
           attention;
}

static int32_t *random_tokens(const bench *b, int n) {
    int32_t *tokens = allocated(tg_alloc_array((size_t)n, sizeof *tokens));
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < n; i++)
        tokens[i] = (int32_t)tg_rng_below(&rng, (uint64_t)b->arch.vocab_size);
    return tokens;
}

/* The beginnings of sequences of one length, and the end. */
static int32_t *even_offsets(const bench *b, int length) {
    int32_t *offsets = allocated(tg_alloc_array((size_t)b->batch + 1, sizeof *offsets));
    for (int s = 0; s <= b->batch; s++) offsets[s] = s * length;
    return offsets;
}

static void open_pass(bench *b, bool train) {
    open_model(b, (train ? TG_MODEL_TRAINABLE : 0u) | (b->rounded ? TG_MODEL_ROUNDED : 0u));
    const int length = is_t5(b) ? TARGET : LENGTH, N = b->batch * length;
    const int sources = is_t5(b) ? b->batch * SOURCE : 0;
    int32_t *tokens = random_tokens(b, N + 1);
    int32_t *rows = allocated(tg_alloc_array((size_t)N, sizeof *rows));
    for (int i = 0; i < N; i++) rows[i] = i;
    b->packed = (tg_batch){.n_tokens = N,
                           .n_seqs = b->batch,
                           .n_actions = N,
                           .tokens = tokens,
                           .offsets = even_offsets(b, length),
                           .act_row = rows,
                           .act_token = tokens + 1};
    if (sources) {
        b->packed.n_src = sources;
        b->packed.src_tokens = random_tokens(b, sources);
        b->packed.src_offsets = even_offsets(b, SOURCE);
    }
    b->logp = allocated(tg_alloc_array((size_t)N, sizeof(float)));
    b->entropy = allocated(tg_alloc_array((size_t)N, sizeof(float)));
    b->dlogp = allocated(tg_alloc_array((size_t)N, sizeof(float)));
    for (int i = 0; i < N; i++) b->dlogp[i] = -1.0f / (float)N;
    must(tg_pass_create(&b->pass, b->model,
                        (tg_pass_caps){.tokens = N, .seqs = b->batch, .actions = N, .src = sources},
                        train, &err));
}

static void forward(void *arg) {
    bench *b = arg;
    must(tg_pass_forward(b->pass, &b->packed, (tg_pass_out){.logp = b->logp}, &err));
}

static void bench_forward(bench *b) {
    open_pass(b, false);
    report(b, tg_bench_best(forward, b), forward_flops(b), 0, 0, "");
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
    must(tg_optim_create(
        &b->optim, &b->model, 1,
        &(tg_optim_opts){
            .kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-2},
        &err));
    report(b, tg_bench_best(train_step, b), 3 * forward_flops(b), 0, 0, "");
}

static tg_status ignore(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)arg, (void)r, (void)e;
    return TG_OK;
}

static void decode(void *arg) {
    bench *b = arg;
    for (int i = 0; i < b->slots; i++)
        must(tg_generator_add(b->generator, (uint64_t)i, b->prompts + (size_t)i * PROMPT, PROMPT, 1,
                              TG_RNG_SAMPLE, (uint64_t)i, &err));
    while (tg_generator_active(b->generator))
        must(tg_generator_advance(b->generator, ignore, NULL, &err));
}

static void open_generator(bench *b) {
    tg_gen_settings s;
    tg_arena arena = {0};
    must(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.do_sample = false;
    s.max_new_tokens = b->new;
    s.weights = b->weights;
    s.half_cache = b->half_cache;
    must(tg_generator_create(
        &b->generator, b->model, &s,
        is_t5(b) ? (tg_decoder_caps){.slots = b->slots, .len = b->new + 1, .src = PROMPT}
                 : (tg_decoder_caps){.slots = b->slots, .len = PROMPT + b->new},
        &err));
    tg_arena_fini(&arena);
}

static void bench_decode(bench *b) {
    open_model(b, 0);
    open_generator(b);
    const size_t n = (size_t)b->slots * PROMPT;
    b->prompts = allocated(tg_alloc_array(n, sizeof(int32_t)));
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        b->prompts[i] = (int32_t)tg_rng_below(&rng, (uint64_t)b->arch.vocab_size);
    double seconds = tg_bench_best(decode, b);
    const tg_arch *a = &b->arch;
    /* A step reads every matrix, and all keys and values; the prompts go through everything but the head. */
    const double matrices = matrix_weights(a), head = (double)a->width * a->vocab_size;
    const double row = 2.0 * a->n_layers * a->width * (PROMPT + b->new / 2.0);
    const double bytes = (b->weights == TG_WEIGHT_PACKED_BF16 ? 2 : 4) * matrices +
                         (b->half_cache ? 2 : 4) * row * b->slots;
    const double prompts = 2 * (matrices - head) * PROMPT,
                 steps = (2 * matrices + 2 * row) * b->new;
    char note[64];
    snprintf(note, sizeof note, "  %.0f new tokens/s", b->slots * b->new / seconds);
    report(b, seconds, (prompts + steps) * b->slots, prompts * b->slots, bytes * b->new, note);
}

/* A step reads the decoder's matrices, but not those that make keys and values of the source. */
static void bench_t5_decode(bench *b) {
    open_model(b, 0);
    open_generator(b);
    b->prompts = random_tokens(b, b->slots * PROMPT);
    double seconds = tg_bench_best(decode, b);
    const tg_arch *a = &b->arch;
    const double C = a->width, layer = 4 * C * C + 2 * C * a->mlp_width;
    const double step = a->n_layers * (layer + 2 * C * C) + C * a->vocab_size;
    const double once = a->n_layers * (layer + 2 * C * C) * PROMPT;
    char note[64];
    snprintf(note, sizeof note, "  %.0f new tokens/s", b->slots * b->new / seconds);
    report(b, seconds, 2 * (step * b->new + once) * b->slots, 2 * once * b->slots,
           (b->weights == TG_WEIGHT_PACKED_BF16 ? 2 : 4) * step * b->new, note);
}

static void head_forward(void *arg) {
    bench *b = arg;
    b->be->ops->head_forward(b->be, b->logp, b->entropy, b->lse, b->x, b->w, b->tokens,
                             b->head_rows, HEAD_WIDTH, HEAD_VOCAB,
                             (tg_head_extra){.rounded = b->rounded});
}

static void head_both(void *arg) {
    bench *b = arg;
    head_forward(b);
    b->be->ops->head_backward(b->be, b->dx, b->dw, b->dlogp, b->dlogp, b->x, b->w, b->tokens,
                              b->lse, b->entropy, b->head_rows, HEAD_WIDTH, HEAD_VOCAB,
                              (tg_head_extra){.rounded = b->rounded});
}

/* What bf16 weights do to the log-probs of a scoring pass: as a reference (reference_dtype) or in rollouts (decode_dtype). `times`: all
 * weights are multiplied by it, because a fresh model's distributions are nearly flat. */
static void bf16_effect(bench *b, float times) {
    const int N = b->packed.n_actions;
    float *half = allocated(tg_alloc_array((size_t)N, sizeof *half));
    double sum = 0, square = 0, most = 0, entropy = 0;
    tg_model *m;
    tg_pass *pass;
    must(tg_model_create(&m, b->be, &b->arch, 0, 1, &err));
    b->be->ops->scale(b->be, m->data, times, m->params.total);
    b->be->ops->scale(b->be, b->model->data, times, m->params.total);
    tg_model_changed(b->model);
    must(tg_pass_forward(b->pass, &b->packed, (tg_pass_out){.logp = b->logp, .entropy = b->entropy},
                         &err));
    must(tg_model_halve(m, &err));
    must(tg_pass_create(&pass, m, (tg_pass_caps){.tokens = N, .seqs = b->batch, .actions = N},
                        false, &err));
    must(tg_pass_forward(pass, &b->packed, (tg_pass_out){.logp = half}, &err));
    for (int i = 0; i < N; i++) {
        const double d = (double)half[i] - (double)b->logp[i];
        sum += d, square += d * d, most = fmax(most, fabs(d)), entropy += (double)b->entropy[i];
    }
    printf("%-34s weights x %g, entropy %5.2f: log-probs off by %.1e (root mean square), %.1e "
           "(mean), %.1e (most)\n",
           b->name, (double)times, entropy / N, sqrt(square / N), sum / N, most);
    printf("json {\"bench\": \"%s\", \"who\": \"textgen\", \"isa\": \"%s\", \"times\": %g, "
           "\"entropy\": %.4g, \"rms\": %.4g, \"mean\": %.4g, \"most\": %.4g}\n",
           b->name, b->be->kernels->isa, (double)times, entropy / N, sqrt(square / N), sum / N,
           most);
    tg_pass_destroy(&pass);
    tg_model_destroy(&m);
    tg_free(half);
}

static void bench_bf16_effect(bench *b) {
    open_pass(b, false);
    bf16_effect(b, 1);
    bf16_effect(b, 2);
}

static float *device(bench *b, size_t n) {
    float *p = tg_backend_alloc(b->be, n * sizeof *p, &err);
    if (!p) must(TG_NOMEM);
    return p;
}

static float *random_floats(bench *b, size_t n, tg_rng *rng) {
    float *p = device(b, n);
    for (size_t i = 0; i < n; i++) p[i] = (float)tg_rng_uniform(rng) - 0.5f;
    return p;
}

static void bench_head(bench *b) {
    const size_t rows = (size_t)b->head_rows, C = HEAD_WIDTH, V = HEAD_VOCAB;
    const bool backward = strstr(b->name, "backward") != NULL;
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    b->x = random_floats(b, rows * C, &rng);
    b->w = random_floats(b, V * C, &rng);
    b->dlogp = random_floats(b, rows, &rng);
    b->logp = device(b, rows), b->entropy = device(b, rows), b->lse = device(b, rows);
    b->tokens = (int32_t *)device(b, rows);
    for (size_t i = 0; i < rows; i++) b->tokens[i] = (int32_t)tg_rng_below(&rng, V);
    if (backward) {
        b->dx = device(b, rows * C);
        b->dw = device(b, V * C);
        b->be->ops->fill(b->be, b->dw, 0, V * C);
    }
    const double flops = 2.0 * (double)rows * (double)C * (double)V;
    /* So many logits are not kept: backward makes them again, a fourth product. */
    report(b, tg_bench_best(backward ? head_both : head_forward, b), backward ? 4 * flops : flops,
           0, 0, "");
}

/* One name may be measured in several ways: the table sets them beside the peer's. */
typedef struct bench_case {
    const char *name, *who; /* who: NULL is "textgen" */
    void (*run)(bench *b);
    int slots;
    tg_weight_form weights;
    bool half_cache;
} bench_case;

static const bench_case cases[] = {
    {"gpt2-124m/forward", NULL, bench_forward, 0, 0, 0},
    {"gpt2-124m/train_step", NULL, bench_train_step, 0, 0, 0},
    {"gpt2-124m/forward_bf16", NULL, bench_forward, 0, 0, 0},
    {"gpt2-124m/train_step_bf16", NULL, bench_train_step, 0, 0, 0},
    {"gpt2-124m/decode_b16", NULL, bench_decode, 16, TG_WEIGHT_PACKED, 0},
    {"gpt2-124m/decode_b16", "textgen, not packed", bench_decode, 16, TG_WEIGHT_PLAIN, 0},
    {"gpt2-124m/decode_b16_bf16", NULL, bench_decode, 16, TG_WEIGHT_PACKED_BF16, 0},
    {"gpt2-124m/decode_b16_bf16", "textgen, cache too", bench_decode, 16, TG_WEIGHT_PACKED_BF16, 1},
    {"gpt2-124m/decode_b1", NULL, bench_decode, 1, TG_WEIGHT_PACKED, 0},
    {"gpt2-124m/decode_b1_bf16", NULL, bench_decode, 1, TG_WEIGHT_PACKED_BF16, 0},
    {"gpt2-124m/forward_avx2", NULL, bench_forward, 0, 0, 0},
    {"gpt2-124m/train_step_avx2", NULL, bench_train_step, 0, 0, 0},
    {"gpt2-124m/decode_b16_avx2", NULL, bench_decode, 16, TG_WEIGHT_PACKED, 0},
    {"gpt2-124m/decode_b16_avx2", "textgen, bf16 weights", bench_decode, 16, TG_WEIGHT_PACKED_BF16,
     0},
    {"gpt2-124m/bf16_effect", NULL, bench_bf16_effect, 0, 0, 0},
    {"t5-base/forward", NULL, bench_forward, 0, 0, 0},
    {"t5-base/train_step", NULL, bench_train_step, 0, 0, 0},
    {"t5-base/forward_bf16", NULL, bench_forward, 0, 0, 0},
    {"t5-base/train_step_bf16", NULL, bench_train_step, 0, 0, 0},
    {"t5-base/decode_b16", NULL, bench_t5_decode, 16, TG_WEIGHT_PACKED, 0},
    {"t5-base/decode_b16_bf16", NULL, bench_t5_decode, 16, TG_WEIGHT_PACKED_BF16, 0},
    {"head/logp_entropy_4k_50k", NULL, bench_head, 0, 0, 0},
    {"head/logp_entropy_backward_4k_50k", NULL, bench_head, 0, 0, 0},
    {"head/logp_entropy_4k_50k_bf16", NULL, bench_head, 0, 0, 0},
    {"head/logp_entropy_backward_4k_50k_bf16", NULL, bench_head, 0, 0, 0},
};

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Memory is left to the end of the process. */
static int run_case(size_t i, int batch) {
    bench b = {.name = cases[i].name,
               .who = cases[i].who,
               .batch = batch,
               .slots = cases[i].slots,
               .new = tg_bench_quick() ? 8 : 64,
               .head_rows = tg_bench_quick() ? 512 : 4096,
               .weights = cases[i].weights,
               .half_cache = cases[i].half_cache};
    b.rounded = ends_in(b.name, "_bf16");
    if (ends_in(b.name, "_avx2")) setenv("TEXTGEN_CPU_ISA", "avx2", 1); /* the process is its own */
    must(tg_backend_open(&b.be, "cpu", 0, &err));
    cases[i].run(&b);
    tg_generator_destroy(&b.generator);
    tg_optim_destroy(&b.optim);
    tg_pass_destroy(&b.pass);
    tg_model_destroy(&b.model);
    tg_backend_close(&b.be);
    return 0;
}

static int in_process(size_t i, int batch) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) exit(run_case(i, batch));
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 71;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}

static bool wanted(char **names, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return true;
    return n == 0;
}

static void list(FILE *f) {
    for (size_t i = 0; i < TG_COUNT_OF(cases); i++)
        if (!i || strcmp(cases[i].name, cases[i - 1].name)) fprintf(f, "%s\n", cases[i].name);
}

int main(int argc, char **argv) {
    int64_t batch = tg_bench_quick() ? 2 : 8;
    int first = 1, ran = 0, code = 0;
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        list(stdout);
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "--batch")) {
        if (!tg_parse_i64(argv[2], &batch) || batch < 1 || batch > 1024) argc = -1;
        first = 3;
    }
    for (size_t i = 0; argc > 0 && i < TG_COUNT_OF(cases) && !code; i++) {
        if (!wanted(argv + first, argc - first, cases[i].name)) continue;
        code = in_process(i, (int)batch);
        ran++;
    }
    if (ran) return code;
    fprintf(stderr, "usage: bench_model --list | [--batch N] [CASE…]; the cases are:\n");
    list(stderr);
    return 64;
}
