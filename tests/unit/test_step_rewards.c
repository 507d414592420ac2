/* Rewards outside the program, through an environment and its slots: components, statuses, tokens, groups. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "env-server/env/slot.h"
#include "tests/support/slot_case.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <unistd.h>

static tg_error err;

/* The program of the tests: BUILD/tests/reward-child beside BUILD/tests/unit. */
static const char *child(void) {
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    path[n > 0 ? n : 0] = 0;
    for (int i = 0; i < 2; i++) *strrchr(path, '/') = 0;
    return strcat(path, "/reward-child");
}

/* CHILD in the section is the program. */
static tg_status open_env(slot_case *f, const char *reward) {
    char yaml[4096], section[2048];
    tg_log_set_level(TG_LOG_ERROR);
    const char *at = strstr(reward, "CHILD");
    snprintf(section, sizeof section, "%.*s%s%s", at ? (int)(at - reward) : (int)strlen(reward),
             reward, at ? child() : "", at ? at + 5 : "");
    snprintf(yaml, sizeof yaml,
             "tokenizer: {model_name: \"%s\"}\nreward_fn: %s\n"
             "datapool: {id: dummy_pool, args: {prompt: \"Hello the\", n_samples: 10}}\n"
             "env: {args: {max_prompt_length: 8, max_episode_length: 3}}\n"
             "alg: {id: ppo}\ntrain_evaluation: {metrics: []}\n",
             tg_test_path("golden/env/tokenizer"), section);
    return slot_case_open_yaml(f, yaml, &err);
}

/* " 1 2 3" in one step: the episode ends by its length. */
static tg_step_result play(slot_case *f) {
    static const int32_t numbers[] = {256, 257, 258};
    tg_reset_item item = {.slot = 3, .episode = 1, .seed = 1, .split = TG_SPLIT_TRAIN};
    tg_reset_result reset;
    tg_step_result r;
    tg_slot_reset(f->env, &f->slot, &item, true, &reset);
    CHECK_EQ(reset.code, TG_CODE_OK);
    tg_slot_step(f->env, &f->slot, &(tg_step_item){3, 1, 0, numbers, 3}, false, &r);
    CHECK(r.truncated && r.n_applied == 3);
    return r;
}

static const tg_component *component(const tg_step_result *r, const char *name) {
    for (size_t i = 0; i < r->n_components; i++)
        if (!strcmp(r->components[i].name, name)) return &r->components[i];
    CHECK(false);
    return &r->components[0];
}

TEST(parts_of_parts_are_components) {
    slot_case f;
    REQUIRE_OK(open_env(
        &f, "{id: weighted, args: {rewards: [{id: increasing_numbers, args: {min_tokens: 4}}, "
            "{id: process, name: judge, weight: 0.5, args: {command: [CHILD, parts]}}]}}"));
    CHECK(f.env->slow_rewards && f.env->waiting_rewards && !f.env->spec.deterministic);
    tg_step_result r = play(&f);
    CHECK(r.code == TG_CODE_OK && r.reward_status == TG_REWARD_OK && r.n_components == 4);
    double length = (double)strlen(r.text);
    CHECK_NEAR(component(&r, "judge")->value, length, 0);
    CHECK_NEAR(component(&r, "judge.length")->value, length, 0);
    CHECK(component(&r, "judge.pid")->value > 1);
    CHECK_NEAR(component(&r, "increasing_numbers")->value, 1, 0);
    CHECK_NEAR(r.rewards[2], 1 + 0.5 * length, 1e-12);
    CHECK(r.rewards[0] == 0 && r.rewards[1] == 0);
    slot_case_close(&f);
}

TEST(one_failed_part_fails_the_sum_and_is_told_apart) {
    slot_case f;
    REQUIRE_OK(open_env(
        &f, "{id: weighted, args: {rewards: [{id: increasing_numbers, args: {min_tokens: 4}}, "
            "{id: process, name: judge, args: {command: [CHILD, item]}}]}}"));
    tg_step_result r = play(&f);
    CHECK(r.code == TG_CODE_REWARD_FAILED && r.reward_status == TG_REWARD_FAILED);
    CHECK(isnan(r.rewards[2]));
    CHECK_STR(r.message, "reward judge: this text is ill");
    CHECK_EQ(component(&r, "judge")->status, TG_REWARD_FAILED);
    CHECK(component(&r, "increasing_numbers")->status == TG_REWARD_OK &&
          component(&r, "increasing_numbers")->value == 1);
    slot_case_close(&f);
}

TEST(every_token_in_one_call) {
    slot_case f;
    REQUIRE_OK(open_env(
        &f, "{id: process, args: {command: [CHILD, parts], per_token: true, max_wait_ms: 50}}"));
    CHECK(f.env->asks_ahead);
    tg_step_result r = play(&f);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK(r.rewards[0] > 0 && r.rewards[1] > r.rewards[0] && r.rewards[2] > r.rewards[1]);
    CHECK_NEAR(r.rewards[2], (double)strlen(r.text), 0);
    slot_case_close(&f);
    /* Dense: what each token adds, the same whether the tokens come in one step or alone. */
    double together[3], alone[3];
    const char *dense = "{id: dense, args: {reward: {id: process, args: {command: [CHILD]}}}}";
    REQUIRE_OK(open_env(&f, dense));
    r = play(&f);
    CHECK_EQ(r.code, TG_CODE_OK);
    memcpy(together, r.rewards, sizeof together);
    CHECK_NEAR(together[0] + together[1] + together[2], (double)strlen(r.text), 1e-12);
    slot_case_close(&f);
    REQUIRE_OK(open_env(&f, dense));
    tg_reset_item item = {.slot = 3, .episode = 1, .seed = 1, .split = TG_SPLIT_TRAIN};
    tg_reset_result reset;
    tg_slot_reset(f.env, &f.slot, &item, true, &reset);
    for (int i = 0; i < 3; i++) {
        int32_t token = 256 + i;
        tg_slot_step(f.env, &f.slot, &(tg_step_item){3, 1, (uint32_t)i, &token, 1}, false, &r);
        CHECK_EQ(r.code, TG_CODE_OK);
        alone[i] = r.rewards[0];
    }
    for (int i = 0; i < 3; i++) CHECK_NEAR(alone[i], together[i], 0);
    slot_case_close(&f);
}

TEST(a_ranking_reward_is_pending_until_the_group_is_asked_for) {
    slot_case f;
    REQUIRE_OK(open_env(
        &f,
        "{id: weighted, args: {rewards: [{id: ranked, name: place, args: {reward: {id: "
        "increasing_numbers, args: {min_tokens: 4}}}}, {id: sentences_with_dates, weight: 10}]}}"));
    CHECK(f.env->ranked);
    tg_step_result r = play(&f);
    CHECK(r.code == TG_CODE_OK && r.reward_status == TG_REWARD_PENDING);
    CHECK(isnan(r.rewards[2]) && r.rewards[0] == 0);
    CHECK_EQ(component(&r, "place")->status, TG_REWARD_PENDING);
    tg_score_item items[3] = {
        {.id = 7, .prompt = "p", .completion = "1 2 3 4", .meta_json = ""},
        {.id = 8, .prompt = "p", .completion = "x y z a", .meta_json = ""},
        {.id = 9, .prompt = "p", .completion = "1 2 2020-01-01 x", .meta_json = ""}};
    tg_score_request q = {.fn = "", .items = items, .n = 3, .ranked = true};
    tg_score_reply reply;
    tg_arena arena = {0};
    REQUIRE_OK(tg_env_score(f.env, &q, &arena, &reply, &err));
    REQUIRE(reply.n == 3);
    const double want[] = {1, -1, 10};
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(reply.items[i].id, 7 + i);
        CHECK_EQ(reply.items[i].status, TG_REWARD_OK);
        CHECK_NEAR(reply.items[i].value, want[i], 1e-12);
        CHECK_EQ(reply.items[i].n_components, 3); /* both, and what was ranked */
    }
    CHECK_STR(reply.items[0].components[2].name, "place.increasing_numbers");
    q.ranked = false;
    CHECK_EQ(tg_env_score(f.env, &q, &arena, &reply, &err), TG_USAGE);
    CHECK(strstr(err.msg, "ranked"));
    q.fn = "sentences_with_dates"; /* that one needs no group */
    REQUIRE_OK(tg_env_score(f.env, &q, &arena, &reply, &err));
    CHECK(reply.items[2].value == 1 && reply.items[0].value == 0);
    tg_arena_fini(&arena);
    slot_case_close(&f);
}

TEST(what_cannot_stand_beside_a_ranking_reward) {
    slot_case f;
    CHECK_EQ(open_env(&f, "{id: weighted, args: {rewards: [{id: ranked, args: {reward: {id: "
                          "meteor}}}, {id: dense, args: "
                          "{reward: {id: sentences_with_dates}}}]}}"),
             TG_CONFIG);
    CHECK(strstr(err.msg, "every token"));
    tg_run_config_fini(&f.config);
    CHECK_EQ(
        open_env(&f, "{id: dense, args: {reward: {id: ranked, args: {reward: {id: meteor}}}}}"),
        TG_CONFIG);
    CHECK(strstr(err.msg, "together"));
    tg_run_config_fini(&f.config);
}

TEST_MAIN
