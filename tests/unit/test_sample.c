/* learner/policy/sample: processors, warpers, and that draws follow the distribution. */
#include "tests/support/tg_test.h"

#include "common/base/check.h"
#include "common/base/rng.h"
#include "learner/policy/gen_settings.h"
#include "learner/policy/sample.h"

#include <math.h>
#include <stdlib.h>

static tg_gen_settings defaults(void) {
    tg_gen_settings s;
    tg_arena a = {0};
    tg_error err;
    CHECK_OK(tg_gen_settings_read(&s, NULL, "generation_kwargs", &a, &err));
    tg_arena_fini(&a);
    return s;
}

/* history (n_history), of which the last n_new are new. */
static tg_status try_sample(const tg_gen_settings *s, const float *logits, int V,
                            const int32_t *history, int n_history, int n_new, double u, tg_draw *d,
                            tg_error *err) {
    tg_gen_space w;
    CHECK(tg_gen_space_init(&w, V, err) == TG_OK);
    int n_prompt = n_history - n_new;
    tg_gen_context c = {history, n_history, n_prompt, 1000, history, n_prompt};
    tg_status st = tg_sample(s, &c, logits, V, NULL, u, &w, d, err);
    tg_gen_space_fini(&w);
    return st;
}

static tg_draw sample(const tg_gen_settings *s, const float *logits, int V, const int32_t *history,
                      int n_history, int n_new, double u) {
    tg_draw d = {-1, 0, 0};
    tg_error err = {0};
    CHECK_OK(try_sample(s, logits, V, history, n_history, n_new, u, &d, &err));
    return d;
}

TEST(defaults_are_those_of_transformers_4_18) {
    tg_gen_settings s = defaults();
    CHECK(!s.do_sample);
    CHECK_EQ(s.top_k, 50);
    CHECK_EQ(s.max_length, 20);
    CHECK(s.max_new_tokens == INT64_MIN);
    CHECK_NEAR(s.temperature, 1, 0);
    CHECK_EQ(tg_gen_max_new(&s, 100), 20);
    s.lengths_count_prompt = true;
    CHECK_EQ(tg_gen_max_new(&s, 15), 5);
    CHECK_EQ(tg_gen_max_new(&s, 100), 1);
}

TEST(what_is_not_built_is_refused_by_name) {
    tg_gen_settings s = defaults();
    tg_error err;
    CHECK_OK(tg_gen_settings_supported(&s, "g", &err));
    tg_node some = {.kind = TG_NODE_SCALAR, .text = "x"};
    s.constraints = &some;
    CHECK_EQ(tg_gen_settings_supported(&s, "g", &err), TG_UNSUPPORTED);
    CHECK(strstr(err.msg, "g.constraints") != NULL);
    s = defaults();
    s.num_beams = 5, s.num_beam_groups = 2;
    CHECK_EQ(tg_gen_settings_supported(&s, "g", &err), TG_CONFIG);
    s = defaults();
    s.num_return_sequences = 2;
    CHECK_EQ(tg_gen_settings_supported(&s, "g", &err), TG_CONFIG);
    s.num_beams = 5;
    CHECK_OK(tg_gen_settings_supported(&s, "g", &err));
}

TEST(greedy_takes_the_first_largest) {
    tg_gen_settings s = defaults();
    const float logits[5] = {1, 3, 2, 3, -1};
    tg_draw d = sample(&s, logits, 5, (int32_t[]){0}, 1, 0, 0.9);
    CHECK_EQ(d.token, 1);
    double z = exp(1.0 - 3) + 1 + exp(2.0 - 3) + 1 + exp(-1.0 - 3);
    CHECK_NEAR(d.logp, -log(z), 1e-6);
}

TEST(minimum_length_forbids_eos) {
    tg_gen_settings s = defaults();
    tg_gen_set_eos(&s, 1);
    s.min_length = 3;
    const float logits[3] = {1, 9, 2};
    const int32_t history[4] = {0, 0, 0, 0};
    CHECK_EQ(sample(&s, logits, 3, history, 3, 2, 0).token, 2);
    CHECK_EQ(sample(&s, logits, 3, history, 4, 3, 0).token, 1);
    s.lengths_count_prompt = true; /* one prompt token, two new ones: length 3 is reached */
    CHECK_EQ(sample(&s, logits, 3, history, 3, 2, 0).token, 1);
}

TEST(a_growing_bonus_counts_an_eos_once) {
    tg_gen_settings s = defaults();
    s.decay_start = 1;
    s.decay_factor = 1.5;
    s.do_sample = true;
    s.top_k = 0;
    s.n_eos = 3;
    s.eos_ids[0] = s.eos_ids[2] = 1; /* named twice */
    s.eos_ids[1] = 2;
    const float logits[3] = {1, 2, -2};
    const int32_t history[3] = {0, 0, 0};
    /* one token past the start: 2 + 2 * 0.5 and -2 + 2 * 0.5 */
    double z = exp(1.0) + exp(3.0) + exp(-1.0);
    CHECK_NEAR(sample(&s, logits, 3, history, 3, 2, 0).sample_logp, 1 - log(z), 1e-6);
    CHECK_NEAR(sample(&s, logits, 3, history, 3, 2, 0.5).sample_logp, 3 - log(z), 1e-6);
}

TEST(repetition_penalty_counts_a_token_once) {
    tg_gen_settings s = defaults();
    s.repetition_penalty = 2;
    s.do_sample = true;
    s.top_k = 0;
    const float logits[3] = {2, -1, 0};
    const int32_t history[4] = {0, 0, 1, 0};
    /* 2 -> 1, -1 -> -2, 0 stays */
    double z = exp(1.0) + exp(-2.0) + 1;
    tg_draw d = sample(&s, logits, 3, history, 4, 3, 0);
    CHECK_EQ(d.token, 0);
    CHECK_NEAR(d.sample_logp, 1 - log(z), 1e-6);
    CHECK_NEAR(d.logp, 2 - log(exp(2.0) + exp(-1.0) + 1), 1e-6);
}

TEST(no_ngram_occurs_twice) {
    tg_gen_settings s = defaults();
    s.no_repeat_ngram_size = 2;
    const float logits[4] = {0, 1, 2, 9};
    CHECK_EQ(sample(&s, logits, 4, (int32_t[]){1, 3, 2, 1}, 4, 3, 0).token, 2); /* "1 3" is there */
    CHECK_EQ(sample(&s, logits, 4, (int32_t[]){1, 2, 3, 0}, 4, 3, 0).token, 3);
    s.no_repeat_ngram_size = 5;
    CHECK_EQ(sample(&s, logits, 4, (int32_t[]){1, 3}, 2, 1, 0).token, 3);
}

/* Draws at evenly spread u visit each kept token in proportion to its probability, and no other. */
static void check_distribution(const tg_gen_settings *s, const float *logits, int V,
                               const double *p) {
    enum { N = 20000 };
    int count[64] = {0};
    for (int i = 0; i < N; i++) {
        tg_draw d = sample(s, logits, V, (int32_t[]){0}, 1, 0, (i + 0.5) / N);
        count[d.token]++;
        CHECK_NEAR(d.sample_logp, log(p[d.token]), 1e-5);
    }
    for (int i = 0; i < V; i++) CHECK_NEAR(count[i] / (double)N, p[i], 2.0 / N);
}

TEST(draws_follow_the_warped_distribution) {
    tg_gen_settings s = defaults();
    s.do_sample = true;
    s.top_k = 0;
    const float logits[5] = {0.5f, 2, -1, 1, 0};
    double p[5], z = 0;
    for (int i = 0; i < 5; i++) z += exp((double)logits[i]);
    for (int i = 0; i < 5; i++) p[i] = exp((double)logits[i]) / z;
    check_distribution(&s, logits, 5, p);

    s.temperature = 0.5;
    z = 0;
    for (int i = 0; i < 5; i++) z += exp(2 * (double)logits[i]);
    for (int i = 0; i < 5; i++) p[i] = exp(2 * (double)logits[i]) / z;
    check_distribution(&s, logits, 5, p);

    s.temperature = 1;
    s.top_k = 2;
    z = exp(2.0) + exp(1.0);
    const double two[5] = {0, exp(2.0) / z, 0, exp(1.0) / z, 0};
    check_distribution(&s, logits, 5, two);

    s.top_k = 0;
    s.top_p = 0.7; /* 0.576 < 0.7: the second token is still taken, the third is not */
    check_distribution(&s, logits, 5, two);
    s.top_p = 0.1;
    const double one[5] = {0, 1, 0, 0, 0};
    check_distribution(&s, logits, 5, one);
}

/* ---- warpers against sorts in double ---- */

enum { WORDS = 37 };

static int order_of[WORDS];
static double key_of[WORDS];
static int ascending(const void *a, const void *b) {
    int i = *(const int *)a, j = *(const int *)b;
    return key_of[i] != key_of[j] ? (key_of[i] < key_of[j] ? -1 : 1) : i < j ? -1 : 1;
}

static void sort_by_key(void) {
    for (int i = 0; i < WORDS; i++) order_of[i] = i;
    qsort(order_of, WORDS, sizeof *order_of, ascending);
}

/* kept[i] as the definition has it; which: 0 top_p, 1 min_p, 2 typical_p, 3 epsilon, 4 eta. */
static void define(int which, double value, int keep, const double *p, bool *kept) {
    double h = 0, most = 0, sum = 0;
    for (int i = 0; i < WORDS; i++) {
        if (p[i] > 0) h -= p[i] * log(p[i]);
        most = fmax(most, p[i]);
    }
    for (int i = 0; i < WORDS; i++) key_of[i] = which == 2 ? fabs(-log(p[i]) - h) : -p[i];
    sort_by_key();
    if (which == 4) value = fmin(value, sqrt(value) * exp(-h));
    if (which == 1) value *= most;
    for (int k = 0; k < WORDS; k++) { /* best first */
        int i = order_of[k];
        bool in = which == 0 ? sum < value : which == 2 ? sum < value : p[i] >= value;
        kept[i] = in || k < keep;
        sum += p[i];
    }
}

TEST(warpers_keep_what_their_definitions_say) {
    for (int round = 0; round < 500; round++) {
        tg_rng r = tg_rng_at(17, TG_RNG_TEST, (uint64_t)round, 0);
        tg_gen_settings s = defaults();
        tg_gen_space w;
        tg_error err;
        float logits[WORDS];
        double p[WORDS], z = 0;
        bool kept[WORDS];
        for (int i = 0; i < WORDS; i++) logits[i] = (float)(2 * tg_rng_normal(&r));
        for (int i = 0; i < WORDS; i++) z += exp((double)logits[i]);
        for (int i = 0; i < WORDS; i++) p[i] = exp((double)logits[i]) / z;
        int which = round % 5, keep = 1 + (int)tg_rng_below(&r, 3);
        double value = 0.02 + 0.96 * tg_rng_uniform(&r);
        if (which >= 3) value *= 0.1;
        double *const fields[] = {&s.top_p, &s.min_p, &s.typical_p, &s.epsilon_cutoff,
                                  &s.eta_cutoff};
        *fields[which] = value;
        s.top_k = 0;
        define(which, value, keep, p, kept);
        REQUIRE(tg_gen_space_init(&w, WORDS, &err) == TG_OK);
        tg_candidates c;
        tg_warp(&s, logits, WORDS, keep, &w, &c);
        CHECK_EQ(c.n, WORDS);
        for (int i = 0; i < c.n; i++)
            tg_check((c.score[i] > -INFINITY) == kept[i], __FILE__, __LINE__,
                     "warper %d at %g, at least %d: token %d of probability %g", which, value, keep,
                     i, p[i]);
        tg_gen_space_fini(&w);
    }
}

TEST(of_equal_tokens_top_p_drops_the_first) {
    tg_gen_settings s = defaults();
    s.top_p = 0.5, s.top_k = 0;
    const float logits[4] = {1, 1, 1, 1};
    tg_gen_space w;
    tg_error err;
    REQUIRE(tg_gen_space_init(&w, 4, &err) == TG_OK);
    tg_candidates c;
    tg_warp(&s, logits, 4, 1, &w, &c);
    for (int i = 0; i < 4; i++) CHECK((c.score[i] > -INFINITY) == (i >= 2));
    tg_gen_space_fini(&w);
}

TEST(of_improbable_tokens_as_many_as_are_asked_for_stay) {
    /* next to the first, the probability of the others is 0 in float */
    const float logits[5] = {-300, 80, 200, 90, 0};
    for (int which = 0; which < 4; which++) {
        tg_gen_settings s = defaults();
        double *const fields[] = {&s.top_p, &s.min_p, &s.epsilon_cutoff, &s.eta_cutoff};
        *fields[which] = 0.5;
        s.top_k = 0;
        tg_gen_space w;
        tg_error err;
        REQUIRE(tg_gen_space_init(&w, 5, &err) == TG_OK);
        tg_candidates c;
        tg_warp(&s, logits, 5, 2, &w, &c);
        for (int i = 0; i < 5; i++)
            tg_check((c.score[i] > -INFINITY) == (i == 2 || i == 3), __FILE__, __LINE__,
                     "warper %d: token %d", which, i);
        tg_gen_space_fini(&w);
    }
}

TEST(top_k_matches_a_sort) {
    tg_gen_settings s = defaults();
    s.do_sample = true;
    for (int round = 0; round < 300; round++) {
        tg_rng r = tg_rng_at(7, TG_RNG_TEST, (uint64_t)round, 0);
        float logits[40];
        for (int i = 0; i < 40; i++) logits[i] = (float)(int)tg_rng_below(&r, 25); /* many ties */
        s.top_k = 1 + (int64_t)tg_rng_below(&r, 40);
        tg_draw d = sample(&s, logits, 40, (int32_t[]){0}, 1, 0, tg_rng_uniform(&r));
        int larger = 0;
        for (int i = 0; i < 40; i++) larger += logits[i] > logits[d.token];
        CHECK(larger < s.top_k);
    }
}

TEST(broken_logits_are_an_error) {
    tg_gen_settings s = defaults();
    float nan_logits[3] = {1, NAN, 2}, none[2] = {-INFINITY, -INFINITY};
    tg_draw d;
    tg_error err;
    CHECK_EQ(try_sample(&s, nan_logits, 3, (int32_t[]){0}, 1, 0, 0, &d, &err), TG_DATA);
    CHECK_EQ(try_sample(&s, none, 2, (int32_t[]){0}, 1, 0, 0, &d, &err), TG_DATA);
    float only_eos[1] = {3};
    tg_gen_set_eos(&s, 0);
    s.min_length = 2;
    CHECK_EQ(try_sample(&s, only_eos, 1, (int32_t[]){0}, 1, 0, 0, &d, &err), TG_DATA);
}

TEST_MAIN
