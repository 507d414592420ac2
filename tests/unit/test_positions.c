/* common/nn/positions: the angles of rotary positions as transformers makes them (tests/oracle/gen_rope.py). */
#include "common/base/alloc.h"
#include "common/nn/positions.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static float number(const json_t *c, const char *key) {
    return (float)json_number_value(json_object_get(c, key));
}

static tg_rope rope_of(const json_t *c) {
    static const char *const kinds[] = {[TG_ROPE_DEFAULT] = "default",
                                        [TG_ROPE_LINEAR] = "linear",
                                        [TG_ROPE_DYNAMIC] = "dynamic",
                                        [TG_ROPE_LLAMA3] = "llama3",
                                        [TG_ROPE_YARN] = "yarn",
                                        [TG_ROPE_LONG] = "longrope",
                                        [TG_ROPE_PROPORTIONAL] = "proportional"};
    tg_rope r = {.dims = (int)number(c, "dims"),
                 .theta = number(c, "theta"),
                 .factor = number(c, "factor"),
                 .low_freq = number(c, "low_freq_factor"),
                 .high_freq = number(c, "high_freq_factor"),
                 .beta_fast = 32,
                 .beta_slow = 1,
                 .attention = number(c, "attention_factor"),
                 .original_positions = (int)number(c, "original_max_position_embeddings")};
    r.angles = (int)(number(c, "partial_rotary_factor") * (float)r.dims / 2);
    const char *kind = json_string_value(json_object_get(c, "kind"));
    while (strcmp(kinds[r.kind], kind)) r.kind++;
    r.excess = r.factor - 1;
    for (int i = 0; i < r.dims / 2; i++) {
        const size_t at = (size_t)i;
        r.stretch[i] =
            (float)json_number_value(json_array_get(json_object_get(c, "short_factor"), at));
        r.long_stretch[i] =
            (float)json_number_value(json_array_get(json_object_get(c, "long_factor"), at));
    }
    return r;
}

static void check_row(const json_t *want, const float *got, const char *what) {
    size_t i;
    const json_t *x;
    json_array_foreach(want, i, x) {
        double wanted = json_number_value(x);
        /* an ulp of sine or cosine, and the golden's own rounding; one of a frequency makes up to 2e-4 */
        if (!(wanted - (double)got[i] < 3e-7 && (double)got[i] - wanted < 3e-7))
            tg_check(false, __FILE__, __LINE__, "%s %zu: expected %.8f, got %.8f", what, i, wanted,
                     (double)got[i]);
    }
    CHECK(i > 0);
}

static void check_case(const json_t *c) {
    const tg_rope r = rope_of(c);
    const json_t *positions = json_object_get(c, "positions"), *p;
    const size_t last = json_array_size(positions) - 1, dims = (size_t)r.dims;
    const int n = 1 + (int)json_integer_value(json_array_get(positions, last));
    float *table = tg_alloc_array((size_t)n * dims, sizeof *table);
    REQUIRE(table);
    tg_rope_rows(&r, n, 0, n, table);
    size_t i;
    json_array_foreach(positions, i, p) {
        const float *row = table + (size_t)json_integer_value(p) * dims;
        char what[100];
        snprintf(what, sizeof what, "%s, %d floats, position %d",
                 json_string_value(json_object_get(c, "kind")), r.dims, (int)json_integer_value(p));
        check_row(json_array_get(json_object_get(c, "cos"), i), row, what);
        check_row(json_array_get(json_object_get(c, "sin"), i), row + r.dims / 2, what);
    }
    tg_free(table);
}

TEST(angles_are_rounded_as_in_transformers) {
    FILE *f = fopen(tg_test_path("golden/rope/angles.jsonl"), "r");
    REQUIRE(f);
    int cases = 0;
    for (json_t *c; (c = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)); cases++) {
        check_case(c);
        json_decref(c);
    }
    fclose(f);
    CHECK_EQ(cases, 27);
}

/* In decoding a token has the angles of a text that it ends. */
TEST(tokens_that_are_decoded_turn_as_the_text_so_far) {
    enum { TRAINED = 6, N = 11, DIMS = 4 };
    tg_rope ropes[] = {
        {.kind = TG_ROPE_DYNAMIC, .factor = 2, .excess = 1},
        {.kind = TG_ROPE_LONG, .attention = 1, .stretch = {1, 2}, .long_stretch = {3, 5}},
        {.kind = TG_ROPE_DEFAULT}};
    for (size_t k = 0; k < sizeof ropes / sizeof *ropes; k++) {
        tg_rope *r = &ropes[k];
        r->dims = DIMS, r->theta = 100, r->original_positions = TRAINED;
        float table[N * DIMS], row[DIMS], first[DIMS];
        tg_rope_table(r, N, table);
        for (int p = 0; p < N; p++) {
            tg_rope_rows(r, p + 1, p, 1, row);
            CHECK(!memcmp(table + p * DIMS, row, sizeof row));
        }
        tg_rope_rows(r, TRAINED, 3, 1, first);
        tg_rope_rows(r, N, 3, 1, row);
        CHECK_EQ(memcmp(first, row, sizeof row) != 0, tg_rope_varies(r));
    }
}

TEST_MAIN
