/* One whole PPO iteration on a GPT-2-shaped model with random weights: 32 prompts of 64 tokens, 48 new tokens each, 5 epochs, shared
 * critic, f32. Rewards are a rule computed here, so the figure is the engine's: generation, scoring (policy, value, reference), update.
 *
 *   bench_ppo [LAYERS WIDTH HEADS VOCAB]      default 12 768 12 50257 (124 M parameters)
 * Prints a table, and one JSON line for the bench report. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/option.h"
#include "learner/policy/actor_critic.h"
#include "learner/policy/generate.h"
#include "learner/rl/algo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PROMPTS = 32, PROMPT = 64, NEW = 48, EPOCHS = 5, MINIBATCH = 4 };

static tg_error err;

static void must(tg_status st) {
    if (st == TG_OK) return;
    fprintf(stderr, "bench_ppo: %s\n", err.msg);
    exit(tg_status_exit_code(st));
}

static double peak_gb(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1e6;
}

/* Random weights in a folder, as a user's model would be. */
static void make_model(const char *folder, tg_backend *be, const tg_arch *arch) {
    tg_model *m;
    must(tg_model_create(&m, be, arch, 0, 1, &err));
    must(tg_model_save(m, folder, &err));
    tg_model_destroy(&m);
}

typedef struct collected {
    int32_t tokens[PROMPTS][NEW];
    int n[PROMPTS];
} collected;

static tg_status collect(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)e;
    collected *c = arg;
    c->n[r->id] = r->n;
    memcpy(c->tokens[r->id], r->tokens, (size_t)r->n * sizeof(int32_t));
    return TG_OK;
}

static void generate(tg_actor_critic *ac, int32_t (*prompts)[PROMPT], collected *out) {
    tg_gen_settings s;
    tg_arena arena = {0};
    must(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.do_sample = true;
    s.max_new_tokens = NEW;
    tg_generator *g;
    must(tg_generator_create(&g, ac->policy, &s, PROMPTS, PROMPT + NEW, &err));
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
    for (int i = 0; i < PROMPTS; i++) {
        int32_t *t = tg_rollout_tokens(r, i);
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

static void *ppo_options(const tg_algo_ops *ppo, tg_arena *arena) {
    char text[128];
    snprintf(text, sizeof text, "{n_steps: %d, batch_size: %d, n_epochs: %d}", NEW, MINIBATCH * NEW,
             EPOCHS);
    tg_node *node;
    must(tg_tree_parse(arena, "bench", text, strlen(text), &node, &err));
    void *opts = tg_arena_alloc(arena, ppo->options_size);
    TG_ASSERT(opts);
    must(tg_opts_read(ppo->options, opts, node, "alg.args", arena, &err));
    return opts;
}

static int number(char **argv, int argc, int i, int fallback) {
    int64_t v = fallback;
    if (i < argc && (!tg_parse_i64(argv[i], &v) || v < 1 || v > 1000000)) {
        fprintf(stderr, "usage: bench_ppo [LAYERS WIDTH HEADS VOCAB]\n");
        exit(64);
    }
    return (int)v;
}

int main(int argc, char **argv) {
    tg_arch arch = {.family = "gpt2",
                    .max_positions = 1024,
                    .norm_eps = 1e-5f,
                    .tied_head = true,
                    .bos_id = -1,
                    .eos_id = -1,
                    .pad_id = -1};
    arch.n_layers = number(argv, argc, 1, 12);
    arch.width = number(argv, argc, 2, 768);
    arch.n_heads = arch.n_kv_heads = number(argv, argc, 3, 12);
    arch.vocab_size = number(argv, argc, 4, 50257);
    arch.head_dim = arch.width / arch.n_heads;
    arch.mlp_width = 4 * arch.width;

    tg_backend *be;
    must(tg_backend_open(&be, "cpu", 0, &err));
    char folder[] = "/tmp/textgen-bench.XXXXXX";
    if (!mkdtemp(folder)) return 74;
    char *model = tg_path_join(folder, "model");
    make_model(model, be, &arch);

    const tg_algo_ops *ppo;
    must(tg_algo_find("ppo", &ppo, &err));
    tg_arena arena = {0};
    void *opts = ppo_options(ppo, &arena);
    tg_algo_plan plan;
    ppo->plan(opts, PROMPTS, PROMPT + NEW, &plan);
    tg_actor_critic *ac;
    must(tg_actor_critic_open(&ac, be,
                              &(tg_actor_critic_opts){.model_folder = model,
                                                      .critic = TG_CRITIC_SHARED,
                                                      .reference = true,
                                                      .seed = 1,
                                                      .optim = {.kind = "adamw",
                                                                .beta1 = 0.9,
                                                                .beta2 = 0.999,
                                                                .eps = 1e-8,
                                                                .weight_decay = 1e-6},
                                                      .train_caps = plan.caps},
                              &err));
    int32_t prompts[PROMPTS][PROMPT];
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < PROMPTS; i++)
        for (int t = 0; t < PROMPT; t++)
            prompts[i][t] = (int32_t)tg_rng_below(&rng, (uint64_t)arch.vocab_size);

    collected *c = tg_alloc(sizeof *c);
    TG_ASSERT(c);
    double t0 = tg_clock_seconds();
    generate(ac, prompts, c);
    double t1 = tg_clock_seconds();
    tg_rollout *r = make_rollout(prompts, c);
    must(tg_actor_critic_score(ac, r, &err));
    reward(r);
    double t2 = tg_clock_seconds();
    tg_update_stats stats;
    memset(&stats, 0, sizeof stats);
    must(ppo->update(ac, opts, r, &(tg_order){.seed = 1}, NULL, &stats, &err));
    double t3 = tg_clock_seconds();

    printf("PPO iteration, GPT-2 shape %d x %d, vocabulary %d: 32 prompts x 64, 48 new, 5 epochs, "
           "shared critic, %d threads\n",
           arch.n_layers, arch.width, arch.vocab_size, tg_team_size(be->team));
    printf("  generate %7.1f s   %6.0f new tokens/s\n", t1 - t0, PROMPTS * NEW / (t1 - t0));
    printf("  score    %7.1f s\n", t2 - t1);
    printf("  update   %7.1f s   %6.0f tokens/s   %d steps, first ratio error %.1e\n", t3 - t2,
           (double)EPOCHS * PROMPTS * (PROMPT + NEW) / (t3 - t2), stats.minibatches,
           stats.first_ratio_error);
    printf("  total    %7.1f s   peak memory %.2f GB\n", t3 - t0, peak_gb());
    printf("json {\"bench\": \"ppo_iteration\", \"who\": \"textgen\", \"layers\": %d, \"width\": "
           "%d, \"vocab\": %d, "
           "\"generate_s\": %.3f, \"score_s\": %.3f, "
           "\"update_s\": %.3f, \"seconds\": %.3f, \"peak_mb\": %.0f}\n",
           arch.n_layers, arch.width, arch.vocab_size, t1 - t0, t2 - t1, t3 - t2, t3 - t0,
           peak_gb() * 1e3);

    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
    tg_free(c);
    tg_free(model);
    tg_arena_fini(&arena);
    return tg_dir_remove(folder, &err) == TG_OK ? 0 : 74;
}
