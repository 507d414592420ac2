/* What goldens do not show: errors, definitions by hand, work that fails for want of memory. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/meteor.h"
#include "env-server/metric/moses.h"
#include "env-server/metric/totto.h"
#include "env-server/metric/wordnet.h"
#include "env-server/reward/common_gen.h"
#include "env-server/reward/shaping.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>

static const char *done(tg_buf *b) {
    tg_buf_putc(b, 0);
    return b->data;
}

static const char *detokenized(const char *text) {
    static tg_buf b;
    tg_buf_reset(&b);
    tg_moses_detokenize(&b, text, strlen(text));
    return done(&b);
}

static const char *split_13a(const char *text) {
    static tg_buf b;
    tg_buf_reset(&b);
    tg_moses_13a(&b, text, strlen(text));
    return done(&b);
}

TEST(moses_moves_punctuation_to_its_words) {
    CHECK_STR(detokenized("Hello , world !"), "Hello, world!");
    CHECK_STR(detokenized("he said \" yes \" ( no ) ."), "he said \"yes\" (no).");
    CHECK_STR(detokenized("the dogs ' house is john 's"), "the dogs' house is john's");
    CHECK_STR(detokenized("a @-@ b &amp; c &lt; d"), "a-b & c < d");
    CHECK_STR(detokenized("$ 5 and € 6 %"), "$5 and €6%");
    CHECK_STR(detokenized("  two  spaces "), "two spaces");
    CHECK_STR(detokenized(""), "");
    CHECK_STR(detokenized("中 文 ok 字"), "中文 ok 字");
}

TEST(words_of_13a) {
    CHECK_STR(split_13a("Hello, world! 3.5 1,000 a.b 5-6"),
              "Hello , world ! 3.5 1,000 a . b 5 - 6");
    CHECK_STR(split_13a("&quot;x&quot; -\ny <skipped>z"), "\" x \" y z");
    CHECK_STR(split_13a(""), "");
    CHECK_STR(split_13a("...,!"), ". . . , !");
}

TEST(the_penalty_and_the_cover) {
    tg_error err = {0};
    double v = 9;
    const char *prompt = "generate a sentence with: dog run.";
    CHECK_OK(tg_repeat_penalty(prompt, "The DOG RUN away", 16, &v, &err));
    CHECK_EQ(v, -1);
    CHECK_OK(tg_repeat_penalty(prompt, "A dog was away", 14, &v, &err));
    CHECK_EQ(v, 0);
    CHECK_OK(tg_repeat_penalty(prompt, "Sentence", 8, &v, &err));
    CHECK_EQ(v, -1);
    CHECK_EQ(tg_repeat_penalty("dog run", "x", 1, &v, &err), TG_DATA);
    CHECK_OK(tg_concept_cover(prompt, "the dogs were running", 21, &v, &err));
    CHECK_NEAR(v, 1, 0);
    CHECK_OK(tg_concept_cover("dog run swim", "a dog", 5, &v, &err));
    CHECK_NEAR(v, 1.0 / 3, 1e-15);
    CHECK_OK(tg_concept_cover("", "a dog", 5, &v, &err));
    CHECK_EQ(v, 0);
}

TEST(wordnet_that_is_not_there_names_the_package) {
    tg_wordnet *w;
    tg_error err = {0};
    CHECK_EQ(tg_wordnet_open(&w, tg_test_tmpdir(), TG_NLTK_CURRENT, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "wordnet-base") != NULL);
}

static bool count(void *arg, const char *name, size_t len) {
    (void)name;
    *(size_t *)arg += len > 0;
    return true;
}

TEST(files_that_are_not_wordnet_do_no_harm) {
    static const char *const names[] = {"index.noun", "index.verb", "index.adj", "index.adv",
                                        "data.noun",  "data.verb",  "data.adj",  "data.adv",
                                        "noun.exc",   "verb.exc",   "adj.exc",   "adv.exc"};
    static const char junk[] = "dog n 99999999 77777 @ ~ 9 9 0 1 2 00000003 99999999999999999999\n"
                               "cat n zz\nmouse\n\n dog\nmice mouse mouse\n00 01 n ff a 0 b";
    tg_error err = {0};
    tg_wordnet *w = NULL;
    const char *dir = tg_test_tmpdir();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        CHECK_OK(tg_file_write_atomic(path, junk, sizeof junk - 1, &err));
    }
    CHECK_OK(tg_wordnet_open(&w, dir, TG_NLTK_3_7, &err));
    size_t n = 0;
    tg_wordnet_synonyms(w, "dog", 3, count, &n);
    tg_wordnet_synonyms(w, "mice", 4, count, &n);
    tg_wordnet_synonyms(w, "cats", 4, count, &n);
    tg_wordnet_synonyms(w, "sssssssssssssssssssssssssssssss", 31, count, &n);
    CHECK(n < 1000);
    tg_wordnet_close(&w);
}

static const tg_splitter spaces = {0};

static tg_metric_item item_of(tg_sample *s, const char **refs, size_t n, const char *text) {
    *s = (tg_sample){
        .id = "7", .prompt_text = "", .meta_json = "", .references = refs, .n_references = n};
    return (tg_metric_item){s, text, strlen(text)};
}

TEST(frequencies_from_a_file_give_single_texts_a_value) {
    char path[600];
    tg_error err = {0};
    tg_sample s;
    tg_cider_df *df = NULL;
    double v = 0;
    const char *refs[] = {"a dog runs"};
    tg_metric_item item = item_of(&s, refs, 1, "a dog runs");
    CHECK_OK(tg_cider_score(&item, 1, &spaces, NULL, 1, &v, &err));
    CHECK_EQ(v, 0); /* alone, every n-gram is in every sample */
    snprintf(path, sizeof path, "%s/df", tg_test_tmpdir());
    static const char lines[] = "[\"a dog runs\", \"the dog\"]\na cat sits\n[\"x y z w\"]\n";
    CHECK_OK(tg_file_write_atomic(path, lines, sizeof lines - 1, &err));
    CHECK_OK(tg_cider_df_read(&df, path, &spaces, &err));
    CHECK_OK(tg_cider_score(&item, 1, &spaces, df, 1, &v, &err));
    CHECK_NEAR(v, 7.5, 1e-12); /* three of four orders agree fully, the text has no 4-gram */
    tg_cider_df_destroy(&df);
    CHECK_OK(tg_file_write_atomic(path, "ok\n[1]\n", 7, &err));
    CHECK_EQ(tg_cider_df_read(&df, path, &spaces, &err), TG_DATA);
    CHECK(strstr(err.msg, "df:2: ") != NULL);
    CHECK_OK(tg_file_write_atomic(path, "", 0, &err));
    CHECK(tg_cider_df_read(&df, path, &spaces, &err) != TG_OK);
}

TEST(n_grams_have_numbers) {
    tg_error err = {0};
    tg_grams g = {0};
    CHECK_EQ(tg_grams_find(&g, 0, 3), TG_GRAMS_NONE);
    for (uint32_t w = 0; w < 5000; w++) { /* grows several times */
        uint32_t nodes[] = {0, 0}, words[] = {w % 1700, w % 1700};
        CHECK_OK(tg_grams_extend(&g, nodes, words, 2, &err));
        CHECK_EQ(nodes[0], 1 + w % 1700);
        CHECK_EQ(nodes[1], nodes[0]);
    }
    uint32_t pair[] = {tg_grams_find(&g, 0, 7)}, word[] = {9};
    CHECK_OK(tg_grams_extend(&g, pair, word, 1, &err));
    CHECK_EQ(pair[0], 1701);
    CHECK_EQ(tg_grams_find(&g, 8, 9), 1701);
    CHECK_EQ(tg_grams_find(&g, 9, 8), TG_GRAMS_NONE);
    CHECK_EQ(g.count, 1702);
    tg_grams_fini(&g);
}

enum { MANY = 700, LONGEST = 40 };

/* Random texts of few words, with empty ones among them, and samples without references. */
static void random_items(tg_metric_item *items, tg_sample *samples, const char *(*refs)[3]) {
    static char texts[4 * MANY][LONGEST * 4];
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < 4 * MANY; i++) {
        size_t at = 0;
        for (uint64_t n = tg_rng_below(&r, LONGEST); n > 0; n--)
            at += (size_t)sprintf(texts[i] + at, "%u ", (unsigned)tg_rng_below(&r, 60));
    }
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < 3; k++) refs[i][k] = texts[4 * i + 1 + k];
        items[i] = item_of(&samples[i], refs[i], (size_t)(i % 4), texts[4 * i]);
    }
}

TEST(cider_has_the_same_bits_for_any_number_of_threads) {
    static tg_metric_item items[MANY];
    static tg_sample samples[MANY];
    static const char *refs[MANY][3];
    static double one[MANY], more[MANY];
    char path[600];
    tg_error err = {0};
    tg_cider_df *df[2] = {NULL, NULL};
    random_items(items, samples, refs);
    snprintf(path, sizeof path, "%s/some", tg_test_tmpdir());
    static const char lines[] = "1 2 3 4 5\n[\"7 8 9\", \"1 2\"]\n2 3 8\n";
    CHECK_OK(tg_file_write_atomic(path, lines, sizeof lines - 1, &err));
    CHECK_OK(tg_cider_df_read(&df[1], path, &spaces, &err));
    for (int d = 0; d < 2; d++) {
        double sum = 0;
        CHECK_OK(tg_cider_score(items, MANY, &spaces, df[d], 1, one, &err));
        for (int i = 0; i < MANY; i++) sum += one[i];
        CHECK(sum > 0);
        for (int threads = 2; threads <= 9; threads += threads == 3 ? 6 : 1) {
            memset(more, 0xff, sizeof more);
            CHECK_OK(tg_cider_score(items, MANY, &spaces, df[d], threads, more, &err));
            CHECK(!memcmp(one, more, sizeof one));
        }
    }
    for (int64_t k = 0; k < 120; k++) {
        tg_alloc_fail_after(k);
        tg_status st = tg_cider_score(items, MANY, &spaces, df[k % 2], 3, more, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
    }
    tg_cider_df_destroy(&df[1]);
}

TEST(a_table_is_needed) {
    tg_error err = {0};
    tg_sample s;
    tg_totto t = {0};
    tg_metric_item item = item_of(&s, NULL, 0, "x");
    CHECK_EQ(tg_totto_read(&t, &item, &err), TG_DATA);
    s.meta_json = "{\"raw_table\": {\"table\": 7}}";
    CHECK_EQ(tg_totto_read(&t, &item, &err), TG_DATA);
    s.meta_json = "{\"raw_table\": {\"table\": [[{\"value\": \"a b\"}, 3], null], "
                  "\"highlighted_cells\": [[0, 0], [9, -1], 5, [0]]}}";
    CHECK_OK(tg_totto_read(&t, &item, &err));
    tg_parent p;
    CHECK_OK(tg_totto_parent(&t, &p, &err));
    CHECK(isfinite(p.f));
    tg_totto_fini(&t);
}

TEST(shaping_functions_are_looked_up) {
    tg_error err = {0};
    tg_reward r;
    const tg_open_context ctx = {0};
    CHECK_OK(tg_shaping_open(&r, NULL, &ctx, &err));
    CHECK(!r.ops);
    CHECK_EQ(tg_shaping_open(&r, "nonsense", &ctx, &err), TG_CONFIG);
    CHECK_EQ(tg_shaping_open(&r, "bleurt", &ctx, &err), TG_NOINPUT);       /* needs a model */
    CHECK(tg_shaping_open(&r, "increasing_numbers", &ctx, &err) != TG_OK); /* needs an option */
    CHECK_OK(tg_shaping_open(&r, "sentences_with_dates", &ctx, &err));
    tg_reward_input in = {.text = "2020-01-02", .text_len = 10, .done = true};
    tg_reward_value v = {TG_REWARD_OK, 2};
    CHECK_OK(tg_shaping_add(&r, &in, 1, &v, &err));
    CHECK_EQ(v.value, 3);
    tg_reward_close(&r);
}

TEST(memory_may_run_out_anywhere) {
    const char *refs[] = {"the cats were running home", "a feline jogs"};
    for (int64_t k = 0; k < 400; k += k < 80 ? 1 : 17) {
        tg_error err = {0};
        tg_sample s;
        tg_metric_item item = item_of(&s, refs, 2, "the cat runs to its house");
        s.meta_json = "{\"raw_table\": {\"table\": [[{\"value\": \"cat\"}]], "
                      "\"highlighted_cells\": [[0, 0]]}}";
        tg_meteor *m = NULL;
        tg_meteor_work w = {0};
        tg_totto t = {0};
        tg_parent p;
        double v;
        tg_alloc_fail_after(k);
        tg_status a = tg_meteor_create(&m, false, &err);
        if (a == TG_OK) a = tg_meteor_sample(m, &w, item.text, item.text_len, &s, &v, &err);
        tg_alloc_fail_after(k);
        tg_status b = tg_totto_read(&t, &item, &err);
        if (b == TG_OK) b = tg_totto_parent(&t, &p, &err);
        tg_alloc_fail_after(k);
        tg_status c = tg_cider_score(&item, 1, &spaces, NULL, 1, &v, &err);
        tg_alloc_fail_after(-1);
        CHECK((a == TG_OK || a == TG_NOMEM) && (b == TG_OK || b == TG_NOMEM || b == TG_DATA) &&
              (c == TG_OK || c == TG_NOMEM));
        tg_meteor_work_fini(&w);
        tg_meteor_destroy(&m);
        tg_totto_fini(&t);
    }
}
TEST_MAIN
