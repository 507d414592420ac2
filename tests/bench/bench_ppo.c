/* Whole PPO iterations on a GPT-2-shaped model with random weights: 32 prompts of 64 tokens, 48 new tokens each, 5 epochs, shared
 * critic. The figures are those of the second: the first also has the system find the memory. Rewards are a rule computed here, so the figure is the engine's: generation, scoring (policy, value, reference), update.
 *
 *   bench_ppo                            f32; with 8-bit Adam and recomputation; with bf16 rollouts and reference; all in bf16; 124 M parameters
 *   bench_ppo KEY=VALUE…                 one run; layers width heads vocab, epochs, optimizer, recompute, half, bf16, unfrozen, microbatch
 * Prints a table with the memory plan beside the real peak, and one JSON line for the bench report. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/option.h"
#include "learner/policy/actor_critic.h"
#include "learner/policy/generate.h"
#include "learner/rl/algo.h"
#include "learner/train/memory_plan.h"
#include "learner/train/passes.h"
#include "tests/support/bench_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROMPTS = 32, PROMPT = 64, NEW = 48, MINIBATCH = 4 };

static tg_error err;

static void must(tg_status st) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_ppo: %s\n", err.msg);
    exit(tg_status_exit_code(st));
}

typedef struct mode {
    int64_t layers, width, heads, vocab, epochs, unfrozen, microbatch;
    const char *optimizer;
    bool recompute;
    bool half; /* decode_dtype, kv_dtype and reference_dtype are bf16 */
    bool bf16; /* compute_dtype is */
} mode;

/* Resident memory now and at its highest since the last reset, in thousands of KiB as getrusage counts. */
static double status_mb(const char *key) {
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (f) fclose(f);
    return (double)kib / 1e3;
}

static void reset_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) fputs("5", f), fclose(f);
}

/* Random weights in a folder, as a user's model would be; nothing of it stays in memory. */
static void make_model(const char *folder, const tg_arch *arch) {
    tg_backend *be;
    tg_model *m;
    must(tg_backend_open(&be, "cpu", 0, &err));
    must(tg_model_create(&m, be, arch, 0, 1, &err));
    must(tg_model_save(m, folder, &err));
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

typedef struct collected {
    int32_t tokens[PROMPTS][NEW];
    float logp[PROMPTS][NEW], value[PROMPTS][NEW];
    int n[PROMPTS];
    bool known;
} collected;

static tg_status collect(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)e;
    collected *c = arg;
    c->n[r->id] = r->n;
    memcpy(c->tokens[r->id], r->tokens, (size_t)r->n * sizeof(int32_t));
    if (c->known) {
        memcpy(c->logp[r->id], r->logp, (size_t)r->n * sizeof(float));
        memcpy(c->value[r->id], r->value, (size_t)r->n * sizeof(float));
    }
    return TG_OK;
}

static void generate(tg_actor_critic *ac, const tg_train_settings *how, int32_t (*prompts)[PROMPT],
                     collected *out) {
    tg_gen_settings s;
    tg_arena arena = {0};
    must(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.do_sample = true;
    s.max_new_tokens = NEW;
    s.weights = how->rollout_gen.weights;
    s.half_cache = how->rollout_gen.half_cache;
    out->known = tg_actor_critic_knows(ac, &s);
    tg_generator *g;
    must(tg_generator_create(
        &g, ac->policy, &s,
        (tg_decoder_caps){.slots = PROMPTS, .len = PROMPT + NEW, .values = out->known}, &err));
    for (int i = 0; i < PROMPTS; i++)
        must(tg_generator_add(g, (uint64_t)i, prompts[i], PROMPT, 1, TG_RNG_SAMPLE, (uint64_t)i,
                              &err));
    while (tg_generator_active(g)) must(tg_generator_advance(g, collect, out, &err));
    tg_generator_destroy(&g);
    tg_arena_fini(&arena);
}

static tg_rollout *make_rollout(int32_t (*prompts)[PROMPT], const collected *c) {
    int lengths[PROMPTS][2];
    for (int i = 0; i < PROMPTS; i++) lengths[i][0] = PROMPT, lengths[i][1] = c->n[i];
    tg_rollout *r;
    must(tg_rollout_create(&r, (const int(*)[2])lengths, PROMPTS, PROMPTS * NEW, &err));
    r->known = c->known;
    for (int i = 0; i < PROMPTS; i++) {
        int32_t *t = tg_rollout_tokens(r, i);
        const int at = r->episodes[i].first_action;
        memcpy(r->logp + at, c->logp[i], (size_t)c->n[i] * sizeof(float));
        memcpy(r->value + at, c->value[i], (size_t)c->n[i] * sizeof(float));
        memcpy(t, prompts[i], sizeof prompts[i]);
        memcpy(t + PROMPT, c->tokens[i], (size_t)c->n[i] * sizeof(int32_t));
    }
    return r;
}

/* Reward: the share of even token ids, paid at the end; KL coefficient 0.1. */
static void reward(tg_rollout *r) {
    for (int e = 0; e < r->n_episodes; e++) {
        const tg_episode *ep = &r->episodes[e];
        int even = 0;
        for (int i = 0; i < ep->n_actions; i++) even += ep->tokens[ep->n_prompt + i] % 2 == 0;
        r->task_reward[ep->first_action + ep->n_actions - 1] = (double)even / ep->n_actions;
        for (int i = ep->first_action; i < ep->first_action + ep->n_actions; i++)
            r->kl_reward[i] = -0.1 * ((double)r->logp[i] - (double)r->ref_logp[i]);
    }
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
}

static void *ppo_options(const tg_algo_ops *ppo, const mode *m, tg_arena *arena) {
    char text[200];
    snprintf(text, sizeof text,
             "{n_steps: %d, batch_size: %d, n_epochs: %lld, microbatch_tokens: %lld}", NEW,
             MINIBATCH * NEW, (long long)m->epochs, (long long)m->microbatch);
    tg_node *node;
    must(tg_tree_parse(arena, "bench", text, strlen(text), &node, &err));
    void *opts = tg_arena_alloc(arena, ppo->options_size);
    TG_ASSERT(opts);
    must(tg_opts_read(ppo->options, opts, node, "alg.args", arena, &err));
    return opts;
}

static bool parse(mode *m, const char *arg) {
    const struct {
        const char *key;
        int64_t *value;
    } numbers[] = {{"layers=", &m->layers},        {"width=", &m->width},
                   {"heads=", &m->heads},          {"vocab=", &m->vocab},
                   {"epochs=", &m->epochs},        {"unfrozen=", &m->unfrozen},
                   {"microbatch=", &m->microbatch}};
    for (size_t i = 0; i < TG_COUNT_OF(numbers); i++)
        if (tg_str_starts(arg, numbers[i].key))
            return tg_parse_i64(arg + strlen(numbers[i].key), numbers[i].value) &&
                   *numbers[i].value >= -1 && *numbers[i].value <= 1000000;
    if (tg_str_starts(arg, "optimizer=")) {
        m->optimizer = arg + strlen("optimizer=");
        return true;
    }
    const struct {
        const char *key;
        bool *value;
    } switches[] = {{"recompute=", &m->recompute}, {"half=", &m->half}, {"bf16=", &m->bf16}};
    for (size_t i = 0; i < TG_COUNT_OF(switches); i++) {
        if (!tg_str_starts(arg, switches[i].key)) continue;
        const char *value = arg + strlen(switches[i].key);
        *switches[i].value = !strcmp(value, "true");
        return *switches[i].value || !strcmp(value, "false");
    }
    return false;
}

static tg_arch arch_of(const mode *m) {
    return (tg_arch){.family = "gpt2",
                     .n_layers = (int)m->layers,
                     .width = (int)m->width,
                     .n_heads = (int)m->heads,
                     .n_kv_heads = (int)m->heads,
                     .head_dim = (int)(m->width / m->heads),
                     .mlp_width = 4 * (int)m->width,
                     .vocab_size = (int)m->vocab,
                     .max_positions = 1024,
                     .norm_eps = 1e-5f,
                     .tied_head = true,
                     .bos_id = -1,
                     .eos_id = -1,
                     .pad_id = -1};
}

static const tg_memory_facts texts = {.n_envs = PROMPTS, .max_prompt = PROMPT, .max_new = NEW};

static double planned_mb(const tg_train_settings *s, const tg_arch *arch) {
    tg_memory_plan plan;
    must(tg_memory_plan_make(&plan, s, arch, &texts, &err));
    tg_buf text = {0};
    tg_memory_plan_print(&plan, &text);
    if (getenv("TEXTGEN_BENCH_PLAN")) puts(text.data);
    tg_buf_fini(&text);
    return (double)plan.total / 1024 / 1e3;
}

typedef struct figures {
    double generate_s, score_s, update_s, planned;
    double generate_mb, score_mb, update_mb; /* the highest of all iterations */
    double first_s;
    tg_update_stats stats;
} figures;

/* The highest since the last call. */
static void note_peak(double *mb) {
    *mb = TG_MAX(*mb, status_mb("VmHWM"));
    reset_peak();
}

static void iterate(tg_actor_critic *ac, const tg_train_settings *s, const tg_passes *passes,
                    uint64_t iteration, figures *f) {
    int32_t prompts[PROMPTS][PROMPT];
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, iteration, 0);
    for (int i = 0; i < PROMPTS; i++)
        for (int t = 0; t < PROMPT; t++)
            prompts[i][t] = (int32_t)tg_rng_below(&rng, (uint64_t)ac->policy->arch.vocab_size);
    collected *c = tg_alloc(sizeof *c);
    TG_ASSERT(c);
    reset_peak();
    double t0 = tg_clock_seconds();
    generate(ac, s, prompts, c);
    double t1 = tg_clock_seconds();
    note_peak(&f->generate_mb);
    tg_rollout *r = make_rollout(prompts, c);
    const tg_order order = {.seed = 1, .iteration = iteration};
    tg_need fit;
    must(tg_passes_fit(&fit, passes, r, &order, &err));
    ac->caps = fit.score;
    must(tg_actor_critic_score(ac, r, &err));
    ac->caps = fit.update;
    reward(r);
    double t2 = tg_clock_seconds();
    note_peak(&f->score_mb);
    must(s->algo->update(ac, s->algo_opts, r, &order, NULL, &f->stats, &err));
    tg_actor_critic_rest(ac);
    f->update_s = tg_clock_seconds() - t2;
    note_peak(&f->update_mb);
    f->generate_s = t1 - t0, f->score_s = t2 - t1;
    tg_rollout_destroy(&r);
    tg_free(c);
}

/* What an iteration must multiply at least, as two each. Generation and the reference's log-probs are each a pass, rollouts that are scored
 * again another, a step of the update three. In a pass the last token of an episode is not read, and behind the keys and values of the
 * last layer only the rows of actions are. Recomputation is not what it must do. */
static double iteration_flops(const mode *m) {
    enum {
        PROJECT = 3,
        REST = 9
    }; /* C x C matrices of a layer: to queries, keys and values; out of attention, and the MLP */
    const double C = (double)m->width, layers = (double)m->layers;
    const double rows = PROMPTS * (PROMPT + NEW - 1), actions = PROMPTS * NEW;
    const double trunk =
        C * C * ((PROJECT + REST) * (layers - 1) * rows + PROJECT * rows + REST * actions);
    const double head = C * (double)m->vocab * actions;
    const double attention = C * layers * rows * (PROMPT + NEW);
    const int scored_again = m->half || m->bf16;
    return 2 * (trunk + head + attention) * (2 + scored_again + 3 * (double)m->epochs);
}

static void print(const mode *m, const figures *f, int threads) {
    double seconds = f->generate_s + f->score_s + f->update_s;
    double peak = TG_MAX(TG_MAX(f->generate_mb, f->score_mb), f->update_mb);
    bool plain = !strcmp(m->optimizer, "adamw") && !m->recompute && m->unfrozen < 0;
    printf("PPO iteration, GPT-2 shape %d x %d, vocabulary %d: 32 prompts x 64, 48 new, %d epochs, "
           "shared critic, %s%s%s, %d threads\n",
           (int)m->layers, (int)m->width, (int)m->vocab, (int)m->epochs, m->optimizer,
           m->recompute ? ", recomputation"
           : m->half    ? ", bf16 rollouts and reference"
                        : "",
           m->bf16 ? ", bf16 products" : "", threads);
    printf("  generate %7.1f s   %6.0f new tokens/s   peak %5.0f MB\n", f->generate_s,
           PROMPTS * NEW / f->generate_s, f->generate_mb);
    printf("  score    %7.1f s                       peak %5.0f MB\n", f->score_s, f->score_mb);
    printf("  update   %7.1f s   %6.0f tokens/s       peak %5.0f MB   %d steps, first ratio error "
           "%.1e\n",
           f->update_s, (double)m->epochs * PROMPTS * (PROMPT + NEW) / f->update_s, f->update_mb,
           f->stats.minibatches, f->stats.first_ratio_error);
    printf("  total    %7.1f s   (the first iteration %.1f s)   peak memory %.2f GB, planned %.2f "
           "GB (%+.1f %%)\n",
           seconds, f->first_s, peak / 1e3, f->planned / 1e3, 100 * (f->planned / peak - 1));
    printf("json {\"bench\": \"ppo_iteration%s\", \"who\": \"textgen%s%s%s%s\", \"layers\": %d, "
           "\"width\": %d, \"vocab\": %d, \"epochs\": %d, \"generate_s\": %.3f, \"score_s\": "
           "%.3f, \"update_s\": %.3f, \"seconds\": %.3f, \"first_s\": %.3f, \"flops\": %.6g, "
           "\"peak_mb\": %.0f, "
           "\"planned_mb\": "
           "%.0f}\n",
           m->bf16 ? "_bf16" : "", plain ? "" : ", ", plain ? "" : m->optimizer,
           m->recompute ? ", recompute" : "", m->half ? ", bf16 rollouts" : "", (int)m->layers,
           (int)m->width, (int)m->vocab, (int)m->epochs, f->generate_s, f->score_s, f->update_s,
           seconds, f->first_s, iteration_flops(m), peak, f->planned);
}

static int run(const mode *m) {
    tg_arch arch = arch_of(m);
    char folder[] = "/tmp/textgen-bench.XXXXXX";
    if (!mkdtemp(folder)) return 74;
    char *model = tg_path_join(folder, "model");
    make_model(model, &arch);
    tg_backend *be;
    must(tg_backend_open(&be, "cpu", 0, &err));

    tg_arena arena = {0};
    tg_train_settings s = {.critic = TG_CRITIC_SHARED,
                           .train = (m->unfrozen < 0 ? (unsigned)TG_MODEL_TRAINABLE
                                                     : TG_MODEL_TRAIN_LAST(m->unfrozen)) |
                                    (m->bf16 ? TG_MODEL_ROUNDED : 0u),
                           .recompute = m->recompute,
                           .half_reference = m->half,
                           .optim = {.kind = m->optimizer,
                                     .beta1 = 0.9,
                                     .beta2 = 0.999,
                                     .eps = 1e-8,
                                     .weight_decay = 1e-6,
                                     .alpha = 0.99}};
    s.eval.eval_batch_size = 1;
    must(tg_gen_settings_read(&s.rollout_gen, NULL, "generation_kwargs", &arena, &err));
    s.eval_gen = s.rollout_gen;
    s.rollout_gen.weights = m->half ? TG_WEIGHT_PACKED_BF16 : TG_WEIGHT_PACKED;
    s.rollout_gen.half_cache = m->half;
    s.eval_gen.weights = TG_WEIGHT_PACKED;
    must(tg_algo_find("ppo", &s.algo, &err));
    s.algo_opts = ppo_options(s.algo, m, &arena);
    figures f = {.planned = planned_mb(&s, &arch)};
    tg_passes passes;
    tg_passes_plan(&passes, &s, &arch, &texts);
    tg_actor_critic *ac;
    must(tg_actor_critic_open(&ac, be,
                              &(tg_actor_critic_opts){.model_folder = model,
                                                      .critic = s.critic,
                                                      .reference = true,
                                                      .half_reference = s.half_reference,
                                                      .train = s.train,
                                                      .recompute = s.recompute,
                                                      .seed = 1,
                                                      .optim = s.optim,
                                                      .train_caps = passes.plan.caps},
                              &err));
    iterate(ac, &s, &passes, 0, &f);
    f.first_s = f.generate_s + f.score_s + f.update_s;
    iterate(ac, &s, &passes, 1, &f);
    print(m, &f, tg_team_size(be->team));
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
    tg_free(model);
    tg_arena_fini(&arena);
    return tg_dir_remove(folder, &err) == TG_OK ? 0 : 74;
}

/* Every mode in a process of its own: a peak cannot be taken back. */
static int run_apart(const mode *m) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int code = run(m);
        fflush(stdout);
        _exit(code);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 71;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 70;
}

int main(int argc, char **argv) {
    mode m = {.layers = 12,
              .width = 768,
              .heads = 12,
              .vocab = 50257,
              .epochs = 5,
              .unfrozen = -1,
              .microbatch = 512,
              .optimizer = "adamw"};
    if (tg_bench_quick()) m.layers = 2, m.width = 256, m.heads = 4, m.vocab = 8000, m.epochs = 1;
    for (int i = 1; i < argc; i++)
        if (!parse(&m, argv[i])) {
            fprintf(stderr,
                    "usage: bench_ppo [layers=N width=N heads=N vocab=N epochs=N unfrozen=N "
                    "microbatch=N optimizer=ID recompute=true half=true bf16=true]\n");
            return 64;
        }
    if (argc > 1) return run(&m);
    int code = run_apart(&m);
    mode small = m, half = m;
    small.optimizer = "adamw_8bit", small.recompute = true;
    half.half = true;
    mode all = half;
    all.bf16 = true;
    if (!code) code = run_apart(&small);
    if (!code) code = run_apart(&half);
    return code ? code : run_apart(&all);
}
