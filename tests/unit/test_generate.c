/* learner/policy/generate: the token sequences that transformers recorded (tests/oracle/gen_generate.py), together and one by one; samples of one
 * prompt; streams; results that end. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "learner/policy/generate.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tg_error err;

enum { MAX_PROMPTS = 64, MAX_RESULTS = 16, MAX_NEW = 40, LEN = 24 };

typedef struct results {
    struct result {
        int32_t tokens[MAX_NEW];
        float logp[MAX_NEW], sample_logp[MAX_NEW];
        int n;
        double score;
        tg_gen_end end;
    } of[MAX_PROMPTS][MAX_RESULTS];
    int n_done;
} results;

static tg_status keep(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)e;
    results *all = arg;
    TG_ASSERT(r->id < MAX_PROMPTS && r->index < MAX_RESULTS && r->n <= MAX_NEW);
    struct result *to = &all->of[r->id][r->index];
    *to = (struct result){.n = r->n, .score = r->score, .end = r->end};
    for (int i = 0; i < r->n; i++) {
        to->tokens[i] = r->tokens[i];
        to->logp[i] = r->logp[i];
        to->sample_logp[i] = r->sample_logp[i];
    }
    all->n_done++;
    return TG_OK;
}

typedef struct prompt {
    int32_t tokens[LEN];
    int n;
} prompt;

/* All prompts from `first` on through one generator with so many slots. */
static void generate(tg_model *m, const tg_gen_settings *s, const prompt *prompts, int first, int n,
                     int slots, results *out) {
    tg_generator *g = NULL;
    int src = m->arch.kind == TG_KIND_SEQ2SEQ ? LEN : 0;
    tg_decoder_caps caps = {.slots = slots, .len = LEN, .src = src};
    CHECK_OK(tg_generator_create(&g, m, s, caps, &err));
    for (int i = first; g && i < first + n; i++)
        CHECK_OK(tg_generator_add(g, (uint64_t)i, prompts[i].tokens, prompts[i].n, 11, TG_RNG_TEST,
                                  (uint64_t)i, &err));
    for (int guard = 0; g && tg_generator_active(g) && guard < 10000; guard++)
        REQUIRE_OK(tg_generator_advance(g, keep, out, &err));
    CHECK(!g || !tg_generator_active(g));
    tg_generator_destroy(&g);
}

/* ---- recorded ---------------------------------------------------------------------------------- */

static void check_result(const json_t *want, const struct result *got, const char *what) {
    const json_t *ids = json_array_get(want, 0), *score = json_array_get(want, 1);
    bool same = (int)json_array_size(ids) == got->n;
    for (int i = 0; same && i < got->n; i++)
        same = json_integer_value(json_array_get(ids, (size_t)i)) == got->tokens[i];
    tg_check(same, __FILE__, __LINE__, "%s: other tokens (%d, recorded %zu)", what, got->n,
             json_array_size(ids));
    if (json_is_number(score))
        tg_check(fabs(json_number_value(score) - got->score) <= 1e-4 * fmax(1, fabs(got->score)),
                 __FILE__, __LINE__, "%s: score %g, recorded %g", what, got->score,
                 json_number_value(score));
}

static void check_results(const json_t *line, const results *got, const char *what) {
    const json_t *prompts = json_object_get(line, "results"), *list, *want;
    size_t i, k;
    json_array_foreach(prompts, i, list) json_array_foreach(list, k, want)
        check_result(want, &got->of[i][k], what);
}

static void check_line(tg_model *m, const json_t *line, const char *folder) {
    static results got;
    static prompt prompts[MAX_PROMPTS];
    tg_arena arena = {0};
    tg_gen_settings s;
    const json_t *list, *id, *settings = json_object_get(line, "settings");
    size_t i, k;
    int n = 0;
    char *text = json_dumps(settings, 0), what[1200];
    const tg_node *node;
    tg_node *given = NULL;
    CHECK_OK(tg_tree_parse(&arena, "case", text, strlen(text), &given, &err));
    node = given;
    CHECK_OK(tg_gen_model_defaults(&node, folder, &arena, &err));
    CHECK_OK(tg_gen_settings_read(&s, node, "case", &arena, &err));
    s.lengths_count_prompt = true;
    json_array_foreach(json_object_get(line, "prompts"), i, list) {
        prompts[n].n = (int)json_array_size(list);
        json_array_foreach(list, k, id) prompts[n].tokens[k] = (int32_t)json_integer_value(id);
        n++;
    }
    snprintf(what, sizeof what, "%s %s", json_string_value(json_object_get(line, "model")), text);
    generate(m, &s, prompts, 0, n, n * (int)s.num_beams, &got);
    check_results(line, &got, what);
    memset(&got, 0, sizeof got);
    for (int p = 0; p < n; p++) generate(m, &s, prompts, p, 1, 1, &got); /* one by one */
    check_results(line, &got, what);
    free(text);
    tg_arena_fini(&arena);
}

TEST(token_sequences_are_those_of_transformers) {
    FILE *f = fopen(tg_test_path("golden/generate/cases.jsonl"), "r");
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_model *m = NULL;
    char *text = NULL, current[200] = "";
    size_t cap = 0;
    int n = 0;
    for (; CHECK(f != NULL) && getline(&text, &cap, f) > 0; n++) {
        json_t *line = json_loads(text, 0, NULL);
        const char *name = json_string_value(json_object_get(line, "model"));
        char folder[300];
        snprintf(folder, sizeof folder, "golden/%s", name);
        char path[700];
        snprintf(path, sizeof path, "%s", tg_test_path(folder));
        if (strcmp(current, name)) {
            tg_model_destroy(&m);
            CHECK_OK(tg_model_open(&m, be, path, 0, 0, &err));
            snprintf(current, sizeof current, "%s", name);
        }
        if (m) check_line(m, line, path);
        json_decref(line);
    }
    CHECK(n > 100);
    free(text);
    if (f) fclose(f);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* ---- batches and streams ----------------------------------------------------------------------- */

static tg_gen_settings settings(const char *text, tg_arena *arena) {
    tg_gen_settings s = {0};
    tg_node *node = NULL;
    CHECK_OK(tg_tree_parse(arena, "test", text, strlen(text), &node, &err));
    CHECK_OK(tg_gen_settings_read(&s, node, "test", arena, &err));
    return s;
}

/* The same bits with any number of slots: alone, together, refilled. */
TEST(a_result_does_not_depend_on_what_runs_beside_it) {
    static const char *const kinds[] = {
        "{do_sample: true, num_return_sequences: 5, max_new_tokens: 9, eos_token_id: 3}",
        "{do_sample: true, top_k: 0, top_p: 0.9, max_new_tokens: 9, eos_token_id: [3, 4, 5]}",
        "{num_beams: 3, num_return_sequences: 3, max_new_tokens: 9, eos_token_id: 3}",
        "{num_beams: 4, do_sample: true, temperature: 1.5, max_new_tokens: 9, eos_token_id: 3}",
        "{num_beams: 4, num_beam_groups: 2, diversity_penalty: 0.5, max_new_tokens: 9, "
        "eos_token_id: 3}",
    };
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    static prompt prompts[20];
    for (int i = 0; i < 20; i++) {
        prompts[i].n = 1 + i * 5 % 11;
        for (int t = 0; t < prompts[i].n; t++) prompts[i].tokens[t] = (i * 7 + t * 3) % 29;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        static results want, got;
        tg_arena arena = {0};
        tg_gen_settings s = settings(kinds[k], &arena);
        memset(&want, 0, sizeof want);
        for (int i = 0; i < 20; i++) generate(m, &s, prompts, i, 1, 1, &want);
        CHECK_EQ(want.n_done, 20 * (int)s.num_return_sequences);
        static const int slots[] = {1, 2, 3, 7, 16, 64};
        for (size_t w = 0; w < sizeof slots / sizeof *slots; w++) {
            memset(&got, 0, sizeof got);
            generate(m, &s, prompts, 0, 20, slots[w], &got);
            tg_check(!memcmp(want.of, got.of, sizeof got.of), __FILE__, __LINE__,
                     "%s with %d slots: other results", kinds[k], slots[w]);
        }
        tg_arena_fini(&arena);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* Which slots are free when the last samples of one prompt start beside the first of the next must not matter. */
TEST(samples_of_one_prompt_compute_it_once) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    static prompt prompts[6];
    for (int i = 0; i < 6; i++) {
        prompts[i].n = 2 + i;
        for (int t = 0; t < prompts[i].n; t++) prompts[i].tokens[t] = (i * 11 + t * 5) % 29;
    }
    static results want, got;
    tg_arena arena = {0};
    /* many end tokens: slots become free in every order */
    tg_gen_settings s = settings("{do_sample: true, top_k: 0, num_return_sequences: 13, "
                                 "max_new_tokens: 12, eos_token_id: [1, 2, 3, 4, 5, 6, 7]}",
                                 &arena);
    generate(m, &s, prompts, 0, 6, 78, &want);
    CHECK_EQ(want.n_done, 78);
    for (int slots = 1; slots < 16; slots++) {
        memset(&got, 0, sizeof got);
        generate(m, &s, prompts, 0, 6, slots, &got);
        CHECK(!memcmp(want.of, got.of, sizeof got.of));
    }
    int distinct = 0;
    for (int k = 1; k < 13; k++)
        distinct += memcmp(&want.of[5][0], &want.of[5][k], sizeof want.of[5][0]) != 0;
    CHECK(distinct >= 8);
    tg_arena_fini(&arena);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* Two tokens at least are left to draw from, with an eos or without. */
TEST(beams_always_have_something_to_draw) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    static prompt prompts[40];
    static results got;
    for (int i = 0; i < 40; i++) prompts[i] = (prompt){{4, 9, 2}, 3};
    static const char *const ways[] = {"top_k: 1", "top_k: 1, eos_token_id: 28",
                                       "top_k: 0, top_p: 0.001", "top_k: 0, typical_p: 0.001",
                                       "top_k: 0, min_p: 0.999"};
    for (size_t k = 0; k < TG_COUNT_OF(ways); k++) {
        tg_arena arena = {0};
        char text[200];
        snprintf(text, sizeof text,
                 "{do_sample: true, num_beams: 2, num_return_sequences: 2, max_new_tokens: 2, %s}",
                 ways[k]);
        tg_gen_settings s = settings(text, &arena);
        memset(&got, 0, sizeof got);
        generate(m, &s, prompts, 0, 40, 2, &got);
        int distinct = 0;
        for (int i = 0; i < 40; i++) {
            const struct result *a = got.of[i], *b = a + 1;
            tg_check(a->n && b->n && memcmp(a->tokens, b->tokens, sizeof a->tokens) != 0, __FILE__,
                     __LINE__, "%s: one result twice", ways[k]);
            distinct += memcmp(a->tokens, got.of[0][0].tokens, sizeof a->tokens) != 0;
        }
        tg_check(distinct > 0, __FILE__, __LINE__, "%s: always the same", ways[k]);
        tg_arena_fini(&arena);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(stop_sequences_end_a_result_and_stay_in_it) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    static results free_run, got;
    prompt p = {{4, 9, 2}, 3};
    tg_arena arena = {0};
    tg_gen_settings s = settings("{max_new_tokens: 12}", &arena);
    generate(m, &s, &p, 0, 1, 1, &free_run);
    const struct result *r = &free_run.of[0][0];
    CHECK_EQ(r->n, 12);
    CHECK_EQ(r->end, TG_END_LENGTH);
    for (int at = 1; at < 6; at++) {
        tg_id_list stop = {r->tokens + at - 1, 2};
        s.stops = &stop;
        s.n_stops = 1;
        generate(m, &s, &p, 0, 1, 1, &got);
        int first = 1;
        while (memcmp(r->tokens + first - 1, stop.ids, 2 * sizeof *stop.ids)) first++;
        CHECK_EQ(got.of[0][0].n, first + 1);
        CHECK_EQ(got.of[0][0].end, TG_END_STOP);
    }
    tg_arena_fini(&arena);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* The last token is forced and forbidden at once. */
#define DEAD_END "num_beams: 4, max_new_tokens: 6, forced_eos_token_id: 5, suppress_tokens: [5], "
/* Longer results would always be better: the search goes on to its last token. */
#define ON_AND_ON "early_stopping: never, length_penalty: 9, "

TEST(beams_that_die_leave_those_that_had_finished) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    static results got;
    prompt p = {{4, 9, 2}, 3};
    tg_arena arena = {0};
    static const char *const groups[] = {"num_beam_groups: 1",
                                         "num_beam_groups: 2, diversity_penalty: 0.5"};
    for (int i = 0; i < 2; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "{" DEAD_END ON_AND_ON "eos_token_id: [0, 1, 2, 3, 4, 6, 7, 8], %s}", groups[i]);
        tg_gen_settings s = settings(text, &arena);
        generate(m, &s, &p, 0, 1, 1, &got);
        CHECK(got.of[0][0].n > 0 && got.of[0][0].n < 6);
        CHECK_EQ(got.of[0][0].end, TG_END_EOS);

        snprintf(text, sizeof text, "{" DEAD_END "%s}", groups[i]);
        s = settings(text, &arena);
        tg_generator *g = NULL;
        CHECK_OK(tg_generator_create(&g, m, &s, (tg_decoder_caps){.slots = 4, .len = LEN}, &err));
        CHECK_OK(tg_generator_add(g, 0, p.tokens, p.n, 11, TG_RNG_TEST, 0, &err));
        tg_status st = TG_OK;
        while (st == TG_OK && tg_generator_active(g))
            st = tg_generator_advance(g, keep, &got, &err);
        CHECK_EQ(st, TG_DATA);
        CHECK(strstr(err.msg, "every token is forbidden"));
        tg_generator_destroy(&g);
    }
    tg_arena_fini(&arena);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(what_does_not_fit_is_said) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    tg_arena arena = {0};
    tg_gen_settings s = settings("{max_new_tokens: 12, num_beams: 3}", &arena);
    tg_generator *g = NULL;
    CHECK_OK(tg_generator_create(&g, m, &s, (tg_decoder_caps){.slots = 1, .len = 14}, &err));
    int32_t tokens[4] = {1, 2, 3, 4};
    CHECK_OK(tg_generator_add(g, 0, tokens, 3, 1, TG_RNG_TEST, 0, &err));
    CHECK_EQ(tg_generator_add(g, 0, tokens, 4, 1, TG_RNG_TEST, 0, &err), TG_DATA);
    CHECK_EQ(tg_generator_add(g, 0, tokens, 0, 1, TG_RNG_TEST, 0, &err), TG_DATA);
    tg_generator_destroy(&g); /* with a prompt in the queue */
    tg_gen_settings stop = settings("{stop_strings: x}", &arena);
    CHECK_EQ(tg_generator_create(&g, m, &stop, (tg_decoder_caps){.slots = 1, .len = 14}, &err),
             TG_UNSUPPORTED);
    tg_arena_fini(&arena);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(nothing_leaks_when_memory_runs_out) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 8);
    for (int beams = 1; beams < 4; beams += 2) {
        tg_arena arena = {0};
        tg_gen_settings s = settings("{max_new_tokens: 4, do_sample: true}", &arena);
        s.num_beams = beams;
        s.num_return_sequences = 2;
        if (beams > 1) s.do_sample = false;
        for (int64_t fail = 0;; fail++) {
            tg_generator *g = NULL;
            int32_t tokens[3] = {1, 2, 3};
            static results out;
            tg_alloc_fail_after(fail);
            tg_status st =
                tg_generator_create(&g, m, &s, (tg_decoder_caps){.slots = 3, .len = 14}, &err);
            if (st == TG_OK) st = tg_generator_add(g, 0, tokens, 3, 1, TG_RNG_TEST, 0, &err);
            while (st == TG_OK && tg_generator_active(g))
                st = tg_generator_advance(g, keep, &out, &err);
            tg_alloc_fail_after(-1);
            tg_generator_destroy(&g);
            CHECK(st == TG_OK || st == TG_NOMEM);
            if (st == TG_OK) break;
        }
        tg_arena_fini(&arena);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
