/* Reward functions behind HTTP: well-behaved, and going wrong in every way that was thought of: a status is recorded, never a number. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "tests/support/external_case.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <unistd.h>

TEST(http_judges_over_one_connection) {
    http_judge j;
    tg_reward r;
    tg_error err = {0};
    char file[300];
    snprintf(file, sizeof file, "%s/secret", tg_test_tmpdir());
    FILE *f = fopen(file, "w");
    REQUIRE(f);
    fputs("Authorization: Bearer s3cr3t\r\nX-Key: 7\n", f);
    fclose(f);
    setenv("TG_TEST_HEADERS", "X-Env: yes", 1);
    REQUIRE(http_judge_start(&j, HTTP_OK));
    char args[600];
    snprintf(args, sizeof args,
             ", concurrency: 1, headers: {X-Plain: a b}, secret_headers_file: \"%s\", "
             "secret_headers_env: TG_TEST_HEADERS",
             file);
    REQUIRE_OK(external_open_http(&r, &j, args, &err));
    for (int i = 0; i < 4; i++) external_expect_lengths(&r);
    CHECK_EQ(atomic_load(&j.connections), 1);
    CHECK(strstr(j.seen, "POST /score HTTP/1.1\r\n"));
    CHECK(strstr(j.seen, "Content-Type: application/json\r\n"));
    CHECK(strstr(j.seen, "Authorization: Bearer s3cr3t"));
    CHECK(strstr(j.seen, "X-Key: 7") && strstr(j.seen, "X-Env: yes") &&
          strstr(j.seen, "X-Plain: a b"));
    tg_reward_close(&r);
    http_judge_stop(&j);
}

TEST(r8_http) {
    static const struct {
        http_mode mode;
        const char *args;
        tg_reward_status status;
        const char *words;
    } cases[] = {
        {HTTP_ERROR, "", TG_REWARD_FAILED, "the judge is ill"},
        {HTTP_500, "", TG_REWARD_FAILED, "HTTP status 500"},
        {HTTP_NAN, "", TG_REWARD_INVALID, "not JSON"},
        {HTTP_HTML, "", TG_REWARD_INVALID, "not JSON"},
        {HTTP_NEVER, ", timeout_ms: 200", TG_REWARD_TIMEOUT, ""},
        {HTTP_SHORT, "", TG_REWARD_INVALID, "0 results for 1 texts"},
        {HTTP_HANGUP, "", TG_REWARD_FAILED, ""},
        {HTTP_LONG, ", max_reply: 100000", TG_REWARD_INVALID, "longer than 100000"},
        {HTTP_GATEWAY, "", TG_REWARD_FAILED, "HTTP status 502"}, /* may have been processed */
    };
    external_quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_judge j;
        tg_reward r;
        tg_error err = {0};
        REQUIRE(http_judge_start(&j, cases[i].mode));
        REQUIRE_OK(external_open_http(&r, &j, cases[i].args, &err));
        external_expect(&r, cases[i].words, cases[i].status, cases[i].words);
        CHECK_EQ(atomic_load(&j.requests), 1);
        tg_reward_close(&r);
        http_judge_stop(&j);
    }
}

TEST(http_asks_again_where_that_is_safe) {
    static const struct {
        http_mode mode;
        const char *args;
    } cases[] = {{HTTP_BUSY_ONCE, ""}, {HTTP_TEACHES, ""}, {HTTP_GATEWAY, ", deterministic: true"}};
    external_quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_judge j;
        tg_reward r;
        tg_error err = {0};
        REQUIRE(http_judge_start(&j, cases[i].mode));
        REQUIRE_OK(external_open_http(&r, &j, cases[i].args, &err));
        external_expect_lengths(&r);
        CHECK(atomic_load(&j.requests) >= 2);
        tg_reward_close(&r);
        http_judge_stop(&j);
    }
}

TEST(http_without_a_server_fails) {
    http_judge j;
    tg_reward r;
    tg_error err = {0};
    external_quiet();
    REQUIRE(http_judge_start(&j, HTTP_OK));
    http_judge_stop(&j); /* its port is free now */
    REQUIRE_OK(external_open_http(&r, &j, "", &err));
    external_expect(&r, "nobody there", TG_REWARD_FAILED, "no connection");
    tg_score_stats stats;
    tg_scorer_get_stats(((tg_external *)r.state)->scorer, &stats);
    CHECK_EQ(stats.retries, 2);
    tg_reward_close(&r);
}

TEST(http_options_that_are_refused) {
    static const char *const cases[][2] = {
        {"{id: http, args: {url: \"ftp://a/b\"}}", "expected http://"},
        {"{id: http, args: {url: \"http://me:pass@a/b\"}}", "secret_headers_file"},
        {"{id: http, args: {url: \"http://a/b\", headers: {\"a b\": c}}}", "not a header"},
        {"{id: http, args: {url: \"http://a/b\", secret_headers_env: NO_SUCH}}", "NO_SUCH"},
        {"{id: http, args: {url: \"http://a/b\", ranked: true, per_token: true}}", "exclude"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        CHECK(external_open_yaml(&r, cases[i][0], &err) != TG_OK);
        tg_check(strstr(err.msg, cases[i][1]) && !strstr(err.msg, "pass@"), __FILE__, __LINE__,
                 "%s: %s", cases[i][0], err.msg);
    }
    setenv("TG_TEST_BAD", "s3cr3t without a name", 1);
    tg_reward r;
    tg_error err = {0};
    CHECK_EQ(
        external_open_yaml(
            &r, "{id: http, args: {url: \"http://a/b\", secret_headers_env: TG_TEST_BAD}}", &err),
        TG_CONFIG);
    CHECK(strstr(err.msg, "line 1") && !strstr(err.msg, "s3cr3t"));
}

TEST_MAIN
