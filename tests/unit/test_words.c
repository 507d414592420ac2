/* Words and sentences against NLTK's and spaCy's, recorded by tests/oracle/gen_words.py. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/spacy.h"
#include "tests/support/tg_test.h"

#include <jansson.h>

static bool is_list(const tg_nltk_list *l, const json_t *want) {
    if (l->n != json_array_size(want)) return false;
    for (size_t i = 0; i < l->n; i++) {
        const json_t *w = json_array_get(want, i);
        if (json_string_length(w) != l->words[i].len ||
            memcmp(json_string_value(w), tg_nltk_at(l, i), l->words[i].len) != 0)
            return false;
    }
    return true;
}

TEST(words_and_sentences_are_nltks_and_spacys) {
    tg_spacy *spacy[2] = {0};
    tg_spacy_work work = {0};
    tg_nltk *rules[2] = {0};
    tg_nltk_list out = {0};
    tg_error err = {0};
    tg_buf file = {0};
    size_t cases = 0;
    CHECK_OK(tg_nltk_create(&rules[0], TG_NLTK_CURRENT, &err));
    CHECK_OK(tg_nltk_create(&rules[1], TG_NLTK_3_7, &err));
    CHECK_OK(tg_spacy_create(&spacy[0], TG_SPACY_CURRENT, &err));
    CHECK_OK(tg_spacy_create(&spacy[1], TG_SPACY_3_0, &err));
    CHECK_OK(tg_file_read(tg_test_path("golden/words/words.jsonl"), 1 << 26, &file, &err));
    for (size_t at = 0; at < file.len;) {
        const char *line = file.data + at, *end = memchr(line, '\n', file.len - at);
        size_t len = end ? (size_t)(end - line) : file.len - at;
        at += len + 1;
        json_t *c = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
        REQUIRE(c);
        const json_t *text = json_array_get(c, 2);
        const char *op = json_string_value(json_array_get(c, 0)),
                   *version = json_string_value(json_array_get(c, 1)), *t = json_string_value(text);
        size_t n = json_string_length(text);
        bool old = !strcmp(version, "3.7") || !strcmp(version, "3.0");
        if (!strcmp(op, "spacy"))
            CHECK_OK(tg_spacy_words(spacy[old], t, n, &work, &out, &err));
        else if (!strcmp(op, "words"))
            CHECK_OK(tg_nltk_words(rules[old], t, n, &out, &err));
        else
            CHECK_OK(tg_nltk_sentences(rules[old], t, n, &out, &err));
        tg_check(is_list(&out, json_array_get(c, 3)), __FILE__, __LINE__, "%.*s", (int)len, line);
        json_decref(c);
        cases++;
    }
    CHECK(cases > 500);
    tg_buf_fini(&file);
    tg_nltk_list_fini(&out);
    tg_nltk_destroy(&rules[0]);
    tg_nltk_destroy(&rules[1]);
    tg_spacy_work_fini(&work);
    tg_spacy_destroy(&spacy[0]);
    tg_spacy_destroy(&spacy[1]);
}

TEST(spacys_words_survive_lack_of_memory) {
    static const char text[] = "He's :-) at http://a.bc/d, isn't he? (U.S. 5km!)";
    tg_error err = {0};
    for (long k = 0; k < 60; k++) {
        tg_spacy *s = NULL;
        tg_spacy_work w = {0};
        tg_nltk_list out = {0};
        CHECK_OK(tg_spacy_create(&s, TG_SPACY_CURRENT, &err));
        tg_alloc_fail_after(k);
        tg_status st = tg_spacy_words(s, text, sizeof text - 1, &w, &out, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        tg_spacy_work_fini(&w);
        tg_nltk_list_fini(&out);
        tg_spacy_destroy(&s);
        tg_alloc_fail_after(k);
        st = tg_spacy_create(&s, TG_SPACY_CURRENT, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        tg_spacy_destroy(&s);
    }
}

TEST(a_list_is_lowered_in_place) {
    tg_nltk_list l = {0};
    tg_error err = {0};
    CHECK_OK(tg_nltk_list_add(&l, "ABC", 3, &err));
    CHECK_OK(tg_nltk_list_lower(&l, &err));
    CHECK_STR(tg_nltk_at(&l, 0), "abc");
    CHECK_OK(tg_nltk_list_add(&l, "İX", 3, &err));
    CHECK_OK(tg_nltk_list_add(&l, "ΟΣ", 4, &err));
    CHECK_OK(tg_nltk_list_lower(&l, &err));
    CHECK_STR(tg_nltk_at(&l, 1), "i\xCC\x87x");
    CHECK_STR(tg_nltk_at(&l, 2), "ος");
    tg_nltk_list_fini(&l);
}

TEST(long_texts_take_time_in_proportion) {
    tg_nltk *w = NULL;
    tg_nltk_list out = {0};
    tg_error err = {0};
    enum { N = 400000 };
    char *text = tg_alloc(N);
    REQUIRE(text);
    CHECK_OK(tg_nltk_create(&w, TG_NLTK_3_7, &err));
    static const char *const parts[] = {"!", "a. ", "'", ".", "-", "x", ". ", "\n", "`", "(\""};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) { /* quadratic work would not end */
        size_t n = strlen(parts[k]);
        for (size_t i = 0; i < N; i++) text[i] = parts[k][i % n];
        CHECK_OK(tg_nltk_words(w, text, N, &out, &err));
    }
    tg_free(text);
    tg_nltk_list_fini(&out);
    tg_nltk_destroy(&w);
}

TEST(memory_may_run_out_anywhere) {
    static const char text[] = "Mr. Smith's \"dogs\" cannot, he said... run! (Yes.) ÄÖ. ";
    tg_error err = {0};
    bool done = false;
    for (int64_t k = 0; k < 500 && !done; k++) {
        tg_nltk *w = NULL;
        tg_nltk_list out = {0};
        tg_alloc_fail_after(k);
        tg_status st = tg_nltk_create(&w, k % 2 ? TG_NLTK_3_7 : TG_NLTK_CURRENT, &err);
        if (st == TG_OK) st = tg_nltk_words(w, text, sizeof text - 1, &out, &err);
        if (st == TG_OK) st = tg_nltk_list_lower(&out, &err);
        done = st == TG_OK;
        tg_alloc_fail_after(-1);
        CHECK(done || st == TG_NOMEM);
        tg_nltk_list_fini(&out);
        tg_nltk_destroy(&w);
        if (k > 60) k += 37; /* the table of the splitter takes many allocations */
    }
}
TEST_MAIN
