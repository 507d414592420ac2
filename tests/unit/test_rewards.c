/* The two synthetic rewards and metrics against Python's rules and RL4LMs's recorded values. */
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/dates.h"
#include "env-server/reward/increasing_numbers.h"
#include "env-server/reward/pytext.h"
#include "env-server/reward/reward.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdlib.h>

static bool py_float(const char *word, double *out) {
    bool is_number = false;
    tg_error err = {0};
    CHECK_OK(tg_py_float(word, strlen(word), &is_number, out, &err));
    return is_number;
}

static double increasing(const char *text, int64_t min_tokens) {
    double v = -1;
    tg_error err = {0};
    CHECK_OK(tg_increasing_numbers(text, strlen(text), min_tokens, &v, &err));
    return v;
}

TEST(python_float_accepts) {
    static const struct {
        const char *word;
        double value;
    } good[] = {
        {"1", 1},
        {"-1.5", -1.5},
        {"+.5", .5},
        {"5.", 5},
        {"1e5", 1e5},
        {"1E-3", 1e-3},
        {"1_000", 1000},
        {"1_0e1_0", 10e10},
        {"1_0.0_1", 10.01},
        {"inf", (double)INFINITY},
        {"-Infinity", -(double)INFINITY},
        {"INF", (double)INFINITY},
        {"1e999", (double)INFINITY},
        {"١٢", 12},     /* Arabic-Indic digits */
        {"１.５", 1.5}, /* fullwidth digits, ASCII point */
        {"𝟙𝟚", 12},     /* mathematical double-struck digits */
        {"0000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0000000000000000000000000000000000000000000000000000000000000000000000000000000000007",
         7}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double v = 0;
        tg_check(py_float(good[i].word, &v) && v == good[i].value, __FILE__, __LINE__, "%s: %g",
                 good[i].word, v);
    }
    double v = 0;
    CHECK(py_float("nan", &v) && isnan(v));
    CHECK(py_float("-NaN", &v) && isnan(v));
}

TEST(python_float_refuses) {
    static const char *const bad[] = {"",    "_1",   "1_",  "1__0",   "1_.5",  "1._5", "1e",
                                      "1e+", "e5",   ".",   "+",      "0x10",  "1,5",  "1-",
                                      "--1", "infx", "in",  "nan(1)", "1e_5",  "1e5_", "_",
                                      "½",   "²",    "1٫5", "١_",     "1\xff", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v;
        tg_check(!py_float(bad[i], &v), __FILE__, __LINE__, "%s was taken", bad[i]);
    }
    bool is_number = true;
    double v;
    tg_error err = {0};
    CHECK_OK(tg_py_float("1\0002", 3, &is_number, &v, &err)); /* a NUL inside is no number */
    CHECK(!is_number);
}

TEST(python_split) {
    static const char text[] = " a\xc2\xa0"
                               "b\xe3\x80\x80"
                               "c\x1c"
                               "d\t\n\xe2\x80\xa8"
                               "e\xe2\x80\x8b"
                               "f ";
    const char *const words[] = {"a", "b", "c", "d",
                                 ("e\xe2\x80\x8b"
                                  "f")}; /* U+200B is no space */
    size_t len, n = 0;
    const char *word;
    for (tg_py_walk walk = tg_py_words(text, sizeof text - 1); tg_py_next(&walk, &word, &len);) {
        if (n < 5) CHECK(len == strlen(words[n]) && !memcmp(word, words[n], len));
        n++;
    }
    CHECK_EQ(n, 5);
}

/* Texts longer than a block of 64 bytes, against a look at one character after the other. */
TEST(python_split_long) {
    static const char *const pieces[] = {" ",
                                         "a",
                                         "bc",
                                         "\xc2\xa0",
                                         "\xc3\xa9",
                                         "\xe2\x80\x83",
                                         "\xe2\x80\x99",
                                         "\xe1\x9a",
                                         "\xf0\x9f\x98",
                                         "\n",
                                         "\x1f",
                                         "\xff",
                                         "longer",
                                         "\xe3\x80\x80"};
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    for (int round = 0; round < 2000; round++) {
        tg_buf text = {0};
        for (uint64_t k = tg_rng_below(&r, 60); k-- > 0;)
            tg_buf_puts(&text, pieces[tg_rng_below(&r, sizeof pieces / sizeof *pieces)]);
        tg_py_walk walk = tg_py_words(text.data, text.len);
        const char *word = NULL;
        size_t n = 0, bytes, start = 0;
        for (size_t at = 0; at <= text.len; at += bytes) {
            bytes = 1;
            bool ends =
                at == text.len || tg_py_isspace(tg_py_char(text.data + at, text.len - at, &bytes));
            if (!ends) continue;
            if (at > start) {
                CHECK(tg_py_next(&walk, &word, &n));
                CHECK(word == text.data + start && n == at - start);
            }
            start = at + bytes;
        }
        CHECK(!tg_py_next(&walk, &word, &n));
        tg_buf_fini(&text);
    }
}

TEST(increasing_numbers_cases) {
    CHECK_NEAR(increasing("1 2 3", 20), 0.3, 0);
    CHECK_NEAR(increasing("1 2 2 3", 2), 0.5, 0);
    CHECK_NEAR(increasing("1 a 2 b 1 9", 20), 0.2, 0);
    CHECK_NEAR(increasing("nan 1 2", 2), 1.0 / 3, 0);
    CHECK_NEAR(increasing("-inf 1 inf inf", 2), 0.75, 0);
    CHECK_NEAR(increasing("words only", 20), 0, 0);
    CHECK_NEAR(increasing("", 20), 0, 0);
    CHECK_NEAR(increasing("1 2 3", 7), 3 / 3.5, 0); /* half of an odd number is not rounded */
}

TEST(dates_cases) {
    static const char *const with[] = {"2020-01-02", "x92020-01-023", "2020-2020-01-02",
                                       "٢٠٢٠-٠١-٠٢", "1 2020-01-0 3333-44-55"};
    static const char *const without[] = {"",          "2020-1-02",  "2020-01-2",
                                          "202-01-02", "2020‐01‐02", "2020-01 -02"};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        CHECK(tg_date_in_text(with[i], strlen(with[i])));
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        CHECK(!tg_date_in_text(without[i], strlen(without[i])));
}

static double reward_of(const char *id, int64_t min_tokens, const char *text, bool done) {
    tg_error err = {0};
    const tg_reward_ops *ops = (const tg_reward_ops *)tg_registry_find(tg_reward_registry(), id);
    tg_reward r;
    tg_reward_value v = {0};
    if (!CHECK(ops && ops->entry.built)) return -1;
    CHECK_OK(tg_reward_open(&r, ops, &min_tokens, NULL, &err)); /* the only option of both */
    tg_reward_input in = {.text = text, .text_len = strlen(text), .done = done};
    CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
    CHECK_EQ(v.status, TG_REWARD_OK);
    tg_reward_close(&r);
    return v.value;
}

TEST(recorded_rewards) {
    json_t *g = json_load_file(tg_test_path("golden/env/rewards.json"), 0, NULL), *row;
    REQUIRE(g);
    size_t i;
    json_array_foreach(json_object_get(g, "rows"), i, row) {
        const char *text = json_string_value(json_object_get(row, "prediction"));
        double inc = json_number_value(json_object_get(row, "increasing_numbers"));
        double date = json_number_value(json_object_get(row, "sentences_with_dates"));
        CHECK_NEAR(reward_of("increasing_numbers", 20, text, true), inc, 0);
        CHECK_NEAR(reward_of("increasing_numbers", 20, text, false), 0, 0);
        CHECK_NEAR(reward_of("sentences_with_dates", 0, text, true), date, 0);
        CHECK_NEAR(reward_of("sentences_with_dates", 0, text, false), 0, 0);
    }
    CHECK(i > 50);
    json_decref(g);
}

TEST(recorded_outputs) {
    json_t *g = json_load_file(tg_test_path("golden/env/outputs.json"), 0, NULL), *row;
    REQUIRE(g);
    size_t i;
    json_array_foreach(g, i, row) {
        const json_t *reward = json_object_get(row, "reward");
        const char *id = json_string_value(json_object_get(reward, "id"));
        int64_t min_tokens =
            json_integer_value(json_object_get(json_object_get(reward, "args"), "min_tokens"));
        const char *text = json_string_value(json_object_get(row, "output"));
        CHECK_NEAR(reward_of(id, min_tokens, text, true),
                   json_number_value(json_object_get(row, "value")), 0);
    }
    CHECK(i > 50);
    json_decref(g);
}

static void check_metric(const char *id, const char *key, const json_t *corpus,
                         const tg_metric_item *items, size_t n) {
    tg_error err = {0};
    tg_arena arena = {0};
    int64_t min_tokens = 20;
    tg_metric m;
    tg_metric_out out = {.arena = &arena};
    const tg_metric_ops *ops = (const tg_metric_ops *)tg_registry_find(tg_metric_registry(), id);
    REQUIRE_OK(tg_metric_open(&m, ops, &min_tokens, NULL, &err));
    tg_metric_input in = {.items = items, .n = n, .split = TG_SPLIT_TEST};
    CHECK_OK(tg_metric_compute(&m, &in, &out, &err));
    REQUIRE(out.n == 1 && out.values[0].n_samples == n);
    CHECK_STR(out.values[0].key, key);
    const json_t *want = json_object_get(corpus, key),
                 *individual = json_object_get(want, "individual");
    CHECK_NEAR(out.values[0].corpus, json_number_value(json_object_get(want, "corpus")), 1e-15);
    for (size_t i = 0; i < n; i++)
        CHECK_NEAR(out.values[0].samples[i], json_number_value(json_array_get(individual, i)), 0);
    tg_metric_close(&m);
    tg_arena_fini(&arena);
}

TEST(recorded_metrics) {
    json_t *g = json_load_file(tg_test_path("golden/env/rewards.json"), 0, NULL), *corpus, *text;
    REQUIRE(g);
    size_t i, k;
    json_array_foreach(json_object_get(g, "corpora"), i, corpus) {
        tg_metric_item items[128];
        json_array_foreach(json_object_get(corpus, "predictions"), k, text) if (k < 128) items[k] =
            (tg_metric_item){.text = json_string_value(text), .text_len = json_string_length(text)};
        check_metric("increasing_numbers", "synthetic/increasing_numbers_in_text", corpus, items,
                     k);
        check_metric("dates", "synthetic/dates_in_text", corpus, items, k);
    }
    CHECK(i >= 5);
    json_decref(g);
}

/* ---- what the wrapper does with misbehaving rewards ---------------------------------------- */

static tg_status infinite(const void *state, const tg_reward_input *in, size_t n,
                          tg_reward_value *out, tg_error *err) {
    (void)state, (void)in, (void)err;
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_OK, (double)INFINITY};
    return TG_OK;
}
static tg_status failing(const void *state, const tg_reward_input *in, size_t n,
                         tg_reward_value *out, tg_error *err) {
    (void)state, (void)in;
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_OK, 1};
    return tg_fail(err, TG_UNAVAILABLE, "the scorer is away");
}

TEST(a_failed_reward_is_never_a_number) {
    tg_error err = {0};
    static const tg_reward_ops bad = {.entry = {.name = "bad"}, .score = infinite},
                               gone = {.entry = {.name = "gone"}, .score = failing};
    tg_reward r;
    tg_reward_input in = {.done = true};
    tg_reward_value v;
    REQUIRE_OK(tg_reward_open(&r, &bad, NULL, NULL, &err));
    CHECK_EQ(tg_reward_score(&r, &in, 1, &v, &err), TG_OK);
    CHECK(v.status == TG_REWARD_INVALID && isnan(v.value));
    tg_reward_close(&r);
    REQUIRE_OK(tg_reward_open(&r, &gone, NULL, NULL, &err));
    CHECK_EQ(tg_reward_score(&r, &in, 1, &v, &err), TG_UNAVAILABLE);
    CHECK(v.status == TG_REWARD_FAILED && isnan(v.value));
    tg_reward_close(&r);
}

TEST(a_row_has_all_it_needs) {
    const tg_registry *all[] = {tg_reward_registry(), tg_metric_registry()};
    for (size_t k = 0; k < 2; k++) {
        const tg_entry *e;
        for (size_t i = 0; (e = tg_registry_at(all[k], i)); i++) {
            CHECK(e->summary && e->options);
            CHECK(tg_registry_find(all[k], e->name) == e); /* no name twice */
        }
    }
}

TEST_MAIN
