/* Reward functions that are programs, and all kinds inside other rewards: well-behaved, and going wrong in every way that was thought of: a
 * status is recorded, never a number. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "env-server/reward/child.h"
#include "env-server/reward/inner.h"
#include "tests/support/external_case.h"
#include "tests/support/tg_test.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- programs ------------------------------------------------------------------------------ */

TEST(process_judges) {
    tg_reward r;
    tg_error err = {0};
    external_quiet();
    REQUIRE_OK(external_open_process(&r, "ok", "", &err));
    CHECK(r.traits.terminal && r.traits.slow && !r.traits.deterministic);
    for (int i = 0; i < 3; i++) external_expect_lengths(&r);
    tg_reward_close(&r);
}

TEST(process_tells_parts_and_stays) {
    tg_reward r;
    tg_error err = {0};
    double pid = 0;
    external_quiet();
    REQUIRE_OK(external_open_process(&r, "parts", "", &err));
    for (int i = 0; i < 3; i++) {
        tg_reward_details d = {.prefix = "judge"};
        tg_reward_input in = external_input(&external_plain, "four");
        tg_reward_value v;
        in.details = &d;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        REQUIRE(d.n == 2);
        CHECK_STR(d.items[0].name, "judge.length");
        CHECK(d.items[0].value == 4);
        if (i) CHECK(d.items[1].value == pid); /* one program, started once */
        pid = d.items[1].value;
        tg_reward_details_fini(&d);
    }
    tg_reward_close(&r);
    CHECK(kill((pid_t)pid, 0) != 0); /* and not left behind */
}

TEST(process_errors_of_single_texts) {
    tg_reward r;
    tg_error err = {0};
    tg_reward_input in[4];
    tg_reward_value v[4];
    external_quiet();
    REQUIRE_OK(external_open_process(&r, "odd", ", max_wait_ms: 100", &err));
    for (int i = 0; i < 4; i++) in[i] = external_input(&external_plain, "text");
    CHECK_OK(tg_reward_score(&r, in, 4, v, &err));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(v[i].status, i % 2 ? TG_REWARD_FAILED : TG_REWARD_OK);
        CHECK(i % 2 ? isnan(v[i].value) : v[i].value == 4);
    }
    CHECK_STR(err.msg, "this text is ill");
    tg_reward_close(&r);
}

TEST(r8_process) {
    static const struct {
        const char *mode, *args;
        tg_reward_status status;
        const char *words;
    } cases[] = {
        {"error", "", TG_REWARD_FAILED, "the judge is ill"},
        {"item", "", TG_REWARD_FAILED, "this text is ill"},
        {"nan", "", TG_REWARD_INVALID, "not JSON"},
        {"null", "", TG_REWARD_INVALID, "not a finite number"},
        {"never", ", timeout_ms: 200", TG_REWARD_TIMEOUT, ""},
        {"short", "", TG_REWARD_INVALID, "0 results for 1 texts"},
        {"long", "", TG_REWARD_INVALID, "2 results for 1 texts"},
        {"id", "", TG_REWARD_INVALID, "id 0"},
        {"noise", "", TG_REWARD_INVALID, "not JSON"},
        {"two", "", TG_REWARD_INVALID, "more than one line"},
        {"flood", ", max_reply: 100000", TG_REWARD_INVALID, "longer than 100000"},
        {"die", ", retries: 1", TG_REWARD_FAILED, "signal 6"},
        {"leave", ", retries: 0", TG_REWARD_FAILED, "exit code 3"},
    };
    external_quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        REQUIRE_OK(external_open_process(&r, cases[i].mode, cases[i].args, &err));
        external_expect(&r, cases[i].mode, cases[i].status, cases[i].words);
        tg_reward_close(&r);
    }
}

TEST(process_is_started_again) {
    tg_reward r;
    tg_error err = {0};
    external_quiet();
    /* Every second request kills it: without determinism that text has no value, and the next one is judged again. */
    REQUIRE_OK(external_open_process(&r, "die2", "", &err));
    tg_reward_input in = external_input(&external_plain, "text");
    for (int i = 0; i < 6; i++) {
        tg_reward_value v;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, i % 2 ? TG_REWARD_FAILED : TG_REWARD_OK);
    }
    tg_reward_close(&r);
    /* A deterministic one may be asked twice: every text has its value. */
    REQUIRE_OK(external_open_process(&r, "die2", ", deterministic: true, cache: 0", &err));
    for (int i = 0; i < 6; i++) {
        tg_reward_value v;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, TG_REWARD_OK);
    }
    tg_reward_close(&r);
    /* One that always dies is given up for a while. */
    REQUIRE_OK(external_open_process(&r, "die", ", restarts: 2, retries: 0", &err));
    for (int i = 0; i < 3; i++) external_expect(&r, "die", TG_REWARD_FAILED, "signal 6");
    external_expect(&r, "die", TG_REWARD_FAILED, "not started again");
    tg_reward_close(&r);
}

TEST(process_commands_that_are_none) {
    tg_reward r;
    tg_error err = {0};
    external_quiet();
    CHECK_EQ(external_open(&r, &err, "{id: process}"), TG_CONFIG);
    CHECK(strstr(err.msg, "command"));
    CHECK_EQ(external_open(&r, &err, "{id: process, args: {command: judge.py}}"), TG_CONFIG);
    CHECK_EQ(external_open(&r, &err, "{id: process, args: {command: [{a: b}]}}"), TG_CONFIG);
    REQUIRE_OK(external_open(&r, &err, "{id: process, args: {command: [/no/such], retries: 0}}"));
    external_expect(&r, "no such program", TG_REWARD_FAILED, "/no/such: cannot be started");
    tg_reward_close(&r);
}

TEST(a_large_request_and_its_answer_do_not_lock_up) {
    tg_reward r;
    tg_error err = {0};
    size_t size = 3 << 20;
    char *text = tg_alloc(size + 1);
    REQUIRE(text);
    memset(text, 'x', size);
    external_quiet();
    REQUIRE_OK(external_open_process(&r, "ok", "", &err));
    tg_reward_input in = external_input(&external_plain, text);
    tg_reward_value v;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK(v.status == TG_REWARD_OK && v.value == (double)size);
    tg_reward_close(&r);
    tg_free(text);
}

/* ---- inside others ------------------------------------------------------------------------- */

TEST(inside_a_weighted_sum_and_a_dense_reward) {
    tg_reward r;
    tg_error err = {0};
    external_quiet();
    REQUIRE_OK(
        external_open(&r, &err,
                      "{id: weighted, args: {rewards: [{id: sentences_with_dates}, {id: process, "
                      "name: judge, weight: 0.5, args: {command: [\"%s/tests/reward-child\"]}}]}}",
                      external_built()));
    CHECK(r.traits.slow && !r.traits.deterministic && r.traits.terminal);
    tg_reward_input in = external_input(&external_plain, "2020-01-01");
    tg_reward_value v;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK(v.status == TG_REWARD_OK && v.value == 6);
    tg_buf text = {0};
    tg_stats *figures = tg_stats_create();
    REQUIRE(figures);
    tg_reward_figures(&r, figures);
    tg_stats_write(figures, &text);
    tg_stats_destroy(&figures);
    CHECK(text.data &&
          strstr(text.data, "textgen_reward_fn_results_total{fn=\"judge\",status=\"ok\"} 1\n"));
    tg_buf_fini(&text);
    tg_reward_close(&r);

    REQUIRE_OK(external_open(&r, &err,
                             "{id: dense, args: {reward: {id: process, args: {command: "
                             "[\"%s/tests/reward-child\"]}}}}",
                             external_built()));
    CHECK(r.traits.slow && !r.traits.deterministic && r.traits.wants_before);
    in.before = "2020-01", in.before_len = 7, in.n_tokens = 4, in.done = false;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK(v.status == TG_REWARD_OK && v.value == 3);
    tg_reward_close(&r);

    REQUIRE_OK(external_open(&r, &err,
                             "{id: dense, args: {reward: {id: process, args: {command: "
                             "[\"%s/tests/reward-child\", \"null\"]}}}}",
                             external_built()));
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err)); /* on its way, and still not 0 */
    CHECK(v.status == TG_REWARD_INVALID && isnan(v.value));
    tg_reward_close(&r);
}

TEST_MAIN
