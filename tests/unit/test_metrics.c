/* Lexical metrics against values of their reference implementations (tests/golden/metrics, made by tests/oracle/gen_metrics.py). */
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
        for (size_t i = 0; i < json_array_size(samples) && i < v->n_samples; i++)
            tg_check(fabs(v->samples[i] - json_number_value(json_array_get(samples, i))) <= 1e-12,
                     __FILE__, __LINE__, "%s of %s, item %zu: %.17g != %.17g", key, id, i,
                     v->samples[i], json_number_value(json_array_get(samples, i)));
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

TEST_MAIN
