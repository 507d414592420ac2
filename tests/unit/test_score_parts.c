/* What a scorer is made of: circuit breaker, cache, keys of texts, JSON of requests and replies, figures. */
#include "common/base/alloc.h"
#include "env-server/reward/score.h"
#include "env-server/reward/score_cache.h"
#include "env-server/reward/score_json.h"
#include "tests/support/tg_test.h"

/* ---- parts --------------------------------------------------------------------------------- */

TEST(breaker_needs_half_of_twenty) {
    tg_breaker b = {.open_ms = 100};
    for (int i = 0; i < 200; i++) { /* 9 of 20 again and again */
        CHECK(tg_breaker_allow(&b, 0));
        tg_breaker_record(&b, 0, i % 20 >= 9);
    }
    CHECK_EQ(b.state, TG_BREAKER_CLOSED);
    for (int i = 0; i < 10 && b.state == TG_BREAKER_CLOSED; i++) tg_breaker_record(&b, 1000, false);
    CHECK_EQ(b.state, TG_BREAKER_OPEN);
    CHECK(!tg_breaker_allow(&b, 1099));
    CHECK(tg_breaker_allow(&b, 1100)); /* the probe */
    CHECK(!tg_breaker_allow(&b, 1100));
    tg_breaker_record(&b, 1101, false);
    CHECK(!tg_breaker_allow(&b, 1200));
    CHECK(tg_breaker_allow(&b, 1201));
    tg_breaker_record(&b, 1201, true);
    CHECK_EQ(b.state, TG_BREAKER_CLOSED);
    CHECK(tg_breaker_allow(&b, 1201) && tg_breaker_allow(&b, 1201));
    CHECK_EQ(b.opened, 2);
}

TEST(cache_forgets_the_oldest) {
    tg_score_cache *c;
    tg_error err = {0};
    tg_arena arena = {0};
    tg_score_result r = {.status = TG_REWARD_OK, .message = ""}, got;
    REQUIRE_OK(tg_score_cache_create(&c, 3, &err));
    for (uint64_t k = 0; k < 3; k++) {
        r.value = (double)k;
        tg_score_cache_put(c, (uint64_t[]){k, 9}, &r, 1);
    }
    CHECK(tg_score_cache_get(c, (uint64_t[]){0, 9}, &arena, &got, 1) && got.value == 0);
    CHECK(!tg_score_cache_get(c, (uint64_t[]){0, 8}, &arena, &got, 1)); /* both halves count */
    CHECK(!tg_score_cache_get(c, (uint64_t[]){0, 9}, &arena, &got, 2));
    tg_score_cache_put(c, (uint64_t[]){3, 9}, &r, 1);
    CHECK_EQ(tg_score_cache_count(c), 3);
    CHECK(!tg_score_cache_get(c, (uint64_t[]){1, 9}, &arena, &got, 1));
    CHECK(tg_score_cache_get(c, (uint64_t[]){0, 9}, &arena, &got, 1));
    r.status = TG_REWARD_FAILED;
    tg_score_cache_put(c, (uint64_t[]){4, 9}, &r, 1);
    CHECK(!tg_score_cache_get(c, (uint64_t[]){4, 9}, &arena, &got, 1));
    tg_score_cache_destroy(&c);
    tg_arena_fini(&arena);
}

TEST(keys_see_every_part) {
    const char *refs[] = {"r1", "r2"};
    tg_score_text base = {.done = true,
                          .item = {.prompt = "p",
                                   .completion = "c",
                                   .meta_json = "",
                                   .references = refs,
                                   .n_references = 2}};
    tg_score_text others[8];
    for (int i = 0; i < 8; i++) others[i] = base;
    const char *swapped[] = {"r2", "r1"}, *joined[] = {"r1r2"};
    others[0].item.prompt = "pc", others[0].item.completion = "";
    others[1].item.completion = "d";
    others[2].item.meta_json = "{}";
    others[3].item.references = swapped;
    others[4].item.references = joined, others[4].item.n_references = 1;
    others[5].done = false;
    others[6].n_tokens = 3;
    others[7].item.n_references = 1;
    uint64_t a[2], b[2];
    REQUIRE(tg_score_key("fn", &base, 1, a));
    REQUIRE(tg_score_key("fn", &base, 1, b) && a[0] == b[0] && a[1] == b[1]);
    REQUIRE(tg_score_key("fn2", &base, 1, b) && a[0] != b[0] && a[1] != b[1]);
    for (int i = 0; i < 8; i++) {
        REQUIRE(tg_score_key("fn", &others[i], 1, b));
        CHECK(a[0] != b[0] && a[1] != b[1]);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------- */

TEST(a_request_is_one_line_of_json) {
    const char *refs[] = {"a \"ref\""};
    tg_score_text t = {.n_tokens = 3,
                       .done = true,
                       .item = {.prompt = "line\nbreak",
                                .completion = "é",
                                .meta_json = "{\n \"k\": [1]\n}",
                                .references = refs,
                                .n_references = 1}};
    const tg_score_text *list[] = {&t};
    tg_score_call c = {.texts = list, .n = 1, .ranked = true};
    tg_buf out = {0};
    tg_score_json_write(&out, 12, &c);
    CHECK_STR(out.data, "{\"id\": 12, \"ranked\": true, \"items\": [{\"prompt\": \"line\\nbreak\", "
                        "\"completion\": \"é\", \"references\": [\"a \\\"ref\\\"\"], \"meta\": "
                        "{\"k\":[1]}, \"n_tokens\": 3, \"done\": true}]}");
    tg_buf_fini(&out);
}

TEST(replies) {
    static const struct {
        const char *text;
        tg_status want;
        tg_reward_status status;
        double value;
    } cases[] = {
        {"{\"id\": 5, \"results\": [0.5]}", TG_OK, TG_REWARD_OK, 0.5},
        {"{\"id\": 5, \"results\": [{\"value\": 2}]}", TG_OK, TG_REWARD_OK, 2},
        {"{\"id\": 5, \"results\": [{\"error\": \"no\"}]}", TG_OK, TG_REWARD_FAILED, NAN},
        {"{\"id\": 5, \"results\": [null]}", TG_OK, TG_REWARD_INVALID, NAN},
        {"{\"id\": 5, \"results\": [\"0.5\"]}", TG_OK, TG_REWARD_INVALID, NAN},
        {"{\"id\": 5, \"results\": [true]}", TG_OK, TG_REWARD_INVALID, NAN},
        {"{\"id\": 5, \"results\": [{}]}", TG_OK, TG_REWARD_INVALID, NAN},
        {"{\"id\": 5, \"results\": [NaN]}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"results\": [1e999]}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"results\": []}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"results\": [1, 2]}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"results\": 1}", TG_DATA, 0, 0},
        {"{\"id\": 5}", TG_DATA, 0, 0},
        {"{\"id\": 6, \"results\": [1]}", TG_DATA, 0, 0},
        {"{\"results\": [1]}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"id\": 5, \"results\": [1]}", TG_DATA, 0, 0},
        {"{\"id\": 5, \"error\": \"no model\"}", TG_UNAVAILABLE, 0, 0},
        {"[0.5]", TG_DATA, 0, 0},
        {"", TG_DATA, 0, 0},
        {"{\"id\": 5, \"results\": [{\"value\": 1, \"components\": [1]}]}", TG_DATA, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arena arena = {0};
        tg_error err = {0};
        tg_score_result r = {0};
        uint64_t id = 5;
        tg_status st =
            tg_score_json_read(cases[i].text, strlen(cases[i].text), &id, 1, &r, &arena, &err);
        tg_check(st == cases[i].want, __FILE__, __LINE__, "%s: %s", cases[i].text, err.msg);
        if (st == TG_OK) {
            CHECK_EQ(r.status, cases[i].status);
            CHECK(isnan(cases[i].value) ? isnan(r.value) : r.value == cases[i].value);
        } else {
            CHECK(err.msg[0]);
        }
        tg_arena_fini(&arena);
    }
}

TEST(components_of_a_reply) {
    const char *text =
        "{\"results\": [{\"value\": 1, \"components\": {\"a\": 0.25, \"b\": null}}, 3]}";
    tg_arena arena = {0};
    tg_error err = {0};
    tg_score_result r[2] = {{0}};
    REQUIRE_OK(tg_score_json_read(text, strlen(text), NULL, 2, r, &arena, &err));
    REQUIRE(r[0].n_components == 2 && r[1].n_components == 0);
    CHECK_STR(r[0].components[0].name, "a");
    CHECK_NEAR(r[0].components[0].value, 0.25, 0);
    CHECK_EQ(r[0].components[1].status, TG_REWARD_INVALID);
    tg_arena_fini(&arena);
}

TEST(figures) {
    tg_score_stats s = {.calls = 3, .seconds = 1.5};
    tg_stats *to = tg_stats_create();
    tg_buf out = {0};
    REQUIRE(to);
    s.results[TG_REWARD_FAILED] = 7;
    tg_score_stats_show(&s, "a,b", to);
    s.calls = 4;
    tg_score_stats_show(&s, "a,b", to);
    tg_stats_write(to, &out);
    CHECK(strstr(out.data, "textgen_reward_fn_results_total{fn=\"a_b\",status=\"failed\"} 7\n"));
    CHECK(strstr(out.data, "textgen_reward_fn_calls_total{fn=\"a_b\"} 4\n"));
    CHECK(strstr(out.data, "textgen_reward_fn_call_seconds_total{fn=\"a_b\"} 1.5\n"));
    CHECK(strstr(out.data, "# TYPE textgen_reward_fn_queue_depth gauge\n"));
    tg_buf_fini(&out);
    tg_stats_destroy(&to);
}

TEST_MAIN
