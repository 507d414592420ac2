/* Rows for a model: pairs, truncation, padding, masks; batches on threads. The goldens were made by Hugging Face. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/text/encode.h"
#include "tests/support/tg_test.h"

#include <jansson.h>

static tg_tokenizer *open_golden(const char *name) {
    tg_error err = {0};
    tg_tokenizer *t = NULL;
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s", name);
    CHECK_OK(tg_tokenizer_open(&t, tg_test_path(path), &err));
    return t;
}

static int64_t number(const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    return json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
}

static tg_encode_options read_options(const json_t *o) {
    const char *how = json_string_value(json_object_get(o, "strategy"));
    tg_encode_options e = {.special = number(o, "special"),
                           .offsets = true,
                           .truncate = true,
                           .overflow = true,
                           .strategy = !strcmp(how, "only_first")    ? TG_TRUNCATE_ONLY_FIRST
                                       : !strcmp(how, "only_second") ? TG_TRUNCATE_ONLY_SECOND
                                                                     : TG_TRUNCATE_LONGEST_FIRST,
                           .truncate_left = number(o, "truncate_left"),
                           .max_length = number(o, "max_length"),
                           .stride = number(o, "stride"),
                           .pad = (tg_padding)number(o, "pad"),
                           .pad_left = number(o, "pad_left"),
                           .pad_length = number(o, "pad_length"),
                           .pad_multiple = number(o, "pad_multiple"),
                           .pad_id = 1};
    return e;
}

static bool same_bytes(const json_t *list, const uint8_t *v, size_t n) {
    bool same = json_array_size(list) == n;
    for (size_t i = 0; i < n && same; i++)
        same = json_integer_value(json_array_get(list, i)) == v[i];
    return same;
}

static bool same_row(const json_t *want, const tg_encodings *e, size_t row) {
    size_t from = e->start[row], n = e->start[row + 1] - from;
    const json_t *ids = json_object_get(want, "ids"), *at = json_object_get(want, "offsets");
    bool same = json_array_size(ids) == n && e->text[row] == number(want, "text");
    for (size_t i = 0; i < n && same; i++) {
        const json_t *span = json_array_get(at, i);
        same = json_integer_value(json_array_get(ids, i)) == e->ids[from + i] &&
               json_integer_value(json_array_get(span, 0)) == e->spans[from + i].start &&
               json_integer_value(json_array_get(span, 1)) == e->spans[from + i].end;
    }
    return same && same_bytes(json_object_get(want, "attention"), e->attention + from, n) &&
           same_bytes(json_object_get(want, "types"), e->types + from, n) &&
           same_bytes(json_object_get(want, "special"), e->special + from, n);
}

static void check_case(const tg_tokenizer *t, const json_t *c, tg_team *team, tg_encodings *e,
                       const char *name, size_t line) {
    const json_t *texts = json_object_get(c, "texts"), *rows = json_object_get(c, "rows");
    tg_text text[8] = {0};
    size_t n = json_array_size(texts);
    for (size_t i = 0; i < n && i < 8; i++) {
        const json_t *a = json_array_get(json_array_get(texts, i), 0);
        const json_t *b = json_array_get(json_array_get(texts, i), 1);
        text[i] = (tg_text){json_string_value(a), json_string_length(a), json_string_value(b),
                            json_string_length(b)};
    }
    tg_encode_options o = read_options(json_object_get(c, "options"));
    tg_error err = {0};
    tg_status st = tg_tokenizer_encode_batch(t, text, n, &o, team, e, &err);
    bool same = json_is_null(rows) ? st == TG_DATA || st == TG_CONFIG
                                   : st == TG_OK && e->n == json_array_size(rows);
    for (size_t i = 0; same && i < e->n; i++) same = same_row(json_array_get(rows, i), e, i);
    tg_check(same, __FILE__, __LINE__, "%s line %zu: %s", name, line, err.msg);
}

static void check_rows(const char *name, int threads) {
    tg_tokenizer *t = open_golden(name);
    REQUIRE(t);
    tg_team *team = NULL;
    tg_error err = {0};
    if (threads > 1) REQUIRE_OK(tg_team_create(&team, threads, &err));
    char path[128];
    snprintf(path, sizeof path, "golden/tokenizer/%s/rows.jsonl", name);
    FILE *f = fopen(tg_test_path(path), "r");
    REQUIRE(f);
    char *line = NULL;
    size_t cap = 0, n = 0;
    tg_encodings e = {0};
    while (getline(&line, &cap, f) > 0) {
        json_t *c = json_loads(line, JSON_ALLOW_NUL, NULL);
        REQUIRE(c);
        check_case(t, c, team, &e, name, ++n);
        json_decref(c);
    }
    CHECK(n > 5);
    free(line);
    fclose(f);
    tg_encodings_fini(&e);
    tg_team_destroy(&team);
    tg_tokenizer_destroy(&t);
}

TEST(rows_of_bert) {
    check_rows("bert", 1);
    check_rows("bert", 3);
}
TEST(rows_of_roberta) {
    check_rows("roberta", 1);
}
TEST(rows_of_a_template_with_trimmed_offsets) {
    check_rows("split", 2);
}
TEST(rows_of_llama) {
    check_rows("llama", 1);
}

TEST(a_warm_batch_allocates_nothing) {
    tg_tokenizer *t = open_golden("bert");
    REQUIRE(t);
    tg_text text[3] = {{"the cat", 7, "and the dog", 11},
                       {"hello world it's naïve", 23, NULL, 0},
                       {"", 0, NULL, 0}};
    tg_encode_options o = tg_encode_defaults(t);
    o.offsets = o.truncate = o.overflow = true;
    o.max_length = 8, o.pad = TG_PAD_LONGEST;
    tg_encodings e = {0};
    tg_error err = {0};
    uint64_t calls = 0;
    for (int i = 0; i < 3; i++) {
        calls = tg_alloc_calls();
        CHECK_OK(tg_tokenizer_encode_batch(t, text, 3, &o, NULL, &e, &err));
    }
    CHECK_EQ(tg_alloc_calls() - calls, 0);
    CHECK(e.n >= 3);
    tg_encodings_fini(&e);
    tg_tokenizer_destroy(&t);
}

TEST(no_memory_is_an_error_and_no_texts_are_none) {
    tg_tokenizer *t = open_golden("roberta");
    REQUIRE(t);
    tg_text text = {"the cat and the dog", 19, "word", 4};
    tg_encode_options o = tg_encode_defaults(t);
    o.offsets = true;
    for (int64_t after = 0; after < 60; after++) {
        tg_encodings e = {0};
        tg_error err = {0};
        tg_alloc_fail_after(after);
        tg_status st = tg_tokenizer_encode_batch(t, &text, 1, &o, NULL, &e, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK ? e.n == 1 : st == TG_NOMEM && e.n == 0);
        tg_encodings_fini(&e);
    }
    tg_encodings e = {0};
    tg_error err = {0};
    CHECK_OK(tg_tokenizer_encode_batch(t, NULL, 0, &o, NULL, &e, &err));
    CHECK_EQ(e.n, 0);
    o.truncate = true, o.max_length = -1;
    CHECK_EQ(tg_tokenizer_encode_batch(t, &text, 1, &o, NULL, &e, &err), TG_CONFIG);
    tg_encodings_fini(&e);
    tg_tokenizer_destroy(&t);
}

TEST(batches_decode_to_the_same_texts) {
    tg_tokenizer *t = open_golden("split");
    tg_team *team = NULL;
    tg_error err = {0};
    REQUIRE(t);
    REQUIRE_OK(tg_team_create(&team, 2, &err));
    enum { N = 50 };
    char texts[N][32];
    tg_text text[N];
    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "text %d: %s", i, i % 3 ? "the cat" : "naïve");
        text[i] = (tg_text){texts[i], strlen(texts[i]), NULL, 0};
    }
    tg_encode_options o = tg_encode_defaults(t);
    tg_encodings e = {0};
    REQUIRE_OK(tg_tokenizer_encode_batch(t, text, N, &o, team, &e, &err));
    tg_buf out = {0};
    size_t end[N];
    for (int round = 0; round < 2; round++) {
        tg_buf_reset(&out);
        CHECK_OK(tg_tokenizer_decode_batch(t, e.ids, e.start, N, TG_DECODE_SKIP_SPECIAL,
                                           round ? team : NULL, &out, end, &err));
        for (size_t i = 0; i < N; i++) {
            size_t from = i ? end[i - 1] : 0;
            CHECK(end[i] - from == text[i].len && !memcmp(out.data + from, texts[i], text[i].len));
        }
    }
    tg_buf_fini(&out);
    tg_encodings_fini(&e);
    tg_team_destroy(&team);
    tg_tokenizer_destroy(&t);
}

TEST_MAIN
