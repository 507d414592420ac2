/* The rewards of slots, dense and failing ones; questions to an environment; allocations that fail. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "tests/support/slot_case.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <stdio.h>

static tg_error err;

/* ---- rewards of other kinds ---------------------------------------------------------------- */

static tg_status dense_score(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *e) {
    (void)state, (void)e;
    for (size_t i = 0; i < n; i++)
        out[i] = (tg_reward_value){TG_REWARD_OK, (double)in[i].text_len + (in[i].done ? 100 : 0)};
    return TG_OK;
}
static tg_status failing_score(const void *state, const tg_reward_input *in, size_t n,
                               tg_reward_value *out, tg_error *e) {
    (void)state, (void)in, (void)n, (void)out;
    return tg_fail(e, TG_UNAVAILABLE, "the scorer is away");
}
static const tg_opt no_options[] = {TG_OPT_END};
static const tg_reward_ops dense = {
    .entry = {.name = "dense", .summary = "", .options = no_options, .built = true},
    .score = dense_score};
static const tg_reward_ops failing = {
    .entry = {.name = "failing", .summary = "", .options = no_options, .built = true},
    .terminal = true,
    .score = failing_score};

static bool open_with_reward(slot_case *f, const tg_reward_ops *ops) {
    if (!slot_case_open(f, NULL, NULL, NULL)) return false;
    tg_slot_fini(&f->slot);
    tg_env_close(&f->env);
    f->settings.reward.entry = &ops->entry;
    CHECK_OK(tg_env_open(&f->env, &f->settings, &err));
    CHECK_OK(tg_slot_init(&f->slot, f->env, 3, &err));
    return f->env;
}

TEST(dense_rewards_see_every_prefix) {
    slot_case f;
    if (!open_with_reward(&f, &dense)) return;
    CHECK(!f.env->spec.deterministic);
    slot_case_reset(&f, 0, 1);
    tg_step_result r = slot_case_step(&f, 0, 0, slot_case_numbers, 3);
    CHECK_NEAR(r.rewards[0], 2, 0);
    CHECK_NEAR(r.rewards[1], 4, 0);
    CHECK_NEAR(r.rewards[2], 6, 0);
    CHECK_NEAR(r.components[0].value, 12, 0);
    int32_t end = SLOT_CASE_EOS;
    CHECK_NEAR(slot_case_step(&f, 0, 3, &end, 1).rewards[0], 106, 0);
    slot_case_close(&f);
}

TEST(a_failed_reward_ends_the_episode_without_a_number) {
    slot_case f;
    if (!open_with_reward(&f, &failing)) return;
    slot_case_reset(&f, 0, 1);
    int32_t tokens[] = {256, SLOT_CASE_EOS};
    tg_step_result r = slot_case_step(&f, 0, 0, tokens, 2);
    CHECK_EQ(r.code, TG_CODE_REWARD_FAILED);
    CHECK_EQ(r.reward_status, TG_REWARD_FAILED);
    CHECK(strstr(r.message, "failing") && strstr(r.message, "the scorer is away"));
    CHECK(r.terminated && r.n_applied == 2);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK(isnan(r.rewards[1]));
    CHECK_EQ(slot_case_step(&f, 0, 2, tokens, 1).code, TG_CODE_FAILED_STATE);
    r = slot_case_step(&f, 0, 0, tokens, 2);
    CHECK(r.replayed && r.code == TG_CODE_REWARD_FAILED && strstr(r.message, "away"));
    slot_case_close(&f);
}

static tg_status huge_score(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *e) {
    (void)state, (void)e;
    for (size_t i = 0; i < n; i++) {
        double value = in[i].n_tokens < 3 ? 1.5e308 : -1;
        out[i] = (tg_reward_value){TG_REWARD_OK, value};
        tg_reward_details_add(in[i].details, "part", value, TG_REWARD_OK);
    }
    return TG_OK;
}
static const tg_reward_ops huge = {
    .entry = {.name = "huge", .summary = "", .options = no_options, .built = true},
    .score = huge_score};
static const char overflow[] = "the weighted sum of the rewards is not a finite number";

TEST(a_weighted_sum_that_overflows_is_no_reward_and_says_why) {
    slot_case f;
    tg_arena a = {0};
    if (!open_with_reward(&f, &huge)) return;
    f.env->rewards[0].weight = 2;
    slot_case_reset(&f, 0, 1);
    tg_step_result r = slot_case_step(&f, 0, 0, slot_case_numbers, 1);
    CHECK_EQ(r.code, TG_CODE_REWARD_INVALID);
    CHECK_EQ(r.reward_status, TG_REWARD_INVALID);
    CHECK(isnan(r.rewards[0]) && r.n_applied == 1);
    CHECK_STR(r.message, overflow);
    tg_score_item item = {.id = 4, .prompt = "", .completion = "1", .meta_json = ""};
    tg_score_request score = {.fn = "", .items = &item, .n = 1};
    tg_score_reply scored;
    CHECK_OK(tg_env_score(f.env, &score, &a, &scored, &err));
    REQUIRE(scored.n == 1);
    CHECK_EQ(scored.items[0].status, TG_REWARD_INVALID);
    CHECK_STR(scored.items[0].message, overflow);
    CHECK(scored.items[0].components[0].status == TG_REWARD_OK); /* by itself it is a number */
    score.fn = "huge";
    CHECK_OK(tg_env_score(f.env, &score, &a, &scored, &err));
    CHECK(scored.items[0].status == TG_REWARD_OK && !*scored.items[0].message);
    tg_arena_fini(&a);
    slot_case_close(&f);
}

/* Each token has its reward; only their sum is none. */
TEST(a_component_that_overflows_is_no_number) {
    slot_case f;
    if (!open_with_reward(&f, &huge)) return;
    slot_case_reset(&f, 0, 1);
    tg_step_result r = slot_case_step(&f, 0, 0, slot_case_numbers, 3);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK_NEAR(r.rewards[1], 1.5e308, 0);
    REQUIRE(r.n_components == 2); /* the reward, and what it told of itself */
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(r.components[i].status, TG_REWARD_INVALID);
        CHECK(isnan(r.components[i].value));
    }
    slot_case_close(&f);
}

/* ---- episodes from a log -------------------------------------------------------------------- */

TEST(a_log_with_an_infinite_reward_is_refused) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    tg_reset_result begun = slot_case_reset(&f, 0, 1);
    double rewards[] = {0, 0};
    tg_restore_item item = {.slot = 3,
                            .seed = 1,
                            .sample = begun.sample,
                            .split = TG_SPLIT_TRAIN,
                            .tokens = slot_case_numbers,
                            .rewards = rewards,
                            .n_tokens = 2,
                            .reset_digest = begun.state_digest};
    item.state_digest = slot_case_step(&f, 0, 0, slot_case_numbers, 2).state_digest;
    tg_restore_result r;
    tg_slot_restore(f.env, &f.slot, &item, &r);
    CHECK_EQ(r.code, TG_CODE_OK);
    for (int sign = -1; sign <= 1; sign += 2) {
        rewards[1] = sign * (double)INFINITY;
        tg_slot_restore(f.env, &f.slot, &item, &r);
        CHECK_EQ(r.code, TG_CODE_INVALID_ARGUMENT);
        CHECK_STR(r.message, "the reward of token 1 is infinite");
        CHECK_EQ(f.slot.state, TG_SLOT_FREE);
    }
    slot_case_close(&f);
}

/* ---- questions ----------------------------------------------------------------------------- */

TEST(samples_metrics_and_scores) {
    slot_case f;
    tg_arena a = {0};
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    tg_samples samples;
    CHECK_OK(tg_env_samples(f.env, &(tg_sample_range){TG_SPLIT_VAL, 8, 5}, &a, &samples, &err));
    CHECK_EQ(samples.n, 2); /* the pool ends */
    CHECK_STR(samples.items[1].id, "9");
    CHECK_EQ(samples.items[1].n_prompt, 4);

    tg_generation g[] = {{.sample = 0, .tokens = slot_case_numbers, .n_tokens = 3},
                         {.sample = 1, .text = "on 2020-01-02"}};
    tg_metric_request req = {.split = TG_SPLIT_TEST, .items = g, .n = 2, .want_text = true};
    tg_metric_reply reply;
    CHECK_OK(tg_env_metric(f.env, &req, &a, &reply, &err));
    REQUIRE(reply.n_values == 2 && reply.n_texts == 2);
    CHECK_STR(reply.values[0].key, "synthetic/dates_in_text");
    CHECK_NEAR(reply.values[0].corpus, 0.5, 0);
    CHECK_NEAR(reply.values[1].samples[0], 1, 0);
    CHECK_STR(reply.texts[0], " 1 2 3");
    g[0].sample = 10;
    CHECK_EQ(tg_env_metric(f.env, &req, &a, &reply, &err), TG_USAGE);

    tg_score_item item = {.id = 9, .prompt = "", .completion = "1 2 9", .meta_json = ""};
    tg_score_request score = {.fn = "", .items = &item, .n = 1};
    tg_score_reply scored;
    CHECK_OK(tg_env_score(f.env, &score, &a, &scored, &err));
    CHECK(scored.n == 1 && scored.items[0].id == 9 && scored.items[0].status == TG_REWARD_OK);
    CHECK_NEAR(scored.items[0].value, 1, 0);
    score.fn = "rouge";
    CHECK_EQ(tg_env_score(f.env, &score, &a, &scored, &err), TG_NOINPUT);
    tg_arena_fini(&a);
    slot_case_close(&f);
}

/* ---- memory -------------------------------------------------------------------------------- */

TEST(every_allocation_of_a_step_may_fail) {
    slot_case f;
    int failures = 0;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 257, SLOT_CASE_EOS};
    uint64_t want = 0;
    for (int64_t n = -1; n < 100; n++) {
        tg_slot_fini(&f.slot);
        REQUIRE_OK(tg_slot_init(&f.slot, f.env, 3, &err));
        tg_alloc_fail_after(n);
        bool failed = false;
        tg_reset_result r;
        tg_step_result s;
        while ((r = slot_case_reset(&f, 0, 1)).code == TG_CODE_OVERLOADED) failed = true;
        CHECK_EQ(r.code, TG_CODE_OK);
        while ((s = slot_case_step(&f, 0, 0, tokens, 3)).code == TG_CODE_OVERLOADED) failed = true;
        CHECK_EQ(s.code, TG_CODE_OK);
        tg_alloc_fail_after(-1);
        if (n < 0) want = s.state_digest;
        CHECK(s.state_digest == want && s.terminated);
        CHECK_NEAR(s.rewards[2], 1, 0);
        if (n >= 0 && !failed) break;
        failures += failed;
    }
    CHECK(failures >= 4);
    slot_case_close(&f);
}

TEST(steady_state_allocates_nothing) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 257, 258, 256, 257, 258};
    uint64_t before = 0;
    for (uint64_t e = 0; e < 20; e++) {
        if (e == 10) before = tg_alloc_calls();
        slot_case_reset(&f, e, 1);
        for (uint32_t i = 0; i < 6; i++) slot_case_step(&f, e, i, &tokens[i], 1);
    }
    CHECK_EQ(tg_alloc_calls() - before, 0);
    slot_case_close(&f);
}

TEST(every_allocation_of_opening_may_fail) {
    int failures = 0;
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    for (int64_t n = 0; n < 5000; n += n < 50 ? 1 : 37) {
        tg_env *env;
        tg_alloc_fail_after(n);
        tg_status st = tg_env_open(&env, &f.settings, &err);
        tg_alloc_fail_after(-1);
        tg_env_close(&env);
        if (st == TG_OK) break;
        CHECK_EQ(st, TG_NOMEM);
        failures++;
    }
    CHECK(failures > 10);
    slot_case_close(&f);
}

TEST_MAIN
