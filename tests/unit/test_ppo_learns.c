/* PPO without an environment: a tiny random GPT-2 is rewarded for one token and must come to emit it. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/ppo.h"

#include <stdint.h>

static tg_error err;

enum { VOCAB = 24, EPISODES = 16, STEPS = 8, WANTED = 17, ITERATIONS = 40 };

static const tg_arch tiny = {.family = "gpt2",
                             .n_layers = 2,
                             .n_heads = 2,
                             .n_kv_heads = 2,
                             .head_dim = 16,
                             .width = 32,
                             .mlp_width = 128,
                             .vocab_size = VOCAB,
                             .max_positions = 16,
                             .norm_eps = 1e-5F,
                             .tied_head = true,
                             .bos_id = 0,
                             .eos_id = 0,
                             .pad_id = 0};

/* One token for every episode, sampled from the policy's logits at the last position. */
static tg_status sample_step(tg_pass *pass, tg_rollout *r, int step, uint64_t iteration) {
    int32_t tokens[EPISODES * (STEPS + 1)], offsets[EPISODES + 1] = {0}, rows[EPISODES];
    float logits[EPISODES * VOCAB];
    int n = 1 + step;
    for (int e = 0; e < EPISODES; e++) {
        memcpy(tokens + e * n, r->episodes[e].tokens, (size_t)n * sizeof(int32_t));
        offsets[e + 1] = (e + 1) * n;
        rows[e] = (e + 1) * n - 1;
    }
    tg_batch b = {.n_tokens = EPISODES * n,
                  .n_seqs = EPISODES,
                  .n_actions = EPISODES,
                  .tokens = tokens,
                  .offsets = offsets,
                  .act_row = rows,
                  .act_token = tokens};
    float logp[EPISODES];
    tg_status st = tg_pass_forward(pass, &b, (tg_pass_out){.logp = logp}, &err);
    if (st == TG_OK) st = tg_pass_logits(pass, rows, EPISODES, logits, &err);
    for (int e = 0; st == TG_OK && e < EPISODES; e++) {
        tg_rng rng =
            tg_rng_at(1, TG_RNG_SAMPLE, iteration * EPISODES + (uint64_t)e, (uint64_t)step);
        double sum = 0, u;
        for (int v = 0; v < VOCAB; v++) sum += exp((double)logits[e * VOCAB + v]);
        u = tg_rng_uniform(&rng) * sum;
        int pick = 0;
        for (; pick < VOCAB - 1 && (u -= exp((double)logits[e * VOCAB + pick])) >= 0;) pick++;
        tg_rollout_tokens(r, e)[n] = pick;
    }
    return st;
}

/* Share of wanted tokens in the rollout; the networks are updated afterwards. */
static double iterate(tg_actor_critic *ac, const tg_ppo_opts *o, uint64_t iteration) {
    int lengths[EPISODES][2];
    for (int e = 0; e < EPISODES; e++) lengths[e][0] = 1, lengths[e][1] = STEPS;
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, (const int(*)[2])lengths, EPISODES, EPISODES * STEPS, &err));
    if (!r) return 0;
    for (int e = 0; e < EPISODES; e++) tg_rollout_tokens(r, e)[0] = e % VOCAB;
    tg_pass *pass = NULL;
    CHECK_OK(tg_pass_create(&pass, ac->policy, ac->caps, TG_PASS_SCORE, &err));
    for (int s = 0; pass && s < STEPS; s++) CHECK_OK(sample_step(pass, r, s, iteration));
    tg_pass_destroy(&pass);
    double hits = 0;
    for (int i = 0; i < r->n_actions; i++) {
        r->task_reward[i] = r->episodes[i / STEPS].tokens[1 + i % STEPS] == WANTED;
        hits += r->task_reward[i];
    }
    CHECK_OK(tg_actor_critic_score(ac, r, &err));
    tg_rollout_kl(r, 0.001);
    tg_rollout_finish(r, &(tg_returns_opts){o->gamma, o->gae_lambda, false});
    tg_update_stats s;
    CHECK_OK(tg_algo_ppo.update(ac, o, r, &(tg_order){.seed = 1, .iteration = iteration}, NULL, &s,
                                &err));
    CHECK_NEAR(s.first_ratio_error, 0, 1e-5);
    CHECK_EQ(s.skipped, 0);
    tg_rollout_destroy(&r);
    return hits / (EPISODES * STEPS);
}

static void learn_with(const tg_arch *arch, tg_critic critic, const char *minibatch,
                       tg_optim_opts optim, bool recompute) {
    tg_arena arena = {0};
    tg_ppo_opts o;
    REQUIRE_OK(tg_opts_read(tg_ppo_options, &o, NULL, "alg.args", &arena, &err));
    o.minibatch = minibatch;
    o.learning_rate = strcmp(optim.kind, "sgd") ? 2e-3 : 0.3;
    o.n_steps = EPISODES * STEPS;
    o.batch_size = 32;
    o.n_epochs = 4;
    tg_algo_plan plan;
    tg_algo_ppo.plan(&o, 1, 1 + STEPS, &plan);
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *policy = NULL, *value = NULL, *ref = NULL;
    unsigned head = critic == TG_CRITIC_SHARED ? TG_MODEL_VALUE_HEAD : 0;
    REQUIRE_OK(tg_model_create(&policy, be, arch, TG_MODEL_TRAINABLE | head, 1, &err));
    if (!head)
        REQUIRE_OK(
            tg_model_clone(&value, policy, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_clone(&ref, policy, 0, 1, &err));
    tg_actor_critic_opts opts = {.critic = critic,
                                 .reference = true,
                                 .optim = optim,
                                 .recompute = recompute,
                                 .train_caps = plan.caps};
    tg_actor_critic *ac;
    REQUIRE_OK(tg_actor_critic_create(&ac, &opts, policy, value, ref, &err));
    double first = iterate(ac, &o, 0), last = first;
    int n = 1; /* stops when learnt: with nothing left to win, normalised advantages are noise */
    while (n < ITERATIONS && last < 0.9) last = iterate(ac, &o, (uint64_t)n++);
    printf("  share of the wanted token: %.2f, after %d iterations %.2f (%s, %s)\n", first, n, last,
           minibatch, optim.kind);
    CHECK(first < 0.2);
    CHECK(last >= 0.9);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
    tg_arena_fini(&arena);
}

static tg_optim_opts optimizer(const char *kind) {
    return (tg_optim_opts){.kind = kind,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .weight_decay = 1e-6,
                           .alpha = 0.99,
                           .momentum = strcmp(kind, "sgd") ? 0 : 0.5};
}

static void learn(tg_critic critic, const char *minibatch) {
    learn_with(&tiny, critic, minibatch, optimizer("adamw"), false);
}

/* Wide enough for most of its state to be in 8 bits. */
TEST(eight_bit_adam_with_recomputation) {
    tg_arch wide = tiny;
    wide.width = 64, wide.head_dim = 32, wide.mlp_width = 256;
    learn_with(&wide, TG_CRITIC_SHARED, "sequence", optimizer("adamw_8bit"), true);
}

TEST(rmsprop_and_sgd) {
    learn_with(&tiny, TG_CRITIC_SHARED, "sequence", optimizer("rmsprop"), false);
    learn_with(&tiny, TG_CRITIC_SHARED, "sequence", optimizer("sgd"), false);
}

TEST(separate_critic_sequences) {
    learn(TG_CRITIC_SEPARATE, "sequence");
}

TEST(separate_critic_transitions) {
    learn(TG_CRITIC_SEPARATE, "transition");
}

TEST(shared_critic_sequences) {
    learn(TG_CRITIC_SHARED, "sequence");
}

TEST_MAIN
