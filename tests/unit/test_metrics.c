/* Lexical metrics against values of their reference implementations (tests/golden/metrics, made by tests/oracle/gen_metrics.py). */
#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "env-server/metric/lcs.h"
#include "env-server/metric/porter.h"
#include "env-server/metric/pyrepr.h"
#include "tests/support/scoring.h"
#include "tests/support/tg_test.h"

TEST(stems) {
    json_t *rows = json_load_file(tg_test_path("golden/metrics/stems.json"), 0, NULL), *row;
    REQUIRE(rows);
    static const tg_porter_mode modes[] = {TG_PORTER_NLTK, TG_PORTER_ORIGINAL, TG_PORTER_MARTIN};
    size_t i;
    json_array_foreach(rows, i, row) for (size_t m = 0; m < 3; m++) {
        char word[64];
        snprintf(word, sizeof word, "%s", json_string_value(json_array_get(row, 0)));
        word[tg_porter_stem(word, strlen(word), modes[m])] = 0;
        CHECK_STR(word, json_string_value(json_array_get(row, m + 1)));
    }
    CHECK(i > 900);
    json_decref(rows);
}

/* The table of the definition, walked back as ROUGE does. */
static size_t slow_mark(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b,
                        uint8_t *mask) {
    static size_t t[201][201];
    for (size_t i = 0; i <= n_a; i++)
        for (size_t j = 0; j <= n_b; j++)
            t[i][j] = !i || !j                    ? 0
                      : a[i - 1] == b[j - 1]      ? t[i - 1][j - 1] + 1
                      : t[i - 1][j] > t[i][j - 1] ? t[i - 1][j]
                                                  : t[i][j - 1];
    for (size_t i = n_a, j = n_b; i && j;) {
        if (a[i - 1] == b[j - 1])
            mask[--i] = 1, j--;
        else if (t[i][j - 1] > t[i - 1][j])
            j--;
        else
            i--;
    }
    return t[n_a][n_b];
}

TEST(lcs_is_the_table) {
    tg_lcs l = {0};
    uint32_t a[200], b[200];
    uint8_t fast[200], slow[200];
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    for (int round = 0; round < 400; round++) {
        size_t n_a = tg_rng_below(&r, 200), n_b = tg_rng_below(&r, 200), n;
        uint32_t ids = 1 + (uint32_t)tg_rng_below(&r, round % 2 ? 4 : 60);
        for (size_t i = 0; i < n_a; i++) a[i] = (uint32_t)tg_rng_below(&r, ids);
        for (size_t i = 0; i < n_b; i++) b[i] = (uint32_t)tg_rng_below(&r, ids);
        memset(fast, 0, sizeof fast);
        memset(slow, 0, sizeof slow);
        size_t want = slow_mark(a, n_a, b, n_b, slow);
        REQUIRE(tg_lcs_length(&l, a, n_a, b, n_b, ids, &n));
        CHECK_EQ(n, want);
        REQUIRE(tg_lcs_mark(&l, a, n_a, b, n_b, ids, fast));
        CHECK(!memcmp(fast, slow, sizeof fast));
    }
    tg_lcs_fini(&l);
}

TEST(python_lists) {
    tg_buf b = {0};
    const char *texts[] = {"A boy runs.", "it's", "\"it's\"", "tab\t\n\r\\ é \x01\x7f",
                           "\xc2\xa0\xe2\x80\x8b😀\xf3\xa0\x80\x81"};
    tg_py_repr_list(&b, texts, 5);
    CHECK_STR(b.data, "['A boy runs.', \"it's\", '\"it\\'s\"', 'tab\\t\\n\\r\\\\ é \\x01\\x7f', "
                      "'\\xa0\\u200b😀\\U000e0001']");
    tg_buf_reset(&b);
    tg_py_repr_list(&b, NULL, 0);
    CHECK_STR(b.data, "[]");
    tg_buf_fini(&b);
}

static size_t load_items(const json_t *list, tg_metric_item *items, tg_arena *arena) {
    size_t i;
    json_t *object;
    json_array_foreach(list, i, object) items[i] = scoring_item(object, arena);
    return i;
}

static void check_case(const json_t *g, const json_t *c) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_metric_item items[64];
    tg_metric_out out = {.arena = &arena};
    const char *id = json_string_value(json_object_get(c, "metric")),
               *key = json_string_value(json_object_get(c, "key"));
    const json_t *samples = json_object_get(c, "samples"), *corpus = json_object_get(c, "corpus");
    size_t n = load_items(json_object_get(g, json_string_value(json_object_get(c, "items"))), items,
                          &arena);
    CHECK_OK(scoring_metric(id, json_object_get(c, "args"), false, items, n, &out, &err));
    const tg_metric_value *v = scoring_value(&out, key);
    if (tg_check(v != NULL, __FILE__, __LINE__, "%s gives %s: %s", id, key,
                 out.n ? out.values[0].error : "nothing")) {
        for (size_t i = 0; i < json_array_size(samples) && i < v->n_samples; i++) {
            const json_t *want = json_array_get(samples, i); /* null: not defined */
            bool same = json_is_null(want) ? isnan(v->samples[i])
                                           : fabs(v->samples[i] - json_number_value(want)) <= 1e-12;
            tg_check(same, __FILE__, __LINE__, "%s of %s, item %zu: %.17g != %.17g", key, id, i,
                     v->samples[i], json_number_value(want));
        }
        if (json_is_array(samples)) CHECK_EQ(v->n_samples, n);
        if (json_is_number(corpus))
            tg_check(fabs(v->corpus - json_number_value(corpus)) <= 1e-12, __FILE__, __LINE__,
                     "%s of %s: %.17g != %.17g", key, id, v->corpus, json_number_value(corpus));
    }
    tg_arena_fini(&arena);
}

TEST(reference_values) {
    json_t *g = json_load_file(tg_test_path("golden/metrics/cases.json"), 0, NULL), *c;
    REQUIRE(g);
    size_t i;
    json_array_foreach(json_object_get(g, "cases"), i, c) check_case(g, c);
    CHECK(i > 0);
    json_decref(g);
}

/* ---- quirks of RL4LMs, and rewards ------------------------------------------------------------- */

static const char *two_refs[] = {"a cat sat", "the cat sat down"};
static const tg_sample with_two = {.id = "x",
                                   .references = two_refs,
                                   .n_references = 2,
                                   .prompt_text = "",
                                   .meta_json = ""},
                       without = {.id = "y", .prompt_text = "", .meta_json = ""};

static const tg_metric_value *value_of(const char *id, const char *args, bool compat,
                                       const tg_sample *sample, const char *text, tg_arena *arena) {
    static tg_metric_out out;
    tg_error err = {0};
    tg_metric_item item = {sample, text, strlen(text)};
    json_t *options = json_loads(args, 0, NULL);
    out = (tg_metric_out){.arena = arena};
    CHECK_OK(scoring_metric(id, options, compat, &item, 1, &out, &err));
    json_decref(options);
    return out.n ? &out.values[0] : NULL;
}

TEST(compat_shows_the_list_of_references) {
    tg_arena arena = {0};
    /* "['a cat sat', 'the cat sat down']" has seven words; the text's three are among them */
    const tg_metric_value *v =
        value_of("rouge", "{\"use_single_ref\": false}", true, &with_two, "the cat sat", &arena);
    REQUIRE(v);
    CHECK_STR(v->key, "lexical/rouge_rouge1");
    CHECK_NEAR(v->corpus, 0.6, 1e-12);
    CHECK(!v->samples);
    v = value_of("rouge", "{\"use_single_ref\": false}", false, &with_two, "the cat sat", &arena);
    CHECK_NEAR(v->corpus, 6.0 / 7, 1e-12);
    CHECK_EQ(v->n_samples, 1);
    tg_arena_fini(&arena);
}

TEST(what_has_no_value_says_so) {
    tg_arena arena = {0};
    const tg_metric_value *v = value_of("bleu", "{}", false, &with_two, " ", &arena);
    CHECK(!v->has_corpus && strstr(v->error, "no words"));
    CHECK_STR(v->key, "lexical/bleu");
    v = value_of("bleu", "{}", true, &with_two, " ", &arena);
    CHECK(!v->has_corpus);
    CHECK_STR(v->error, "n/a");
    static const char *const all[] = {"rouge", "bleu", "google_bleu", "sacre_bleu",
                                      "chrf",  "ter",  "rouge_l_max"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        v = value_of(all[i], "{}", false, &without, "text", &arena);
        CHECK(!v->has_corpus && strstr(v->error, "no reference"));
    }
    tg_arena_fini(&arena);
}

TEST(compat_needs_equally_many_references) {
    static const char *const ids[] = {"sacre_bleu", "chrf", "ter"};
    tg_sample one = with_two;
    one.n_references = 1;
    tg_metric_item items[] = {{&with_two, "a", 1}, {&one, "b", 1}};
    for (int i = 0; i < 6; i++) {
        tg_arena arena = {0};
        tg_error err = {0};
        tg_metric_out out = {.arena = &arena};
        CHECK_OK(scoring_metric(ids[i / 2], NULL, i % 2, items, 2, &out, &err));
        CHECK_EQ(out.values[0].has_corpus, !(i % 2));
        tg_arena_fini(&arena);
    }
}

static tg_reward_value reward_of(const char *id, const char *args, bool compat,
                                 const tg_sample *sample, const char *text, bool done) {
    tg_error err = {0};
    tg_reward_value v = {0};
    tg_metric_item item = {sample, text, strlen(text)};
    json_t *options = json_loads(args, 0, NULL);
    CHECK_OK(scoring_reward(id, options, compat, &item, 1, &done, &v, &err));
    json_decref(options);
    return v;
}

TEST(rewards_are_the_metrics_of_one_text) {
    static const struct {
        const char *id, *args, *metric, *metric_args;
    } rows[] = {
        {"rouge", "{\"rouge_type\": \"rouge1\"}", "rouge", "{}"},
        {"bleu", "{}", "bleu", "{}"},
        {"sacre_bleu", "{\"tokenize\": \"intl\"}", "sacre_bleu", "{\"tokenize\": \"intl\"}"},
        {"ter", "{}", "ter", "{}"},
        {"chrf", "{}", "chrf", "{}"},
        {"rouge_l_max", "{}", "rouge_l_max", "{}"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tg_arena arena = {0};
        const char *text = "the cat sat down, Running";
        tg_reward_value v = reward_of(rows[i].id, rows[i].args, false, &with_two, text, true);
        double want =
            value_of(rows[i].metric, rows[i].metric_args, false, &with_two, text, &arena)->corpus;
        CHECK_EQ(v.status, TG_REWARD_OK);
        CHECK_NEAR(v.value, strcmp(rows[i].id, "ter") ? want : 1 - want, 1e-15);
        v = reward_of(rows[i].id, rows[i].args, false, &with_two, text, false);
        CHECK(v.status == TG_REWARD_OK && v.value == 0);
        CHECK_EQ(reward_of(rows[i].id, rows[i].args, false, &without, text, true).status,
                 TG_REWARD_INVALID);
        tg_arena_fini(&arena);
    }
    tg_reward_value v = reward_of("rouge_combined", "{}", false, &with_two, "a cat sat", true);
    CHECK_NEAR(v.value, 1, 1e-15);
    v = reward_of("bleu", "{}", false, &with_two, "", true);
    CHECK(v.status == TG_REWARD_OK && v.value == 0);
    CHECK_EQ(reward_of("bleu", "{}", true, &with_two, "", true).status, TG_REWARD_INVALID);
}

TEST(out_of_memory_is_said) {
    static const char *const ids[] = {"rouge", "bleu", "google_bleu", "sacre_bleu",
                                      "chrf",  "ter",  "rouge_l_max"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        bool ended = false;
        for (int64_t k = 0; k < 400 && !ended; k++) {
            tg_arena arena = {0};
            tg_error err = {0};
            tg_metric_out out = {.arena = &arena};
            tg_metric_item item = {&with_two, "the cat sat: naïve", strlen("the cat sat: naïve")};
            const tg_metric_ops *ops =
                (const tg_metric_ops *)tg_registry_find(tg_metric_registry(), ids[i]);
            char options[256] = {0};
            tg_metric m = {0};
            CHECK_OK(tg_opts_read(ops->entry.options, options, NULL, "args", &arena, &err));
            tg_alloc_fail_after(k);
            tg_status st = tg_metric_open(&m, ops, options, NULL, &err);
            if (st == TG_OK)
                st = tg_metric_compute(&m, &(tg_metric_input){&item, 1, TG_SPLIT_TEST, 0}, &out,
                                       &err);
            tg_alloc_fail_after(-1);
            CHECK(st == TG_OK || st == TG_NOMEM);
            ended = st == TG_OK;
            tg_metric_close(&m);
            tg_arena_fini(&arena);
        }
        CHECK(ended);
    }
}

TEST_MAIN
