/* What commands read and write: JSON lines, whole streams, rows of `list`. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/jsonl.h"
#include "common/config/listing.h"
#include "tests/support/tg_test.h"

static FILE *stream_of(const char *bytes, size_t len) {
    FILE *f = tmpfile();
    if (f && (fwrite(bytes, 1, len, f) != len || fseek(f, 0, SEEK_SET))) {
        fclose(f);
        f = NULL;
    }
    return f;
}

TEST(every_line_counts) {
    static const char text[] = "{\"a\": 1}\n\nnot json\n\"a\\u0000b\"\n[1]";
    FILE *f = stream_of(text, sizeof text - 1);
    REQUIRE(f);
    tg_jsonl in;
    tg_error err = {0};
    tg_buf out = {0};
    tg_jsonl_open(&in, f);
    for (int line = 1; line <= 5; line++) {
        REQUIRE(tg_jsonl_next(&in));
        CHECK_EQ(in.number, line);
        CHECK_EQ(in.value != NULL, line != 2 && line != 3);
        if (line == 3) tg_jsonl_put_error(&out, in.number, in.why);
        if (line == 4) CHECK_EQ(json_string_length(in.value), 3);
    }
    CHECK(!tg_jsonl_next(&in));
    CHECK_EQ(in.n_bad, 2);
    CHECK_OK(tg_jsonl_check(&in, &err));
    CHECK(!strncmp(out.data, "{\"error\": \"line 3: not JSON: ", 29));
    CHECK_EQ(out.data[out.len - 1], '\n');
    tg_jsonl_close(&in);
    tg_buf_fini(&out);
    fclose(f);
}

TEST(a_folder_is_no_input) {
    FILE *f = fopen("/", "r");
    REQUIRE(f);
    tg_jsonl in;
    tg_error err = {0};
    tg_buf all = {0};
    tg_jsonl_open(&in, f);
    CHECK(!tg_jsonl_next(&in));
    CHECK_EQ(tg_jsonl_check(&in, &err), TG_IO);
    tg_jsonl_close(&in);
    CHECK_EQ(tg_stream_read(f, "folder", &all, &err), TG_IO);
    tg_buf_fini(&all);
    fclose(f);
}

TEST(a_stream_ends_with_a_nul) {
    enum { N = 200000 };
    char *bytes = tg_alloc(N);
    REQUIRE(bytes);
    memset(bytes, ' ', N);
    FILE *f = stream_of(bytes, N);
    REQUIRE(f);
    tg_buf all = {0};
    tg_error err = {0};
    REQUIRE_OK(tg_stream_read(f, "spaces", &all, &err));
    CHECK_EQ(all.len, N);
    CHECK_EQ(strspn(all.data, " "), N);
    tg_buf_fini(&all);
    rewind(f);
    tg_alloc_fail_after(0);
    CHECK_EQ(tg_stream_read(f, "spaces", &all, &err), TG_NOMEM);
    tg_alloc_fail_after(-1);
    tg_buf_fini(&all);
    fclose(f);
    tg_free(bytes);
}

TEST(kinds_in_singular_and_plural) {
    CHECK(tg_kind_is("reward", "reward"));
    CHECK(tg_kind_is("reward", "rewards"));
    CHECK(tg_kind_is("reward", NULL));
    CHECK(!tg_kind_is("reward", "rewar"));
    CHECK(!tg_kind_is("reward", "rewardss"));
    tg_buf out = {0};
    size_t n = 0;
    const tg_listed row = {"reward", "a \"b\"", "An ü.", false, NULL};
    tg_listed_json(&row, &n, &out);
    tg_listed_json(&row, &n, &out);
    tg_buf_puts(&out, "]");
    json_t *rows = json_loads(out.data, 0, NULL);
    CHECK_EQ(json_array_size(rows), 2);
    CHECK_STR(json_string_value(json_object_get(json_array_get(rows, 1), "name")), "a \"b\"");
    CHECK(json_is_false(json_object_get(json_array_get(rows, 0), "built")));
    json_decref(rows);
    tg_buf_fini(&out);
}

TEST_MAIN
