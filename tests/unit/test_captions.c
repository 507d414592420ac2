/* SPICE, SPIDEr, SARI, self-BLEU, distinct and length, and rewards made of other rewards. */
#include "common/base/alloc.h"
#include "env-server/metric/spice.h"
#include "env-server/reward/inner.h"
#include "tests/support/scoring.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const bool yes[8] = {true, true, true, true, true, true, true, true};

static json_t *parse(const char *text) {
    json_t *v = json_loads(text, 0, NULL);
    CHECK(v);
    return v;
}

/* The corpus value of a key; samples (if not NULL) gets the values of the texts. */
static double value_of(const char *metric, const char *args, const char *texts, const char *key,
                       double *samples) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_metric_out out = {.arena = &arena};
    json_t *list = parse(texts), *options = parse(args);
    tg_metric_item items[8];
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n && i < 8; i++)
        items[i] = scoring_item(json_array_get(list, i), &arena);
    CHECK_OK(scoring_metric(metric, options, false, items, n, &out, &err));
    const tg_metric_value *v = scoring_value(&out, key);
    CHECK(v && v->has_corpus);
    double corpus = v && v->has_corpus ? v->corpus : (double)NAN;
    for (size_t i = 0; samples && v && i < v->n_samples; i++) samples[i] = v->samples[i];
    json_decref(list);
    json_decref(options);
    tg_arena_fini(&arena);
    return corpus;
}

static bool has_tuple(const tg_spice_tuples *t, const char *a, const char *b, const char *c) {
    const char *want[3] = {a, b, c};
    for (size_t i = 0; i < t->n; i++) {
        bool same = true;
        for (int k = 0; k < 3; k++) {
            const char *got = t->v[i].part[k];
            same &= got && want[k] ? !strcmp(got, want[k]) : got == want[k];
        }
        if (same) return true;
    }
    return false;
}

TEST(sentences_become_propositions) {
    tg_spice s;
    tg_error err = {0};
    tg_arena arena = {0};
    tg_spice_tuples t = {.arena = &arena};
    static const char text[] =
        "A young boy is riding two brown horses in the field. The red bus picks up passengers. "
        "A ball is thrown by the man.";
    REQUIRE_OK(tg_spice_open(&s, false, &err));
    CHECK_OK(tg_spice_read(&s, text, sizeof text - 1, &t, &err));
    CHECK(has_tuple(&t, "boy", "young", NULL));
    CHECK(has_tuple(&t, "horse", "brown", NULL));
    CHECK(has_tuple(&t, "horse", "two", NULL));
    CHECK(has_tuple(&t, "boy", "horse", "ride"));
    CHECK(has_tuple(&t, "boy", "field", "ride in"));
    CHECK(has_tuple(&t, "bus", "red", NULL));
    CHECK(has_tuple(&t, "bus", "passenger", "pick up"));
    CHECK(has_tuple(&t, "man", "ball", "throw"));
    CHECK(has_tuple(&t, "field", NULL, NULL));
    tg_arena_fini(&arena);
    tg_spice_close(&s);
}

TEST(scene_graphs_are_compared_by_synset) {
    double v[2];
    double mean = value_of("spice", "{}",
                           "[{\"prediction\": \"a car on the street\", \"references\": [\"an "
                           "automobile on the street\"]},"
                           " {\"prediction\": \"a red dog\", \"references\": [\"two cats\"]}]",
                           "lexical/spice", v);
    CHECK_NEAR(v[0], 1, 1e-12); /* car, street, car on street */
    CHECK_NEAR(v[1], 0, 1e-12);
    CHECK_NEAR(mean, 0.5, 1e-12);
    CHECK_NEAR(value_of("spice", "{}", "[{\"prediction\": \"\", \"references\": [\"\"]}]",
                        "lexical/spice", NULL),
               0, 0);
    value_of(
        "spider", "{\"tokenize\": \"spacy\"}",
        "[{\"prediction\": \"a car on the street\", \"references\": [\"a car on the street\"]},"
        " {\"prediction\": \"dogs\", \"references\": [\"two cats\"]}]",
        "lexical/spider", v);
    CHECK_NEAR(v[0], (1 + 10) / 2.0, 1e-12);
}

TEST(sari_rewards_keeping_deleting_and_adding) {
    static const char texts[] = "[{\"prompt\": \"About 95 species are currently accepted .\","
                                "  \"prediction\": \"About 95 you now get in .\","
                                "  \"references\": [\"About 95 species are currently known .\", "
                                "\"About 95 species are now accepted .\","
                                "                 \"95 species are now accepted .\"]}]";
    CHECK_NEAR(value_of("sari", "{}", texts, "lexical/sari", NULL), 26.953601953601954, 1e-12);
    CHECK_NEAR(
        value_of("sari", "{}",
                 "[{\"prompt\": \"a b\", \"prediction\": \"a c\", \"references\": [\"a c\"]}]",
                 "lexical/sari", NULL),
        100, 1e-12);
}

TEST(texts_that_are_alike_have_a_high_self_bleu) {
    double v[3];
    static const char texts[] = "[{\"prediction\": \"the cat sat on the mat\"}, {\"prediction\": "
                                "\"the cat sat on the mat\"},"
                                " {\"prediction\": \"dogs run\"}]";
    value_of("self_bleu", "{\"tokenize\": \"none\"}", texts, "diversity_metrics/self_bleu-4", v);
    CHECK_NEAR(v[0], 1, 1e-12);
    CHECK_NEAR(v[1], 1, 1e-12);
    CHECK_NEAR(v[2], 0, 0);
    CHECK_NEAR(value_of("distinct", "{}", texts, "diversity_metrics/distinct-1", v), 7 / 14.0,
               1e-12);
    CHECK_NEAR(v[0], 5 / 6.0, 1e-12);
    CHECK_NEAR(value_of("length", "{}", texts, "length/words", v), 14 / 3.0, 1e-12);
    CHECK_NEAR(v[2], 2, 0);
    CHECK_NEAR(value_of("length", "{}", texts, "length/characters_max", NULL), 22, 0);
    CHECK_NEAR(value_of("length", "{}", texts, "length/words_median", NULL), 6, 0);
}

/* ---- rewards of rewards ------------------------------------------------------------------------ */

static const char refs[] =
    "{\"prompt\": \"\", \"prediction\": \"a b c d\", \"references\": [\"a b c d\", \"a b x y\"]}";

static tg_reward_value reward_of(const char *id, const char *args) {
    tg_arena arena = {0};
    tg_error err = {0};
    json_t *object = parse(refs), *options = parse(args);
    tg_metric_item item = scoring_item(object, &arena);
    tg_reward_value v = {TG_REWARD_FAILED, 0};
    CHECK_OK(scoring_reward(id, options, false, &item, 1, yes, &v, &err));
    json_decref(object);
    json_decref(options);
    tg_arena_fini(&arena);
    return v;
}

TEST(weights_and_references) {
    CHECK_NEAR(reward_of("weighted", "{\"rewards\": [{\"id\": \"rouge\", \"args\": "
                                     "{\"rouge_type\": \"rouge1\"}, \"weight\": 2},"
                                     "{\"id\": \"chrf\", \"weight\": -1, \"name\": \"c\"}]}")
                   .value,
               1, 1e-12);
    static const char each[] = "{\"reward\": {\"id\": \"rouge\", \"args\": {\"rouge_type\": "
                               "\"rouge1\"}}, \"mode\": \"%s\"}";
    static const struct {
        const char *mode;
        double value;
    } modes[] = {{"max", 1}, {"mean", 0.75}, {"min", 0.5}, {"first", 1}};
    for (int i = 0; i < 4; i++) {
        char args[160];
        snprintf(args, sizeof args, each, modes[i].mode);
        CHECK_NEAR(reward_of("per_reference", args).value, modes[i].value, 1e-12);
    }
}

TEST(parts_that_cannot_be_are_refused_where_they_stand) {
    static const char *const wrong[][2] = {
        {"weighted", "{}"},
        {"weighted", "{\"rewards\": []}"},
        {"weighted", "{\"rewards\": [{\"id\": \"roug\"}]}"},
        {"weighted", "{\"rewards\": [{\"id\": \"chrf\"}, {\"id\": \"chrf\"}]}"},
        {"weighted", "{\"rewards\": [{\"id\": \"chrf\", \"weigth\": 1}]}"},
        {"dense", "{}"},
        {"dense", "{\"reward\": {\"id\": \"dense\", \"args\": {\"reward\": {\"id\": \"chrf\"}}}}"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tg_arena arena = {0};
        tg_error err = {0};
        json_t *object = parse(refs), *options = parse(wrong[i][1]);
        tg_metric_item item = scoring_item(object, &arena);
        tg_reward_value v;
        tg_status st = scoring_reward(wrong[i][0], options, false, &item, 1, yes, &v, &err);
        tg_check(st == TG_CONFIG || st == TG_UNSUPPORTED, __FILE__, __LINE__, "%s: %d %s",
                 wrong[i][1], (int)st, err.msg);
        json_decref(object);
        json_decref(options);
        tg_arena_fini(&arena);
    }
}

TEST(dense_rewards_sum_to_the_value_of_the_text) {
    static const char *const prefixes[] = {"a", "a b", "a b q", "a b q d"};
    tg_arena arena = {0};
    tg_error err = {0};
    json_t *object = parse(refs);
    const tg_sample *sample = scoring_item(object, &arena).sample;
    tg_node *section;
    static const char text[] = "{\"id\": \"dense\", \"args\": {\"reward\": {\"id\": \"bleu\"}}}";
    tg_reward r = {0}, plain = {0};
    tg_reward_value v, whole;
    REQUIRE_OK(tg_tree_parse(&arena, "test", text, sizeof text - 1, &section, &err));
    REQUIRE_OK(tg_reward_open_section(&r, section, "reward_fn", &(tg_open_context){0}, &err));
    REQUIRE_OK(tg_tree_parse(&arena, "test", "{\"id\": \"bleu\"}", 14, &section, &err));
    REQUIRE_OK(tg_reward_open_section(&plain, section, "reward_fn", &(tg_open_context){0}, &err));
    double sum = 0;
    tg_reward_input in = {.sample = sample};
    for (size_t i = 0; i < 4; i++) {
        in.before = i ? in.text : NULL, in.before_len = i ? in.text_len : 0;
        in.text = prefixes[i], in.text_len = strlen(prefixes[i]), in.n_tokens = i + 1;
        in.done = i == 3;
        CHECK_OK(tg_reward_score(&r, &in, 1, &v, &err));
        CHECK_EQ(v.status, TG_REWARD_OK);
        sum += v.value;
    }
    CHECK_OK(tg_reward_score(&plain, &in, 1, &whole, &err));
    CHECK_NEAR(sum, whole.value, 1e-12);
    tg_reward_close(&r);
    tg_reward_close(&plain);
    json_decref(object);
    tg_arena_fini(&arena);
}

TEST(memory_may_run_out_anywhere) {
    static const char *const metrics[] = {"spice",     "spider",   "sari",
                                          "self_bleu", "distinct", "length"};
    for (size_t m = 0; m < 6; m++)
        for (long k = 4; k < 120; k += 1 + k / 40) { /* before that, the test itself */
            tg_arena arena = {0}, own = {0};
            tg_error err = {0};
            json_t *object = parse(refs);
            tg_metric_item items[2] = {scoring_item(object, &own), scoring_item(object, &own)};
            tg_metric_out out = {.arena = &arena};
            tg_alloc_fail_after(k);
            tg_status st = scoring_metric(metrics[m], NULL, false, items, 2, &out, &err);
            tg_alloc_fail_after(-1);
            tg_check(st == TG_OK || st == TG_NOMEM, __FILE__, __LINE__, "%s, %ld: %d %s",
                     metrics[m], k, (int)st, err.msg);
            json_decref(object);
            tg_arena_fini(&arena);
            tg_arena_fini(&own);
        }
}

TEST_MAIN
