/* The passes of a run: whatever its rollouts are, within the bytes that its memory plan counts on. */
#include "tests/support/tg_test.h"

#include "common/base/check.h"
#include "common/base/rng.h"
#include "learner/rl/ppo.h"
#include "learner/train/memory_networks.h"
#include "learner/train/passes.h"

static tg_error err;

static const tg_arch gpt2 = {.family = "gpt2",
                             .n_layers = 4,
                             .n_heads = 4,
                             .n_kv_heads = 4,
                             .head_dim = 32,
                             .width = 128,
                             .mlp_width = 512,
                             .vocab_size = 300,
                             .max_positions = 512,
                             .norm_eps = 1e-5f,
                             .tied_head = true};

enum { ENVS = 8, PROMPT = 64, ANSWER = 32, STEPS = 64, ROWS = ENVS * STEPS };

static const tg_memory_facts even = {.n_envs = ENVS, .max_prompt = PROMPT, .max_new = ANSWER},
                             uneven = {.n_envs = ENVS,
                                       .max_prompt = PROMPT,
                                       .max_new = ANSWER,
                                       .uneven = true};

typedef struct setup {
    tg_train_settings s;
    tg_ppo_opts ppo;
    tg_arch arch;
} setup;

static setup *setup_of(tg_critic critic, bool seq2seq, int microbatch) {
    static setup u;
    u = (setup){.arch = gpt2};
    u.ppo = (tg_ppo_opts){.n_steps = STEPS,
                          .batch_size = ROWS,
                          .n_epochs = 2,
                          .minibatch = "sequence",
                          .microbatch_tokens = microbatch};
    u.s = (tg_train_settings){.algo = &tg_algo_ppo,
                              .critic = critic,
                              .train = TG_MODEL_TRAINABLE,
                              .optim = {.kind = "adamw"}};
    u.s.algo_opts = &u.ppo;
    u.s.rollout_gen.num_beams = 1;
    if (seq2seq) {
        u.arch.kind = TG_KIND_SEQ2SEQ;
        u.arch.enc_layers = 2, u.arch.enc_heads = 4, u.arch.enc_mlp_width = 512;
    }
    return &u;
}

/* Answers of `least` to `most` tokens. */
static tg_rollout *rollout_of(const setup *u, int least, int most, bool known) {
    int lengths[ROWS][2], n = 0;
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, (uint64_t)most, 0);
    for (int rows = 0; rows < ROWS; rows += lengths[n++][1]) {
        lengths[n][0] = PROMPT;
        lengths[n][1] = least + (int)tg_rng_below(&rng, (uint64_t)(most - least + 1));
    }
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, (const int(*)[2])lengths, n, ROWS, &err));
    if (r) r->known = known;
    if (r && u->arch.kind == TG_KIND_SEQ2SEQ) r->start_id = 0;
    return r;
}

static uint64_t update_bytes(const setup *u, tg_pass_caps caps) {
    return tg_policy_pass_bytes(&u->s, &u->arch, caps) +
           tg_critic_pass_bytes(&u->s, &u->arch, caps);
}

static bool same_caps(const tg_pass_caps *a, const tg_pass_caps *b) {
    return a->tokens == b->tokens && a->seqs == b->seqs && a->actions == b->actions &&
           a->src == b->src;
}

TEST(even_rollouts_have_the_passes_that_their_config_says) {
    const setup *u = setup_of(TG_CRITIC_SHARED, false, 4096);
    tg_passes p;
    tg_need need, plain;
    const tg_order order = {.seed = 3};
    tg_passes_plan(&p, &u->s, &u->arch, &even);
    tg_rollout *r = rollout_of(u, ANSWER, ANSWER, true);
    REQUIRE(r);
    REQUIRE_OK(tg_passes_fit(&need, &p, r, &order, &err));
    REQUIRE_OK(tg_need_rollout(&plain, &p.plan, r, &order, &err));
    CHECK(same_caps(&need.score, &plain.score) && same_caps(&need.update, &plain.update));
    CHECK(same_caps(&need.score, &p.most.score) && same_caps(&need.update, &p.most.update));
    tg_rollout_destroy(&r);
}

/* Answers may end at once, or go on to the end: the plan is within 5 % of what passes of whole answers take, and no rollout's passes are beyond it. */
static void check_uneven(const setup *u, bool known) {
    static const int lengths[][2] = {{1, 1}, {1, 4}, {2, 16}, {8, 24}, {1, 32}, {32, 32}};
    tg_passes p, whole;
    tg_passes_plan(&p, &u->s, &u->arch, &uneven);
    tg_passes_plan(&whole, &u->s, &u->arch, &even);
    const uint64_t most = update_bytes(u, p.most.update);
    const uint64_t there = tg_network_bytes_of(&u->s, &u->arch, true, NULL).params * 4 +
                           update_bytes(u, whole.most.update) + (40 << 20);
    CHECK(most >= update_bytes(u, whole.most.update));
    CHECK((most - update_bytes(u, whole.most.update)) * 20 <= there);
    for (size_t i = 0; i < TG_COUNT_OF(lengths); i++) {
        tg_rollout *r = rollout_of(u, lengths[i][0], lengths[i][1], known);
        REQUIRE(r);
        for (uint64_t seed = 0; seed < 4; seed++) {
            tg_need need, again;
            const tg_order order = {.seed = seed};
            REQUIRE_OK(tg_passes_fit(&need, &p, r, &order, &err));
            REQUIRE_OK(tg_passes_fit(&again, &p, r, &order, &err));
            CHECK(same_caps(&need.update, &again.update) && same_caps(&need.score, &again.score));
            CHECK(update_bytes(u, need.update) <= most);
            CHECK(tg_reference_pass_bytes(&u->arch, need.score) <=
                  tg_reference_pass_bytes(&u->arch, p.most.score));
            CHECK(need.update.actions >= lengths[i][0] && need.update.seqs >= 1);
            CHECK(need.update.actions_only && need.score.actions_only);
        }
        tg_rollout_destroy(&r);
    }
}

TEST(passes_stay_within_the_plan_however_long_answers_are) {
    for (int seq2seq = 0; seq2seq < 2; seq2seq++)
        for (int microbatch = 64; microbatch <= 65536; microbatch *= 8) {
            check_uneven(setup_of(TG_CRITIC_SHARED, seq2seq, microbatch), true);
            check_uneven(setup_of(TG_CRITIC_SEPARATE, seq2seq, microbatch), false);
        }
}

/* It is more than the plan counts on, which goes by the mean. */
TEST(the_longest_episode_always_fits) {
    const setup *u = setup_of(TG_CRITIC_SHARED, false, 1);
    tg_memory_facts facts = uneven;
    facts.prompt = 2;
    tg_passes p;
    tg_need need;
    tg_passes_plan(&p, &u->s, &u->arch, &facts);
    tg_rollout *r = rollout_of(u, ANSWER, ANSWER, true);
    REQUIRE(r);
    REQUIRE_OK(tg_passes_fit(&need, &p, r, &(tg_order){.seed = 1}, &err));
    CHECK(need.update.tokens >= PROMPT + ANSWER - 1 && need.score.tokens >= PROMPT + ANSWER - 1);
    tg_rollout_destroy(&r);
}

TEST_MAIN
