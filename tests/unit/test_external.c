/* Reward functions outside this program: a plug-in, a program, an HTTP server; each well-behaved, and each going wrong in
 * every way that was thought of: a status is recorded, never a number. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "env-server/reward/child.h"
#include "env-server/reward/external.h"
#include "env-server/reward/inner.h"
#include "tests/support/http_judge.h"
#include "tests/support/tg_test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------------- */

/* The folder of everything built: this program is BUILD/tests/unit/test_external. */
static const char *built(void) {
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    for (int i = 0; i < 3; i++) *strrchr(path, '/') = 0;
    return path;
}

static tg_status open_yaml(tg_reward *r, const char *yaml, tg_error *err) {
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, err);
    if (st == TG_OK) st = tg_reward_open_section(r, root, "reward_fn", &(tg_open_context){0}, err);
    tg_arena_fini(&arena);
    return st;
}

__attribute__((format(printf, 3, 4))) static tg_status open_reward(tg_reward *r, tg_error *err,
                                                                   const char *fmt, ...) {
    char yaml[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(yaml, sizeof yaml, fmt, ap);
    va_end(ap);
    return open_yaml(r, yaml, err);
}

static tg_status open_plugin(tg_reward *r, const char *library, const char *args, tg_error *err) {
    return open_reward(r, err, "{id: plugin, args: {path: \"%s/plugin/%s.so\"%s}}", built(),
                       library, args);
}

static tg_status open_process(tg_reward *r, const char *mode, const char *args, tg_error *err) {
    return open_reward(
        r, err,
        "{id: process, args: {command: [\"%s/tests/reward-child\", \"%s\"], breaker_ms: 0%s}}",
        built(), mode, args);
}

static tg_status open_http(tg_reward *r, const http_judge *j, const char *args, tg_error *err) {
    return open_reward(r, err,
                       "{id: http, args: {url: \"http://127.0.0.1:%d/score\", breaker_ms: 0%s}}",
                       j->port, args);
}

static tg_reward_input text_input(const tg_sample *sample, const char *text) {
    return (tg_reward_input){
        .sample = sample, .text = text, .text_len = strlen(text), .done = true};
}

static const tg_sample plain = {.id = "", .prompt_text = "prompt", .meta_json = "{\"k\": 1}"};

static void quiet(void) {
    tg_log_set_level(TG_LOG_ERROR);
}

/* One text has this status, no number, and a reason with these words. */
static void expect(const tg_reward *r, const char *what, tg_reward_status status,
                   const char *reason) {
    tg_reward_input in = text_input(&plain, "text");
    tg_reward_value v;
    tg_error err = {0};
    tg_status st = tg_reward_score(r, &in, 1, &v, &err);
    tg_check(st == TG_OK && v.status == status && isnan(v.value) && strstr(err.msg, reason),
             __FILE__, __LINE__, "%s: status %d, value %g, \"%s\"", what, (int)v.status, v.value,
             err.msg);
}

static void expect_lengths(const tg_reward *r) {
    const char *texts[] = {"one", "", "seven 77", "\xC3\xA9"};
    tg_reward_input in[4];
    tg_reward_value v[4];
    tg_error err = {0};
    for (int i = 0; i < 4; i++) in[i] = text_input(&plain, texts[i]);
    CHECK_OK(tg_reward_score(r, in, 4, v, &err));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(v[i].status, TG_REWARD_OK);
        CHECK_NEAR(v[i].value, (double)strlen(texts[i]), 0);
    }
}

/* ---- plug-ins ------------------------------------------------------------------------------ */

TEST(plugin_example) {
    tg_reward r;
    tg_error err = {0};
    tg_reward_details d = {.prefix = "words"};
    REQUIRE_OK(open_plugin(&r, "example_reward", ", config: {words: 4}", &err));
    CHECK(r.traits.terminal && r.traits.slow && r.traits.deterministic && !r.traits.ranked);
    const char *texts[] = {"a b c d", "a b c", "", " a  b\nc d e f g h i "};
    const double want[] = {1, 0.75, 0, 0};
    for (int i = 0; i < 4; i++) {
        tg_reward_input in = text_input(&plain, texts[i]);
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
    tg_reward_input open = text_input(&plain, "a b c d");
    tg_reward_value v;
    open.done = false;
    CHECK_OK(tg_reward_score(&r, &open, 1, &v, &err)); /* not finished: not judged */
    CHECK(v.status == TG_REWARD_OK && v.value == 0);
    tg_reward_close(&r);
}

TEST(plugin_example_ranks) {
    tg_reward r;
    tg_error err = {0};
    REQUIRE_OK(open_plugin(&r, "example_reward", ", config: {words: 3}, ranked: true", &err));
    CHECK(r.traits.ranked);
    const char *texts[] = {"a", "a b c d", "a b c d e f"};
    tg_reward_input in[3];
    tg_reward_value v[3];
    for (int i = 0; i < 3; i++) in[i] = text_input(&plain, texts[i]);
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
        tg_status st = open_plugin(&r, cases[i].library, cases[i].args, &err);
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
    quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        char args[100];
        snprintf(args, sizeof args, ", config: {mode: %s}", cases[i].mode);
        REQUIRE_OK(open_plugin(&r, "bad_reward", args, &err));
        expect(&r, cases[i].mode, cases[i].status, cases[i].words);
        tg_reward_close(&r);
    }
    tg_reward r;
    tg_error err = {0};
    REQUIRE_OK(open_plugin(&r, "bad_reward", ", config: {mode: sleep}, timeout_ms: 50", &err));
    expect(&r, "sleep", TG_REWARD_TIMEOUT, "50 ms");
    tg_reward_close(&r);
    REQUIRE_OK(open_plugin(&r, "bad_reward", ", config: {mode: endless}", &err));
    expect_lengths(&r); /* a message without its end does no harm */
    tg_reward_close(&r);
}

/* ---- programs ------------------------------------------------------------------------------ */

TEST(process_judges) {
    tg_reward r;
    tg_error err = {0};
    quiet();
    REQUIRE_OK(open_process(&r, "ok", "", &err));
    CHECK(r.traits.terminal && r.traits.slow && !r.traits.deterministic);
    for (int i = 0; i < 3; i++) expect_lengths(&r);
    tg_reward_close(&r);
}

TEST(process_tells_parts_and_stays) {
    tg_reward r;
    tg_error err = {0};
    double pid = 0;
    quiet();
    REQUIRE_OK(open_process(&r, "parts", "", &err));
    for (int i = 0; i < 3; i++) {
        tg_reward_details d = {.prefix = "judge"};
        tg_reward_input in = text_input(&plain, "four");
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
    quiet();
    REQUIRE_OK(open_process(&r, "odd", ", max_wait_ms: 100", &err));
    for (int i = 0; i < 4; i++) in[i] = text_input(&plain, "text");
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
    quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        REQUIRE_OK(open_process(&r, cases[i].mode, cases[i].args, &err));
        expect(&r, cases[i].mode, cases[i].status, cases[i].words);
        tg_reward_close(&r);
    }
}

TEST(process_is_started_again) {
    tg_reward r;
    tg_error err = {0};
    quiet();
    /* Every second request kills it: without determinism that text has no value, and the next one is judged again. */
    REQUIRE_OK(open_process(&r, "die2", "", &err));
    tg_reward_input in = text_input(&plain, "text");
    for (int i = 0; i < 6; i++) {
        tg_reward_value v;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, i % 2 ? TG_REWARD_FAILED : TG_REWARD_OK);
    }
    tg_reward_close(&r);
    /* A deterministic one may be asked twice: every text has its value. */
    REQUIRE_OK(open_process(&r, "die2", ", deterministic: true, cache: 0", &err));
    for (int i = 0; i < 6; i++) {
        tg_reward_value v;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, TG_REWARD_OK);
    }
    tg_reward_close(&r);
    /* One that always dies is given up for a while. */
    REQUIRE_OK(open_process(&r, "die", ", restarts: 2, retries: 0", &err));
    for (int i = 0; i < 3; i++) expect(&r, "die", TG_REWARD_FAILED, "signal 6");
    expect(&r, "die", TG_REWARD_FAILED, "not started again");
    tg_reward_close(&r);
}

TEST(process_commands_that_are_none) {
    tg_reward r;
    tg_error err = {0};
    quiet();
    CHECK_EQ(open_reward(&r, &err, "{id: process}"), TG_CONFIG);
    CHECK(strstr(err.msg, "command"));
    CHECK_EQ(open_reward(&r, &err, "{id: process, args: {command: judge.py}}"), TG_CONFIG);
    CHECK_EQ(open_reward(&r, &err, "{id: process, args: {command: [{a: b}]}}"), TG_CONFIG);
    REQUIRE_OK(open_reward(&r, &err, "{id: process, args: {command: [/no/such], retries: 0}}"));
    expect(&r, "no such program", TG_REWARD_FAILED, "/no/such: cannot be started");
    tg_reward_close(&r);
}

TEST(a_large_request_and_its_answer_do_not_lock_up) {
    tg_reward r;
    tg_error err = {0};
    size_t size = 3 << 20;
    char *text = tg_alloc(size + 1);
    REQUIRE(text);
    memset(text, 'x', size);
    quiet();
    REQUIRE_OK(open_process(&r, "ok", "", &err));
    tg_reward_input in = text_input(&plain, text);
    tg_reward_value v;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK(v.status == TG_REWARD_OK && v.value == (double)size);
    tg_reward_close(&r);
    tg_free(text);
}

/* ---- HTTP ---------------------------------------------------------------------------------- */

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
    REQUIRE_OK(open_http(&r, &j, args, &err));
    for (int i = 0; i < 4; i++) expect_lengths(&r);
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
    quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_judge j;
        tg_reward r;
        tg_error err = {0};
        REQUIRE(http_judge_start(&j, cases[i].mode));
        REQUIRE_OK(open_http(&r, &j, cases[i].args, &err));
        expect(&r, cases[i].words, cases[i].status, cases[i].words);
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
    quiet();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_judge j;
        tg_reward r;
        tg_error err = {0};
        REQUIRE(http_judge_start(&j, cases[i].mode));
        REQUIRE_OK(open_http(&r, &j, cases[i].args, &err));
        expect_lengths(&r);
        CHECK(atomic_load(&j.requests) >= 2);
        tg_reward_close(&r);
        http_judge_stop(&j);
    }
}

TEST(http_without_a_server_fails) {
    http_judge j;
    tg_reward r;
    tg_error err = {0};
    quiet();
    REQUIRE(http_judge_start(&j, HTTP_OK));
    http_judge_stop(&j); /* its port is free now */
    REQUIRE_OK(open_http(&r, &j, "", &err));
    expect(&r, "nobody there", TG_REWARD_FAILED, "no connection");
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
        CHECK(open_yaml(&r, cases[i][0], &err) != TG_OK);
        tg_check(strstr(err.msg, cases[i][1]) && !strstr(err.msg, "pass@"), __FILE__, __LINE__,
                 "%s: %s", cases[i][0], err.msg);
    }
    setenv("TG_TEST_BAD", "s3cr3t without a name", 1);
    tg_reward r;
    tg_error err = {0};
    CHECK_EQ(open_yaml(&r,
                       "{id: http, args: {url: \"http://a/b\", secret_headers_env: TG_TEST_BAD}}",
                       &err),
             TG_CONFIG);
    CHECK(strstr(err.msg, "line 1") && !strstr(err.msg, "s3cr3t"));
}

/* ---- inside others ------------------------------------------------------------------------- */

TEST(inside_a_weighted_sum_and_a_dense_reward) {
    tg_reward r;
    tg_error err = {0};
    quiet();
    REQUIRE_OK(
        open_reward(&r, &err,
                    "{id: weighted, args: {rewards: [{id: sentences_with_dates}, {id: process, "
                    "name: judge, weight: 0.5, args: {command: [\"%s/tests/reward-child\"]}}]}}",
                    built()));
    CHECK(r.traits.slow && !r.traits.deterministic && r.traits.terminal);
    tg_reward_input in = text_input(&plain, "2020-01-01");
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

    REQUIRE_OK(open_reward(&r, &err,
                           "{id: dense, args: {reward: {id: process, args: {command: "
                           "[\"%s/tests/reward-child\"]}}}}",
                           built()));
    CHECK(r.traits.slow && !r.traits.deterministic && r.traits.wants_before);
    in.before = "2020-01", in.before_len = 7, in.n_tokens = 4, in.done = false;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK(v.status == TG_REWARD_OK && v.value == 3);
    tg_reward_close(&r);

    REQUIRE_OK(open_reward(&r, &err,
                           "{id: dense, args: {reward: {id: process, args: {command: "
                           "[\"%s/tests/reward-child\", \"null\"]}}}}",
                           built()));
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err)); /* on its way, and still not 0 */
    CHECK(v.status == TG_REWARD_INVALID && isnan(v.value));
    tg_reward_close(&r);
}

TEST_MAIN
