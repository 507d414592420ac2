/* Tables: Parquet files that pyarrow wrote, separated text, packed text, Python literals, filters, and
 * the numbers of numpy and SHA-1. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/tree.h"
#include "env-server/datapool/filter.h"
#include "env-server/datapool/numpy.h"
#include "env-server/datapool/pyliteral.h"
#include "env-server/datapool/story.h"
#include "env-server/datapool/table/datafile.h"
#include "env-server/datapool/table/table.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <zlib.h>

static tg_error err;

static const char *write_bytes(const char *name, const char *bytes, size_t len) {
    static char path[4][300];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_file_write_atomic(p, bytes, len, &err));
    return p;
}

/* As equal as JSON can be: a real number that is whole may be written without its point. */
static bool same(const json_t *a, const json_t *b) {
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (json_is_array(a) && json_is_array(b)) {
        bool ok = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; ok && i < json_array_size(a); i++)
            ok = same(json_array_get(a, i), json_array_get(b, i));
        return ok;
    }
    if (json_is_object(a) && json_is_object(b)) {
        const char *key;
        json_t *v;
        bool ok = json_object_size(a) == json_object_size(b);
        json_object_foreach((json_t *)a, key, v) ok = ok && same(v, json_object_get(b, key));
        return ok;
    }
    return json_equal(a, b);
}

TEST(parquet_as_pyarrow_wrote_it) {
    size_t rows = 0;
    for (int k = 0; k < 24; k++) {
        char name[64];
        tg_table got, want;
        snprintf(name, sizeof name, "golden/tables/t%02d.jsonl", k);
        REQUIRE_OK(tg_table_open(&want, tg_test_path(name), NULL, &err));
        snprintf(name, sizeof name, "golden/tables/t%02d.parquet", k);
        REQUIRE_OK(tg_table_open(&got, tg_test_path(name), NULL, &err));
        CHECK_EQ(got.count, want.count);
        for (uint64_t i = want.count; i-- > 0; rows++) {
            json_t *a, *b;
            REQUIRE_OK(tg_table_row(&want, i, &a, &err));
            REQUIRE_OK(tg_table_row(&got, i, &b, &err));
            tg_check(same(a, b), __FILE__, __LINE__, "%s: row %d differs", name, (int)i);
            json_decref(a);
            json_decref(b);
        }
        tg_table_close(&got);
        tg_table_close(&want);
    }
    CHECK(rows > 200);
}

TEST(parquet_columns_and_places) {
    static const char *const columns[] = {"c0", "nothing", NULL};
    tg_table t;
    json_t *row;
    REQUIRE_OK(tg_table_open(&t, tg_test_path("golden/tables/t00.parquet"), columns, &err));
    REQUIRE_OK(tg_table_row(&t, 0, &row, &err));
    CHECK_EQ(json_object_size(row), 1);
    CHECK(json_object_get(row, "c0"));
    json_decref(row);
    char where[300];
    tg_table_where(&t, 0, where, sizeof where);
    CHECK(strstr(where, "t00.parquet: row 1"));
    tg_table_close(&t);
    CHECK_EQ(tg_table_open(&t, write_bytes("x.parquet", "PAR1 PARE", 9), NULL, &err),
             TG_UNSUPPORTED);
    CHECK(strstr(err.msg, "encrypted"));
    CHECK_EQ(tg_table_open(&t, "/nowhere/x.parquet", NULL, &err), TG_NOINPUT);
    CHECK_EQ(tg_table_open(&t, "/nowhere/x.arrow", NULL, &err), TG_DATA);
}

TEST(separated_text) {
    static const char text[] = "\xEF\xBB\xBF"
                               "a,b\r\n\"x, \"\"y\"\"\nz\",2\r\n\n  \n\"q\"rest,\"\"\nlast,one";
    tg_table t;
    json_t *row;
    REQUIRE_OK(tg_table_open(&t, write_bytes("a.csv", text, sizeof text - 1), NULL, &err));
    CHECK_EQ(t.count, 3);
    REQUIRE_OK(tg_table_row(&t, 0, &row, &err));
    CHECK_STR(json_string_value(json_object_get(row, "a")), "x, \"y\"\nz");
    json_decref(row);
    REQUIRE_OK(tg_table_row(&t, 1, &row, &err));
    CHECK_STR(json_string_value(json_object_get(row, "a")), "qrest");
    CHECK_STR(json_string_value(json_object_get(row, "b")), "");
    json_decref(row);
    char where[300];
    tg_table_where(&t, 2, where, sizeof where);
    CHECK(strstr(where, "a.csv:7"));
    tg_table_close(&t);
    CHECK_EQ(tg_table_open(&t, write_bytes("b.csv", "", 0), NULL, &err), TG_DATA);
    CHECK(strstr(err.msg, "b.csv: no header"));
}

TEST(packed_text) {
    static const char text[] = "{\"a\": 1}\n{\"a\": 2}\n";
    const char *path = write_bytes("p.jsonl.gz", "", 0);
    gzFile f = gzopen(path, "wb");
    CHECK_EQ(gzwrite(f, text, sizeof text - 1), sizeof text - 1);
    gzclose(f);
    tg_table t;
    json_t *row;
    REQUIRE_OK(tg_table_open(&t, path, NULL, &err));
    CHECK_EQ(t.count, 2);
    REQUIRE_OK(tg_table_row(&t, 1, &row, &err));
    CHECK_EQ(json_integer_value(json_object_get(row, "a")), 2);
    json_decref(row);
    tg_table_close(&t);
}

TEST(python_literals) {
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"['a', \"it's\", '\\n\\x41\\u00e9\\'']", "[\"a\", \"it's\", \"\\nA\\u00e9'\"]"},
        {"{'de': 'x', 'n': None, 'b': [True, False]}",
         "{\"de\": \"x\", \"n\": null, \"b\": [true, false]}"},
        {"['a' 'b'\n 'c']", "[\"a\", \"b\", \"c\"]"},
        {"[1 -2 3.5 1.]", "[1, -2, 3.5, 1.0]"},
        {"array([1, 2], dtype=int64)", "[1, 2]"},
        {"(1, 2,)", "[1, 2]"},
        {"{\"a\": [1, null]}", "{\"a\": [1, null]}"},
    };
    json_t *v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *want = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        REQUIRE_OK(tg_py_literal(cases[i].text, strlen(cases[i].text), &v, &err));
        tg_check(same(v, want), __FILE__, __LINE__, "%s", cases[i].text);
        json_decref(v);
        json_decref(want);
    }
    static const char *const bad[] = {"",          "[1, 2", "{'a' 1}", "{1: 2}", "'open",
                                      "['\\xZZ']", "[1] x", "nan",     "word"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(tg_py_literal(bad[i], strlen(bad[i]), &v, &err), TG_DATA);
}

static int passes(const char *yaml, const char *row) {
    tg_arena arena = {0};
    tg_node *node;
    tg_filter f;
    bool keep = false;
    tg_status st = tg_tree_parse(&arena, "f", yaml, strlen(yaml), &node, &err);
    if (st == TG_OK) st = tg_filter_read(&f, tg_node_get(node, "f"), &err);
    json_t *object = json_loads(row, 0, NULL);
    if (st == TG_OK) {
        st = tg_filter_match(&f, object, &keep, &err);
        tg_filter_fini(&f);
    }
    json_decref(object);
    tg_arena_fini(&arena);
    return st == TG_OK ? keep : -(int)st;
}

TEST(filters) {
    CHECK_EQ(passes("{f: 'a == 1'}", "{\"a\": 1}"), 1);
    CHECK_EQ(passes("{f: 'a == 1'}", "{\"a\": \"1.0\"}"), 1);
    CHECK_EQ(passes("{f: 'a == x'}", "{\"a\": \"xy\"}"), 0);
    CHECK_EQ(passes("{f: 'a contains x'}", "{\"a\": \"yxy\"}"), 1);
    CHECK_EQ(passes("{f: ['a >= 2', 'a < 3']}", "{\"a\": 2.5}"), 1);
    CHECK_EQ(passes("{f: ['a >= 2', 'a < 3']}", "{\"a\": 3}"), 0);
    CHECK_EQ(passes("{f: 'b.c = \"x y\"'}", "{\"b\": {\"c\": \"x y\"}}"), 1);
    CHECK_EQ(passes("{f: 'a == true'}", "{\"a\": true}"), 1);
    CHECK_EQ(passes("{f: 'a != 1'}", "{}"), 1);
    CHECK_EQ(passes("{f: 'a == 1'}", "{\"a\": null}"), 0);
    CHECK_EQ(passes("{f: 'a == 1'}", "{\"a\": [1]}"), -(int)TG_DATA);
    CHECK_EQ(passes("{f: 'a'}", "{}"), -(int)TG_CONFIG);
    CHECK_EQ(passes("{f: '== 1'}", "{}"), -(int)TG_CONFIG);
    CHECK_EQ(passes("{f: [[1]]}", "{}"), -(int)TG_CONFIG);
    CHECK_EQ(passes("{f: null}", "{}"), 1);
}

TEST(numbers_of_numpy_and_sha1) {
    static const uint64_t want[] = {15, 9, 14, 7,  12, 10, 6,  19, 3,  0,
                                    16, 5, 11, 18, 2,  4,  17, 1,  13, 8};
    uint64_t *order;
    REQUIRE_OK(tg_numpy_permutation(42, 20, &order, &err));
    CHECK(!memcmp(order, want, sizeof want));
    tg_free(order);
    REQUIRE_OK(tg_numpy_permutation(1, 0, &order, &err));
    tg_free(order);
    CHECK_EQ(tg_numpy_shuffle_seed(0, 0), 0);
    CHECK_EQ(tg_numpy_shuffle_seed(0, 1), 1878467924);
    CHECK_EQ(tg_numpy_shuffle_seed(0, 2), 1101979660);
    CHECK_EQ(tg_numpy_shuffle_seed(42, 1), 4170412009);
    char hex[41];
    tg_sha1_hex("abc", 3, hex);
    CHECK_STR(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
    tg_sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
    CHECK_STR(hex, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    tg_sha1_hex("", 0, hex);
    CHECK_STR(hex, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

TEST_MAIN
