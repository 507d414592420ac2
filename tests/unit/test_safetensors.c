/* The weight file format: what is written reads back, and a table of bad files each refused by
 * name. */
#include "common/base/buf.h"
#include "common/base/alloc.h"
#include "common/nn/safetensors.h"
#include "tests/support/tg_test.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static tg_error err;

static const char *tmp_file(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", tg_test_tmpdir(), name);
    return path;
}

TEST(written_file_reads_back) {
    float a[6] = {1, 2, 3, 4, 5, -6.5f}, scalar = 7;
    int64_t ids[2] = {-5, 1ll << 40};
    tg_st_write list[] = {
        {.name = "a", .dtype = TG_F32, .ndim = 2, .shape = {2, 3}, .data = a},
        {.name = "quo\"te\\\n", .dtype = TG_I64, .ndim = 1, .shape = {2}, .data = ids},
        {.name = "empty", .dtype = TG_F32, .ndim = 2, .shape = {0, 3}, .data = a},
        {.name = "scalar", .dtype = TG_F32, .ndim = 0, .data = &scalar},
    };
    const char *path = tmp_file("a.safetensors");
    REQUIRE_OK(tg_safetensors_write(path, list, 4, "{\"format\":\"pt\"}", &err));
    tg_safetensors st;
    REQUIRE_OK(tg_safetensors_open(&st, path, &err));
    CHECK_EQ(st.n, 4);
    const tg_st_tensor *t = tg_safetensors_find(&st, "a");
    REQUIRE(t != NULL);
    CHECK_EQ(t->ndim, 2);
    CHECK_EQ(t->shape[1], 3);
    CHECK_EQ((t->data - st.map.data) % 64, 0);
    float back[6];
    CHECK_OK(tg_st_to_f32(t, back, &err));
    CHECK(!memcmp(a, back, sizeof a));
    t = tg_safetensors_find(&st, "quo\"te\\\n");
    REQUIRE(t != NULL);
    CHECK(!memcmp(t->data, ids, sizeof ids));
    CHECK_EQ(tg_st_to_f32(t, back, &err), TG_DATA);
    CHECK(tg_safetensors_find(&st, "empty")->count == 0);
    CHECK(tg_safetensors_find(&st, "scalar")->count == 1);
    CHECK(tg_safetensors_find(&st, "b") == NULL);
    tg_safetensors_close(&st);
}

struct source {
    const unsigned char *bytes;
};
static tg_status give(void *arg, size_t index, size_t begin, void *out, size_t bytes, tg_error *e) {
    (void)index, (void)e;
    memcpy(out, ((struct source *)arg)->bytes + begin, bytes);
    return TG_OK;
}
static tg_status refuse(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                        tg_error *e) {
    (void)arg, (void)index, (void)begin, (void)out, (void)bytes;
    return tg_fail(e, TG_IO, "no more");
}

TEST(a_source_is_read_in_pieces_and_a_failure_leaves_nothing) {
    size_t n = 3 * 1024 * 1024 + 17;
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i * 7 % 1000);
    tg_st_write list[] = {{.name = "x", .dtype = TG_F32, .ndim = 1, .shape = {(int64_t)n}}};
    struct source s = {(unsigned char *)x};
    const char *path = tmp_file("b.safetensors");
    CHECK_OK(tg_safetensors_write_from(path, list, 1, NULL, give, &s, &err));
    tg_safetensors st;
    REQUIRE_OK(tg_safetensors_open(&st, path, &err));
    CHECK_OK(tg_st_to_f32(&st.tensors[0], y, &err));
    CHECK(!memcmp(x, y, n * sizeof *x));
    tg_safetensors_close(&st);
    path = tmp_file("c.safetensors");
    CHECK_EQ(tg_safetensors_write_from(path, list, 1, NULL, refuse, &s, &err), TG_IO);
    CHECK(!tg_path_exists(path));
    free(x);
    free(y);
}

/* Length, header and `data` zero bytes, as a file in memory. */
static size_t build(unsigned char *out, const char *header, size_t data) {
    size_t len = strlen(header);
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)((uint64_t)len >> (8 * i));
    memcpy(out + 8, header, len);
    memset(out + 8 + len, 0, data);
    return 8 + len + data;
}

#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"

TEST(good_headers) {
    static const struct {
        const char *header;
        size_t data, n;
    } table[] = {
        {"{}", 0, 0},
        {"{}   ", 0, 0},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, 0},
        {"{ \"a\" : " T("F32", "2,1", "0,8") " , \"b\":" T("U8", "", "8,9") "}\n ", 9, 2},
        {"{\"b\":" T("U8", "1", "8,9") ",\"a\":" T("F32", "2", "0,8") "}", 9, 2},
        {"{\"z\":" T("F32", "0,5", "8,8") ",\"a\":" T("F32", "2", "0,8") "}", 8, 2},
        {"{\"a\":{\"shape\":[],\"data_offsets\":[0,2],\"dtype\":\"BF16\"}}", 2, 1},
        {"{\"\\u00e9\\ud83d\\ude00\":" T("I8", "1", "0,1") "}", 1, 1},
        {"{\"__metadata__\":null}", 0, 0}, /* these three as the safetensors package */
        {"{\"__metadata__\":{\"a\":\"\\u0000\", \"a\": \"\"}}", 0, 0},
        {"{\"__metadata__\":{\"\xC3\xA9\":\"\xF0\x9F\x98\x80\x7f\"}}", 0, 0},
    };
    unsigned char bytes[1024];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        size_t len = build(bytes, table[i].header, table[i].data);
        tg_safetensors st;
        tg_status status = tg_safetensors_open_memory(&st, "f", bytes, len, &err);
        tg_check(status == TG_OK, __FILE__, __LINE__, "case %zu: %s", i, err.msg);
        if (status != TG_OK) continue;
        CHECK_EQ(st.n, table[i].n);
        if (i == 7) CHECK_STR(st.tensors[0].name, "\xC3\xA9\xF0\x9F\x98\x80");
        tg_safetensors_close(&st);
    }
}

TEST(bad_headers_are_refused_with_the_reason) {
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } table[] = {
        {"", 0, "expected {"},
        {" {}", 0, "expected {"},
        {"[]", 0, "expected {"},
        {"{", 0, "expected a string"},
        {"{}{}", 0, "more text"},
        {"{\"a\"}", 0, "expected :"},
        {"{\"a\":1}", 0, "\"a\": header byte 5: expected an object"},
        {"{\"a\":{}}", 0, "expected a string"},
        {"{\"a\":{\"dtype\":\"F32\"}}", 0, "needs dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "twice"},
        {"{\"a\":{\"other\":1}}", 0, "only dtype"},
        {"{\"a\":" T("F31", "1", "0,4") "}", 4, "dtype F31"},
        {"{\"a\":" T("F32", "-1", "0,4") "}", 4, "non-negative"},
        {"{\"a\":" T("F32", "1.5", "0,4") "}", 4, "expected , or ]"},
        {"{\"a\":" T("F32", "01", "0,4") "}", 4, "leading zero"},
        {"{\"a\":" T("F32", "1,1,1,1,1,1,1,1,1", "0,4") "}", 4, "too many"},
        {"{\"a\":" T("F32", "1", "0") "}", 4, "two numbers"},
        {"{\"a\":" T("F32", "1", "0,4,8") "}", 4, "too many"},
        {"{\"a\":" T("F32", "1", "4,0") "}", 4, "not within"},
        {"{\"a\":" T("F32", "2", "0,8") "}", 4, "not within the 4 bytes"},
        {"{\"a\":" T("F32", "2", "0,4") "}", 4, "need 8 bytes"},
        {"{\"a\":" T("F32", "4611686018427387904,4", "0,4") "}", 4, "too large"},
        {"{\"a\":" T("F32", "2305843009213693951,9", "0,4") "}", 4, "too large"},
        {"{\"a\":" T("F32", "99999999999999999999", "0,4") "}", 4, "too large"},
        {"{\"a\":" T("F32", "1", "0,4") ",\"a\":" T("F32", "1", "4,8") "}", 8, "occurs twice"},
        {"{\"a\":" T("F32", "2", "0,8") ",\"b\":" T("F32", "2", "4,12") "}", 12, "overlaps"},
        {"{\"a\":" T("F32", "1", "0,4") ",\"b\":" T("F32", "1", "8,12") "}", 12, "gap"},
        {"{\"a\":" T("F32", "1", "0,4") "}", 5, "cover 4"},
        {"{}", 5, "cover 0"},
        {"{\"a\":" T("F32", "1", "0,4") ",}", 4, "expected a string"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "expected a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
        {"{\"a\\q\":" T("F32", "1", "0,4") "}", 4, "escape"},
        {"{\"a\\ud800\":" T("F32", "1", "0,4") "}", 4, "surrogate"},
        {"{\"a\\u0000\":" T("F32", "1", "0,4") "}", 4, "NUL"},
        {"{\"a\\u00g0\":" T("F32", "1", "0,4") "}", 4, "\\u"},
        {"{\"a\":{\"dtype\\u0000\":\"F32\"}}", 0, "only dtype"},
        {"{\"__metadata__\\u0000\":{}}", 0, "NUL"},
        {"{\"__metadata__\":{\"a\":\"\xff\"}}", 0, "header byte 22: expected UTF-8"},
        {"{\"__metadata__\":{\"a\xed\xa0\x80\":\"\"}}", 0, "header byte 19: expected UTF-8"},
        {"{\"\xc0\x80\":" T("F32", "1", "0,4") "}", 4, "header byte 2: expected UTF-8"},
        {"{\"__metadata__\":[]}", 0, "__metadata__: expected an object"},
        {"{\"__metadata__\":{\"a\":{}}}", 0, "expected a string"},
        {"{\"__metadata__\":nul}", 0, "__metadata__: expected an object"},
        {"{\"a\n\":" T("F32", "1", "0,4") "}", 4, "control"},
        {"{\"a", 0, "ends inside"},
    };
    unsigned char bytes[1024];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        size_t len = build(bytes, table[i].header, table[i].data);
        tg_safetensors st;
        tg_status status = tg_safetensors_open_memory(&st, "w.safetensors", bytes, len, &err);
        tg_check(status == TG_DATA && strstr(err.msg, table[i].says) &&
                     strstr(err.msg, "w.safetensors"),
                 __FILE__, __LINE__, "case %zu: status %d, \"%s\" should say \"%s\"", i,
                 (int)status, err.msg, table[i].says);
        CHECK(st.tensors == NULL);
    }
}

/* Metadata may be longer than a name. */
TEST(names_have_a_limit_and_metadata_has_none) {
    static unsigned char bytes[8192];
    static char text[3000], header[4000];
    for (size_t n = TG_ST_MAX_NAME; n <= TG_ST_MAX_NAME + 1; n++) {
        snprintf(text, sizeof text, "%0*d", (int)n, 0);
        snprintf(header, sizeof header, "{\"%s\":" T("F32", "1", "0,4") "}", text);
        size_t len = build(bytes, header, 4);
        tg_safetensors st;
        tg_status status = tg_safetensors_open_memory(&st, "w.safetensors", bytes, len, &err);
        CHECK_EQ(status, n > TG_ST_MAX_NAME ? TG_DATA : TG_OK);
        if (status == TG_OK) CHECK_STR(st.tensors[0].name, text);
        tg_safetensors_close(&st);
    }
    CHECK(strstr(err.msg, "too long a name"));
    memset(text, 'm', sizeof text - 1);
    snprintf(header, sizeof header, "{\"__metadata__\":{\"a\":\"%s\\n\\u00e9\"}}", text);
    tg_safetensors st;
    CHECK_OK(
        tg_safetensors_open_memory(&st, "w.safetensors", bytes, build(bytes, header, 0), &err));
    tg_safetensors_close(&st);
}

TEST(there_may_be_so_many_tensors_and_no_more) {
    for (int more = 0; more < 2; more++) {
        tg_buf b = {0};
        tg_buf_append(&b, "\0\0\0\0\0\0\0\0{", 9);
        for (int i = 0; i < TG_ST_MAX_TENSORS + more; i++)
            tg_buf_printf(&b, "%s\"%x\":" T("U8", "0", "0,0"), i ? "," : "", (unsigned)i);
        tg_buf_putc(&b, '}');
        REQUIRE(!b.failed);
        for (int i = 0; i < 8; i++) b.data[i] = (char)((uint64_t)(b.len - 8) >> (8 * i));
        tg_safetensors st;
        CHECK_EQ(tg_safetensors_open_memory(&st, "many", b.data, b.len, &err),
                 more ? TG_DATA : TG_OK);
        tg_safetensors_close(&st);
        tg_buf_fini(&b);
    }
    CHECK(strstr(err.msg, "too many tensors"));
}

TEST(bad_lengths_and_missing_files) {
    unsigned char bytes[64] = {0};
    tg_safetensors st;
    CHECK_EQ(tg_safetensors_open_memory(&st, "f", bytes, 0, &err), TG_DATA);
    CHECK_EQ(tg_safetensors_open_memory(&st, "f", bytes, 7, &err), TG_DATA);
    memset(bytes, 0xFF, 8);
    CHECK_EQ(tg_safetensors_open_memory(&st, "f", bytes, 64, &err), TG_DATA);
    CHECK(strstr(err.msg, "cut off") != NULL);
    memset(bytes, 0, 8);
    bytes[0] = 57;
    CHECK_EQ(tg_safetensors_open_memory(&st, "f", bytes, 64, &err), TG_DATA);
    CHECK_EQ(tg_safetensors_open(&st, "/nowhere/x", &err), TG_NOINPUT);
    CHECK_EQ(tg_safetensors_open_memory(&st, "f", bytes, 0, NULL), TG_DATA);
}

TEST(types_convert_to_f32) {
    uint16_t half[] = {0x0000, 0x8000, 0x3C00, 0xC000, 0x7BFF, 0x0400,
                       0x0001, 0x03FF, 0x7C00, 0xFC00, 0x3555};
    float want[] = {0.0f,     -0.0f,           1.0f,     -2.0f,     65504.0f,   0x1p-14f,
                    0x1p-24f, 1023 * 0x1p-24f, INFINITY, -INFINITY, 0x1.554p-2f};
    float got[11];
    tg_st_tensor t = {.name = (char *)(uintptr_t) "h",
                      .dtype = TG_F16,
                      .count = 11,
                      .data = (unsigned char *)half};
    CHECK_OK(tg_st_to_f32(&t, got, &err));
    CHECK(!memcmp(want, got, sizeof want));
    uint16_t nan = 0x7E01;
    t.data = (unsigned char *)&nan;
    t.count = 1;
    CHECK_OK(tg_st_to_f32(&t, got, &err));
    CHECK(isnan(got[0]));
    uint16_t bf[] = {0x3F80, 0xC040, 0x0001, 0xFF80};
    float bf_want[] = {1.0f, -3.0f, 0x1p-133f, -INFINITY};
    t = (tg_st_tensor){.dtype = TG_BF16, .count = 4, .data = (unsigned char *)bf};
    CHECK_OK(tg_st_to_f32(&t, got, &err));
    CHECK(!memcmp(bf_want, got, sizeof bf_want));
    double d[] = {0.1, -1e300, 3.0};
    t = (tg_st_tensor){.dtype = TG_F64, .count = 3, .data = (unsigned char *)d};
    CHECK_OK(tg_st_to_f32_part(&t, 0, 3, got, &err));
    CHECK(got[0] == 0.1f && got[1] == -INFINITY && got[2] == 3.0f);
}

TEST(out_of_memory_is_reported) {
    unsigned char bytes[1024];
    size_t len = build(bytes, "{\"b\":" T("U8", "1", "8,9") ",\"a\":" T("F32", "2", "0,8") "}", 9);
    int failures = 0;
    for (int n = 0; n < 32; n++) {
        tg_safetensors st;
        tg_alloc_fail_after(n);
        tg_status status = tg_safetensors_open_memory(&st, "f", bytes, len, &err);
        tg_alloc_fail_after(-1);
        if (status == TG_OK) tg_safetensors_close(&st);
        if (status != TG_OK) failures++;
        CHECK(status == TG_OK || status == TG_NOMEM);
    }
    CHECK(failures >= 4);
}

TEST_MAIN
