/* Reward workers over the wire: joining either way, load, loss, and everything that may go wrong. */
#include "common/base/log.h"
#include "env-server/reward/external.h"
#include "env-server/reward/inner.h"
#include "tests/support/reward_worker.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static const tg_sample plain = {.id = "", .prompt_text = "prompt", .meta_json = "{\"k\": 1}"};

__attribute__((format(printf, 3, 4))) static tg_status open_reward(tg_reward *r, tg_error *err,
                                                                   const char *fmt, ...) {
    char yaml[2048];
    va_list ap;
    tg_arena arena = {0};
    tg_node *root;
    va_start(ap, fmt);
    vsnprintf(yaml, sizeof yaml, fmt, ap);
    va_end(ap);
    if (!getenv("TEXTGEN_LOG")) tg_log_set_level(TG_LOG_ERROR);
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, err);
    if (st == TG_OK) st = tg_reward_open_section(r, root, "reward_fn", &(tg_open_context){0}, err);
    tg_arena_fini(&arena);
    return st;
}

static const char *ipc(const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "ipc://%s/%s", tg_test_tmpdir(), name);
    return path;
}

static tg_reward_value ask(const tg_reward *r, const char *text, tg_error *err) {
    tg_reward_input in = {.sample = &plain, .text = text, .text_len = strlen(text), .done = true};
    tg_reward_value v;
    CHECK_EQ(tg_reward_score(r, &in, 1, &v, err), TG_OK);
    return v;
}

static void expect_lengths(const tg_reward *r) {
    const char *texts[] = {"one", "", "seven 77"};
    tg_reward_input in[3];
    tg_reward_value v[3];
    tg_error err = {0};
    for (int i = 0; i < 3; i++)
        in[i] = (tg_reward_input){
            .sample = &plain, .text = texts[i], .text_len = strlen(texts[i]), .done = true};
    CHECK_OK(tg_reward_score(r, in, 3, v, &err));
    for (int i = 0; i < 3; i++)
        tg_check(v[i].status == TG_REWARD_OK && v[i].value == (double)strlen(texts[i]), __FILE__,
                 __LINE__, "status %d value %g: %s", v[i].status, v[i].value, err.msg);
}

TEST(a_worker_that_listens) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w = reward_worker_start(ipc("listens"), true, JUDGE_WELL, false);
    REQUIRE(w);
    REQUIRE_OK(
        open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"%s\"}}", ipc("listens")));
    CHECK(r.traits.slow && r.traits.terminal && !r.traits.deterministic);
    for (int i = 0; i < 5; i++) expect_lengths(&r);
    tg_reward_details d = {.prefix = "judge"};
    tg_reward_input in = {
        .sample = &plain, .text = "four", .text_len = 4, .done = true, .details = &d};
    tg_reward_value v;
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    REQUIRE(d.n == 1);
    CHECK_STR(d.items[0].name, "judge.chars");
    tg_reward_details_fini(&d);
    tg_reward_close(&r);
    reward_worker_stop(&w);
}

TEST(workers_that_dial_in_share_the_load) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w[3];
    REQUIRE_OK(open_reward(
        &r, &err, "{id: remote, args: {fn: length, bind: \"%s\", max_batch: 1, concurrency: 6}}",
        ipc("dials")));
    for (int i = 0; i < 3; i++)
        REQUIRE((w[i] = reward_worker_start(ipc("dials"), false, JUDGE_WELL, false)));
    for (int k = 0; k < 200; k++) {
        expect_lengths(&r);
        int least = reward_worker_requests(w[0]);
        for (int i = 1; i < 3; i++)
            if (reward_worker_requests(w[i]) < least) least = reward_worker_requests(w[i]);
        if (least) break;
        usleep(10000);
    }
    for (int i = 0; i < 3; i++) CHECK(reward_worker_requests(w[i]) > 0);
    tg_reward_close(&r);
    for (int i = 0; i < 3; i++) reward_worker_stop(&w[i]);
}

TEST(a_call_waits_for_a_worker) {
    tg_reward r;
    tg_error err = {0};
    REQUIRE_OK(open_reward(&r, &err,
                           "{id: remote, args: {fn: length, connect: [\"%s\"], timeout_ms: 100}}",
                           ipc("later")));
    CHECK_EQ(ask(&r, "text", &err).status, TG_REWARD_TIMEOUT); /* nobody is there */
    tg_reward_close(&r);
    REQUIRE_OK(
        open_reward(&r, &err, "{id: remote, args: {fn: length, connect: [\"%s\"]}}", ipc("later")));
    usleep(50000);
    reward_worker *w = reward_worker_start(ipc("later"), true, JUDGE_WELL, false);
    REQUIRE(w);
    expect_lengths(&r);
    reward_worker_stop(&w);
    w = reward_worker_start(ipc("later"), true, JUDGE_WELL, false); /* and it may be another one */
    REQUIRE(w);
    expect_lengths(&r);
    tg_reward_close(&r);
    reward_worker_stop(&w);
}

TEST(r8_remote) {
    static const struct {
        judge_fault fault;
        const char *args;
        tg_reward_status status;
        const char *words;
    } cases[] = {
        {JUDGE_ERROR, "", TG_REWARD_FAILED, "the judge is ill"},
        {JUDGE_ITEM_ERROR, "", TG_REWARD_FAILED, "this text is ill"},
        {JUDGE_NAN, "", TG_REWARD_INVALID, "not a finite number"},
        {JUDGE_NEVER, ", timeout_ms: 200", TG_REWARD_TIMEOUT, ""},
        {JUDGE_SHORT, "", TG_REWARD_INVALID, "0 results for 1 texts"},
        {JUDGE_DIE, "", TG_REWARD_FAILED, "lost"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_reward r;
        tg_error err = {0};
        char name[20];
        snprintf(name, sizeof name, "r8-%zu", i);
        reward_worker *w = reward_worker_start(ipc(name), true, cases[i].fault, false);
        REQUIRE(w);
        REQUIRE_OK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"%s\"%s}}",
                               ipc(name), cases[i].args));
        tg_reward_value v = ask(&r, "text", &err);
        tg_check(v.status == cases[i].status && isnan(v.value) && strstr(err.msg, cases[i].words),
                 __FILE__, __LINE__, "case %zu: status %d value %g: %s", i, (int)v.status, v.value,
                 err.msg);
        CHECK_EQ(reward_worker_requests(w), 1); /* it was never asked twice */
        tg_reward_close(&r);
        reward_worker_stop(&w);
    }
}

TEST(results_of_other_texts_are_none) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w = reward_worker_start(ipc("twice"), true, JUDGE_TWICE, false);
    REQUIRE(w);
    REQUIRE_OK(open_reward(&r, &err,
                           "{id: remote, args: {fn: length, connect: \"%s\", max_wait_ms: 100}}",
                           ipc("twice")));
    tg_reward_input in[2];
    tg_reward_value v[2];
    for (int i = 0; i < 2; i++)
        in[i] = (tg_reward_input){.sample = &plain, .text = "text", .text_len = 4, .done = true};
    CHECK_OK(tg_reward_score(&r, in, 2, v, &err));
    for (int i = 0; i < 2; i++) CHECK(v[i].status == TG_REWARD_INVALID && isnan(v[i].value));
    tg_reward_close(&r);
    reward_worker_stop(&w);
}

TEST(a_deterministic_call_survives_its_worker) {
    for (int by = 0; by < 2; by++) { /* by its own account, or by the config's */
        tg_reward r;
        tg_error err = {0};
        char name[20];
        snprintf(name, sizeof name, "survive%d", by);
        reward_worker *w = reward_worker_start(ipc(name), true, JUDGE_DIE, by == 0);
        REQUIRE(w);
        REQUIRE_OK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"%s\"%s}}",
                               ipc(name), by ? ", deterministic: true" : ""));
        expect_lengths(&r);
        CHECK(reward_worker_requests(w) >= 2);
        tg_reward_close(&r);
        reward_worker_stop(&w);
    }
}

TEST(a_refused_request_is_made_again) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w = reward_worker_start(ipc("busy"), true, JUDGE_BUSY, false);
    REQUIRE(w);
    REQUIRE_OK(
        open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"%s\"}}", ipc("busy")));
    expect_lengths(&r);
    tg_reward_close(&r);
    reward_worker_stop(&w);
}

TEST(a_group_goes_out_whole) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w = reward_worker_start(ipc("group"), true, JUDGE_WELL, false);
    REQUIRE(w);
    REQUIRE_OK(open_reward(
        &r, &err, "{id: remote, args: {fn: length, connect: \"%s\", ranked: true, max_batch: 1}}",
        ipc("group")));
    tg_reward_input in[5];
    tg_reward_value v[5];
    for (int i = 0; i < 5; i++)
        in[i] = (tg_reward_input){
            .sample = &plain, .text = "01234", .text_len = (size_t)i, .done = true};
    CHECK_OK(tg_reward_score(&r, in, 5, v, &err));
    for (int i = 0; i < 5; i++) CHECK(v[i].status == TG_REWARD_OK && v[i].value == 1000 + i);
    CHECK_EQ(reward_worker_requests(w), 1);
    tg_reward_close(&r);
    reward_worker_stop(&w);
}

TEST(a_worker_without_the_function_judges_nothing) {
    tg_reward r;
    tg_error err = {0};
    reward_worker *w = reward_worker_start(ipc("other"), true, JUDGE_WITHOUT, false);
    REQUIRE(w);
    REQUIRE_OK(open_reward(&r, &err,
                           "{id: remote, args: {fn: fluency, connect: \"%s\", timeout_ms: 3000}}",
                           ipc("other")));
    CHECK_EQ(ask(&r, "text", &err).status, TG_REWARD_TIMEOUT); /* a broker might find it yet */
    CHECK(strstr(err.msg, "NOT_FOUND"));
    tg_reward_close(&r);
    reward_worker_stop(&w);
    /* Beside one that says it has it, it is not even asked. */
    REQUIRE_OK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: [\"%s\", \"%s\"]}}",
                           ipc("other2"), "tcp://127.0.0.1:7697"));
    reward_worker *without =
        reward_worker_start("tcp://127.0.0.1:7697", true, JUDGE_WITHOUT, false);
    w = reward_worker_start(ipc("other2"), true, JUDGE_WELL, false);
    REQUIRE(w && without);
    expect_lengths(&r);
    int asked = reward_worker_requests(without); /* perhaps before the other was there */
    for (int i = 0; i < 5; i++) expect_lengths(&r);
    CHECK_EQ(reward_worker_requests(without), asked);
    tg_reward_close(&r);
    reward_worker_stop(&w);
    reward_worker_stop(&without);
}

static void *stop_worker(void *arg) {
    reward_worker *w = arg;
    reward_worker_stop(&w);
    return NULL;
}

/* For the thread sanitizer: the loop learns of the loss while the caller says that it is over. */
TEST(a_worker_is_lost_while_the_reward_is_closed) {
    for (int i = 0; i < 40; i++) {
        tg_reward r;
        tg_error err = {0};
        pthread_t thread;
        reward_worker *w = reward_worker_start(ipc("both"), true, JUDGE_WELL, true);
        REQUIRE_OK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"%s\"}}",
                               reward_worker_address(w)));
        CHECK_EQ(ask(&r, "text", &err).status, TG_REWARD_OK);
        REQUIRE(pthread_create(&thread, NULL, stop_worker, w) == 0);
        usleep(50 * (useconds_t)i);
        tg_reward_close(&r);
        pthread_join(thread, NULL);
    }
}

TEST(options_that_are_refused) {
    tg_reward r;
    tg_error err = {0};
    CHECK_EQ(open_reward(&r, &err, "{id: remote, args: {fn: length}}"), TG_CONFIG);
    CHECK(strstr(err.msg, "connect"));
    CHECK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: \"http://a\"}}") !=
          TG_OK);
    CHECK(open_reward(&r, &err, "{id: remote, args: {fn: length, connect: [[1]]}}") != TG_OK);
    CHECK(open_reward(&r, &err, "{id: remote, args: {fn: length, bind: \"tcp://0.0.0.0:7999\"}}") !=
          TG_OK);
}

/* ---- ranked -------------------------------------------------------------------------------- */

TEST(ranking_rewards) {
    static const struct {
        const char *mode;
        double want[4]; /* of increasing_numbers for 1, 1, 3 and 0 numbers */
    } cases[] = {{"rank", {0, 0, 1, -1}},
                 {"best", {0, 0, 1, 0}},
                 {"centred", {-0.0625, -0.0625, 0.4375, -0.3125}}};
    const char *texts[] = {"1 a a a", "2 b b b", "1 2 3 x", "x"};
    for (size_t k = 0; k < 3; k++) {
        tg_reward r;
        tg_error err = {0};
        REQUIRE_OK(
            open_reward(&r, &err,
                        "{id: ranked, args: {mode: %s, reward: {id: increasing_numbers, args: "
                        "{min_tokens: 2}}}}",
                        cases[k].mode));
        CHECK(r.traits.ranked && r.traits.terminal && !r.traits.slow && r.traits.deterministic);
        tg_reward_input in[4];
        tg_reward_value v[4];
        for (int i = 0; i < 4; i++)
            in[i] = (tg_reward_input){
                .sample = &plain, .text = texts[i], .text_len = strlen(texts[i]), .done = true};
        CHECK_OK(tg_reward_score(&r, in, 4, v, &err));
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(v[i].status, TG_REWARD_OK);
            CHECK_NEAR(v[i].value, cases[k].want[i], 1e-12);
        }
        CHECK_OK(tg_reward_score(&r, in, 1, v, &err)); /* alone it has no place */
        CHECK_NEAR(v[0].value, !strcmp(cases[k].mode, "best"), 1e-12);
        tg_reward_close(&r);
    }
}

TEST(failed_members_are_not_ranked) {
    tg_reward r;
    tg_error err = {0};
    /* Without references this one has no value. */
    REQUIRE_OK(open_reward(
        &r, &err,
        "{id: ranked, args: {mode: rank, reward: {id: per_reference, args: {reward: {id: "
        "rouge, args: {rouge_type: rouge1}}}}}}"));
    const char *ref = "a b c";
    tg_sample with = {
        .id = "", .prompt_text = "", .meta_json = "", .references = &ref, .n_references = 1};
    tg_reward_input in[3];
    tg_reward_value v[3];
    const char *texts[] = {"a b", "a", "a b c"};
    for (int i = 0; i < 3; i++)
        in[i] = (tg_reward_input){.sample = i == 2 ? &plain : &with,
                                  .text = texts[i],
                                  .text_len = strlen(texts[i]),
                                  .done = true};
    CHECK_OK(tg_reward_score(&r, in, 3, v, &err));
    CHECK(v[0].status == TG_REWARD_OK && v[0].value == 1);
    CHECK(v[1].status == TG_REWARD_OK && v[1].value == -1);
    CHECK(v[2].status == TG_REWARD_INVALID && isnan(v[2].value));
    tg_reward_close(&r);
    CHECK_EQ(open_reward(&r, &err,
                         "{id: ranked, args: {reward: {id: dense, args: {reward: {id: meteor}}}}}"),
             TG_CONFIG);
    CHECK_EQ(open_reward(&r, &err, "{id: ranked}"), TG_CONFIG);
}

TEST_MAIN
