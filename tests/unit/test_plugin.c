/* Reward functions in shared objects: well-behaved, and going wrong in every way that was thought of: a status is recorded, never a number. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "tests/support/external_case.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <unistd.h>

TEST(plugin_example) {
    tg_reward r;
    tg_error err = {0};
    tg_reward_details d = {.prefix = "words"};
    REQUIRE_OK(external_open_plugin(&r, "example_reward", ", config: {words: 4}", &err));
    CHECK(r.traits.terminal && r.traits.slow && r.traits.deterministic && !r.traits.ranked);
    const char *texts[] = {"a b c d", "a b c", "", " a  b\nc d e f g h i "};
    const double want[] = {1, 0.75, 0, 0};
    for (int i = 0; i < 4; i++) {
        tg_reward_input in = external_input(&external_plain, texts[i]);
        tg_reward_value v;
        in.details = i == 1 ? &d : NULL;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, TG_REWARD_OK);
        CHECK_NEAR(v.value, want[i], 1e-12);
    }
    REQUIRE(d.n == 1);
    CHECK_STR(d.items[0].name, "words.words");
    CHECK_NEAR(d.items[0].value, 3, 0);
    tg_reward_details_fini(&d);
    tg_reward_input open = external_input(&external_plain, "a b c d");
    tg_reward_value v;
    open.done = false;
    CHECK_OK(tg_reward_score(&r, &open, 1, &v, &err)); /* not finished: not judged */
    CHECK(v.status == TG_REWARD_OK && v.value == 0);
    tg_reward_close(&r);
}

TEST(plugin_example_ranks) {
    tg_reward r;
    tg_error err = {0};
    REQUIRE_OK(
        external_open_plugin(&r, "example_reward", ", config: {words: 3}, ranked: true", &err));
    CHECK(r.traits.ranked);
    const char *texts[] = {"a", "a b c d", "a b c d e f"};
    tg_reward_input in[3];
    tg_reward_value v[3];
    for (int i = 0; i < 3; i++) in[i] = external_input(&external_plain, texts[i]);
    CHECK_OK(tg_reward_score(&r, in, 3, v, &err));
    for (int i = 0; i < 3; i++) CHECK(v[i].status == TG_REWARD_OK && v[i].value == (i == 1));
    tg_reward_close(&r);
}

TEST(plugins_that_cannot_be_loaded) {
    static const struct {
        const char *library, *args, *words;
    } cases[] = {{"nowhere", "", "nowhere.so"},
                 {"not_a_reward", "", "no textgen_reward_plugin()"},
                 {"old_reward", "", "version 2 of the interface, this program 1"},
                 {"bad_reward", ", config: {mode: refuse}", "it does not want to"},
                 {"example_reward", ", config: {words: 0}", "words: expected a number"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        tg_status st = external_open_plugin(&r, cases[i].library, cases[i].args, &err);
        tg_check(st == TG_CONFIG && strstr(err.msg, cases[i].words), __FILE__, __LINE__, "%s: %s",
                 cases[i].library, err.msg);
    }
}

TEST(r8_plugin) {
    static const struct {
        const char *mode;
        tg_reward_status status;
        const char *words;
    } cases[] = {
        {"error", TG_REWARD_FAILED, "the judge is ill"},
        {"item", TG_REWARD_FAILED, "this text is ill"},
        {"nan", TG_REWARD_INVALID, "not a finite number"},
        {"inf", TG_REWARD_INVALID, "not a finite number"},
        {"status", TG_REWARD_INVALID, "unknown status"},
        {"short", TG_REWARD_INVALID, "without a result"},
        {"components", TG_REWARD_INVALID, "1000 components"},
        {"noname", TG_REWARD_INVALID, "no name"},
    };
    external_quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        char args[100];
        snprintf(args, sizeof args, ", config: {mode: %s}", cases[i].mode);
        REQUIRE_OK(external_open_plugin(&r, "bad_reward", args, &err));
        external_expect(&r, cases[i].mode, cases[i].status, cases[i].words);
        tg_reward_close(&r);
    }
    tg_reward r;
    tg_error err = {0};
    REQUIRE_OK(
        external_open_plugin(&r, "bad_reward", ", config: {mode: sleep}, timeout_ms: 50", &err));
    external_expect(&r, "sleep", TG_REWARD_TIMEOUT, "50 ms");
    tg_reward_close(&r);
    REQUIRE_OK(external_open_plugin(&r, "bad_reward", ", config: {mode: endless}", &err));
    external_expect_lengths(&r); /* a message without its end does no harm */
    tg_reward_close(&r);
}

TEST_MAIN
