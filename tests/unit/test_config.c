/* Config trees: YAML and JSON in, typed readings, lines, limits, overrides; where model names are
 * looked up. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/json.h"
#include "common/config/locate.h"
#include "common/config/tree.h"
#include "tests/support/tg_test.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static tg_status parse(tg_arena *a, const char *text, tg_node **root, tg_error *err) {
    return tg_tree_parse(a, "t.yml", text, strlen(text), root, err);
}

/* Parsing must fail with a message that contains `wanted`. */
static void check_fails(const char *text, const char *wanted, int line) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    tg_status st = parse(&a, text, &root, &err);
    tg_check(st == TG_CONFIG && strstr(err.msg, wanted), __FILE__, line,
             "%.60s: status %s, message \"%s\"", text, tg_status_name(st), err.msg);
    tg_arena_fini(&a);
}
#define CHECK_FAILS(text, wanted) check_fails(text, wanted, __LINE__)

TEST(maps_lists_and_lines) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(parse(
        &a,
        "# c\nalg:\n  id: ppo\n  args: {n_steps: 20}\nmetrics:\n  - id: meteor\n  - id: rouge\n",
        &root, &err));
    CHECK_STR(tg_node_at(root, "alg.id")->text, "ppo");
    CHECK_EQ(tg_node_at(root, "alg.id")->line, 3);
    CHECK_EQ(tg_node_at(root, "alg")->line, 2);
    CHECK_STR(tg_node_at(root, "alg")->file, "t.yml");
    CHECK_STR(tg_node_at(root, "metrics.1.id")->text, "rouge");
    CHECK_EQ(tg_node_at(root, "metrics.1.id")->line, 7);
    CHECK(!tg_node_at(root, "metrics.2.id"));
    CHECK(!tg_node_at(root, "alg.id.x"));
    CHECK(tg_node_at(root, "") == root);
    CHECK(!tg_node_get(tg_node_at(root, "metrics"), "0"));
    tg_arena_fini(&a);
}

TEST(json_loads_too) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(
        parse(&a, "{\"a\": [1, 2.5e-3, true, null, \"x\\u00e9\\n\"], \"b\": {}}", &root, &err));
    tg_buf out = {0};
    tg_node_json(root, &out);
    CHECK_STR(out.data, "{\"a\": [1, 0.0025, true, null, \"x\xc3\xa9\\n\"], \"b\": {}}");
    tg_buf_fini(&out);
    tg_arena_fini(&a);
}

/* As json.dumps writes characters beyond U+FFFF. */
TEST(json_with_pairs_of_escapes_loads) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(parse(&a, "{\"a\": [\"\\\\ud83c\\ud83c\\uDF89!\",\n \"\\\"\\u00e9\"],\n\"b\": 1}",
                     &root, &err));
    CHECK_STR(tg_node_at(root, "a")->items[0]->text, "\\ud83c\xf0\x9f\x8e\x89!");
    CHECK_STR(tg_node_at(root, "a")->items[1]->text, "\"\xc3\xa9");
    CHECK_EQ(tg_node_at(root, "b")->line, 3);
    static const char *const broken[] = {"{\"a\": \"\\ud83c\"}", "{\"a\": \"\\udf89\\ud83c\"}",
                                         "{a: \"\\ud83c\\udf89\"}",
                                         "{\"a\": \"\\ud83c\\udf89\", \"a\": 1}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        CHECK_EQ(parse(&a, broken[i], &root, &err), TG_CONFIG);
    tg_arena_fini(&a);
}

/* What PyYAML's safe_load makes of each text (checked against 6.0), and where we go further. */
TEST(scalars_read_as_in_pyyaml) {
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"yes", "true"},
        {"On", "true"},
        {"TRUE", "true"},
        {"off", "false"},
        {"No", "false"},
        {"y", "\"y\""},
        {"tRue", "\"tRue\""},
        {"~", "null"},
        {"Null", "null"},
        {"nUll", "\"nUll\""},
        {"''", "\"\""},
        {"'yes'", "\"yes\""},
        {"\"5\"", "\"5\""},
        {"5", "5"},
        {"+5", "5"},
        {"-7", "-7"},
        {"1_000", "1000"},
        {"010", "8"},
        {"08", "\"08\""},
        {"0x1F", "31"},
        {"0b101", "5"},
        {"0o17", "\"0o17\""},
        {"1:30", "90"},
        {"1:60", "\"1:60\""},
        {"1.5", "1.5"},
        {"1.", "1.0"},
        {".5", "0.5"},
        {"1_0.5", "10.5"},
        {"-1.5e+3", "-1500.0"},
        {".inf", "\".inf\""},
        {"-.INF", "\"-.INF\""},
        {"inf", "\"inf\""},
        {"nan", "\"nan\""},
        {"0x", "\"0x\""},
        {"-", "null"},
        {"+", "\"+\""},
        {"1.2.3", "\"1.2.3\""},
        {"1e", "\"1e\""},
        {"1-2", "\"1-2\""},
        {"_1", "\"_1\""},
        {".", "\".\""},
        {"0x1p3", "\"0x1p3\""},
        {"1e-6", "1.0e-06"},
        {"1E5", "100000.0"},
        {"5e3", "5000.0"},
        {"0", "0"},
        {"0.0", "0.0"},
        {"-0", "0"},
        {"9223372036854775807", "9223372036854775807"},
        {"9223372036854775808", "9.223372036854776e+18"},
        {"1e999", "\"1e999\""},
        {"0.1", "0.1"},
        {"True,", "\"True,\""},
        {"2020-01-01", "\"2020-01-01\""},
        {"!!str 5", "\"5\""},
        {"! 5", "\"5\""},
        {"!!float 5", "5"},
        {"|\n  a\n  b\n", "\"a\\nb\\n\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arena a = {0};
        tg_error err = {0};
        tg_node *root;
        char text[128];
        snprintf(text, sizeof text, "v: %s\n", cases[i].text);
        if (!strcmp(cases[i].text, "-")) snprintf(text, sizeof text, "v:\n");
        CHECK_OK(parse(&a, text, &root, &err));
        tg_buf out = {0};
        tg_node_json(tg_node_get(root, "v"), &out);
        tg_check(out.data && !strcmp(out.data, cases[i].json), __FILE__, __LINE__,
                 "%s gives %s, expected %s", cases[i].text, out.data, cases[i].json);
        tg_buf_fini(&out);
        tg_arena_fini(&a);
    }
}

TEST(typed_readings) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(parse(&a, "{i: 3, f: 1e-6, inf: .inf, q: '.inf', s: x, b: on, m: {}}", &root, &err));
    int64_t i;
    double f;
    bool b;
    CHECK(tg_node_int(tg_node_get(root, "i"), &i) && i == 3);
    CHECK(tg_node_float(tg_node_get(root, "i"), &f) && f == 3.0);
    CHECK(!tg_node_int(tg_node_get(root, "f"), &i));
    CHECK(tg_node_float(tg_node_get(root, "f"), &f) && f == 1e-6);
    CHECK(tg_node_float(tg_node_get(root, "inf"), &f) && isinf(f));
    CHECK(tg_node_float(tg_node_get(root, "q"), &f) && isinf(f));
    CHECK(tg_node_bool(tg_node_get(root, "b"), &b) && b);
    CHECK(!tg_node_bool(tg_node_get(root, "i"), &b));
    CHECK(!tg_node_float(tg_node_get(root, "s"), &f));
    CHECK(!tg_node_float(tg_node_get(root, "m"), &f));
    CHECK(!tg_node_int(NULL, &i));
    CHECK(tg_node_is_null(NULL));
    CHECK(!tg_node_is_null(tg_node_get(root, "m")));
    tg_arena_fini(&a);
}

TEST(numbers_round_trip) {
    const double values[] = {0.1,         1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308,
                             123456789.0, -2.5e-7, 1e22};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        tg_buf out = {0};
        tg_json_number(&out, values[i]);
        tg_node n = {.kind = TG_NODE_SCALAR, .text = out.data};
        double back = 0;
        CHECK(tg_node_float(&n, &back) && back == values[i]);
        CHECK(strchr(out.data, '.') != NULL);
        tg_buf_fini(&out);
    }
    tg_buf out = {0};
    tg_json_number(&out, (double)NAN);
    tg_json_string(&out, "a\"\\\x01\n", 5);
    CHECK_STR(out.data, "null\"a\\\"\\\\\\u0001\\n\"");
    tg_buf_fini(&out);
}

TEST(aliases_and_merge_keys) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(
        parse(&a,
              "base: &b {x: 1, y: 2}\nother: &o {y: 5, z: 6}\none: *b\ntwo:\n  <<: *b\n  y: 9\n"
              "three:\n  <<: [*b, *o]\n  w: 0\nfour: {'<<': 1}\n",
              &root, &err));
    tg_buf out = {0};
    tg_node_json(root, &out);
    CHECK_STR(out.data,
              "{\"base\": {\"x\": 1, \"y\": 2}, \"other\": {\"y\": 5, \"z\": 6}, \"one\": {\"x\": "
              "1, \"y\": 2}, "
              "\"two\": {\"y\": 9, \"x\": 1}, \"three\": {\"w\": 0, \"x\": 1, \"y\": 2, \"z\": 6}, "
              "\"four\": {\"<<\": 1}}");
    CHECK_OK(tg_tree_override(&a, root, "one.x=7", &err));
    CHECK_STR(tg_node_at(root, "base.x")->text, "1"); /* copies, not shares */
    CHECK_STR(tg_node_at(root, "one")->key, "one");
    tg_buf_fini(&out);
    tg_arena_fini(&a);
}

TEST(broken_documents_say_where) {
    CHECK_FAILS("a: 1\nb: 2\na: 3\n", "t.yml:3: the key \"a\" is already on line 1");
    CHECK_FAILS("a: [1, 2\nb: 3\n", "t.yml:2: not valid YAML");
    CHECK_FAILS("a:\n\t- b\n", "t.yml:2: not valid YAML");
    CHECK_FAILS("a: *nowhere\n", "no such anchor");
    CHECK_FAILS("a: &x [1, *x]\n", "no such anchor");
    CHECK_FAILS("a: 1\n---\nb: 2\n", "t.yml:2: a second document");
    CHECK_FAILS("? [1, 2]\n: 3\n", "a key must be a plain word");
    CHECK_FAILS("a: \"x\\0y\"\n", "NUL");
    CHECK_FAILS("a: !!python/object:os.system x\n", "t.yml:1: the YAML tag");
    CHECK_FAILS("a: {<<: 5}\n", "<<: expected a map");
    CHECK_FAILS("a: {<<: [[{b: 1}]]}\n", "<<: expected maps");
    CHECK_FAILS("a: \xff\xfe\n", "not valid text");
}

TEST(limits) {
    char deep[300];
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    deep[200] = '\0';
    CHECK_FAILS(deep, "nested deeper than 64");
    /* Nine levels of ten aliases each would be 10^9 values. */
    CHECK_FAILS("a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
                "more than 100000 values");
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    size_t big = (4 << 20) + 1;
    char *text = tg_alloc(big);
    memset(text, ' ', big);
    CHECK_EQ(tg_tree_parse(&a, "t.yml", text, big, &root, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "larger than"));
    tg_free(text);
    tg_arena_fini(&a);
}

TEST(empty_and_missing_files) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(parse(&a, "", &root, &err));
    CHECK(tg_node_is_null(root));
    REQUIRE_OK(parse(&a, "# only a comment\n", &root, &err));
    CHECK(tg_node_is_null(root));
    CHECK_EQ(tg_tree_load(&a, "/nowhere/x.yml", &root, &err), TG_NOINPUT);
    CHECK(!root || tg_node_is_null(root));
    tg_arena_fini(&a);
}

TEST(overrides) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    REQUIRE_OK(parse(&a, "alg: {args: {n_epochs: 5}, kl: }\nmetrics: [{id: a}]\n", &root, &err));
    static const char *const good[] = {
        "alg.args.n_epochs=2", "alg.args.new=[1, 2]", "alg.kl.coeff=1e-3", "seed=3", "x.y.z={a: b}",
        "metrics.0.id=rouge",  "metrics.1={id: c}",   "text='a = b: c'",   "none="};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_OK(tg_tree_override(&a, root, good[i], &err));
    tg_buf out = {0};
    tg_node_json(root, &out);
    CHECK_STR(
        out.data,
        "{\"alg\": {\"args\": {\"n_epochs\": 2, \"new\": [1, 2]}, \"kl\": {\"coeff\": 0.001}}, "
        "\"metrics\": [{\"id\": \"rouge\"}, {\"id\": \"c\"}], \"seed\": 3, \"x\": {\"y\": {\"z\": "
        "{\"a\": \"b\"}}}, "
        "\"text\": \"a = b: c\", \"none\": null}");
    CHECK_STR(tg_node_at(root, "seed")->file, "command line");
    CHECK_EQ(tg_node_at(root, "x.y.z.a")->line, 0);
    CHECK_EQ(tg_tree_override(&a, root, "noequals", &err), TG_USAGE);
    CHECK_EQ(tg_tree_override(&a, root, "=5", &err), TG_USAGE);
    CHECK_EQ(tg_tree_override(&a, root, "a..b=5", &err), TG_USAGE);
    CHECK_EQ(tg_tree_override(&a, root, "a.=5", &err), TG_USAGE);
    CHECK_EQ(tg_tree_override(&a, root, "seed.x=5", &err), TG_CONFIG);
    CHECK_STR(err.msg, "command line: seed: \"3\" is a value, not a section that could hold x");
    CHECK_EQ(tg_tree_override(&a, root, "metrics.7.id=5", &err), TG_CONFIG);
    CHECK_STR(err.msg,
              "command line: metrics: is a list of 2: expected an index from 0 to 2, found \"7\"");
    CHECK_EQ(tg_tree_override(&a, root, "a=[1,", &err), TG_CONFIG);
    CHECK(strstr(err.msg, "\"a=[1,\": the value is not valid YAML"));
    tg_buf_fini(&out);
    tg_arena_fini(&a);
}

TEST(out_of_memory_is_an_error) {
    const char *text = "a: &x {b: [1, 2, {c: d}]}\ne: *x\nf: {<<: *x, g: 1}\n";
    tg_status st = TG_NOMEM;
    for (int n = 0; n < 200 && st == TG_NOMEM; n++) {
        tg_arena a = {0};
        tg_error err = {0};
        tg_node *root;
        tg_alloc_fail_after(n);
        st = parse(&a, text, &root, &err);
        if (st == TG_OK) st = tg_tree_override(&a, root, "a.b.0=5", &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        tg_arena_fini(&a);
    }
    CHECK_EQ(st, TG_OK);
}

TEST(model_names_are_located) {
    const char *tmp = tg_test_tmpdir();
    char dir[256], snap[400], refs[400];
    tg_error err = {0};
    snprintf(dir, sizeof dir, "%s/models/my/model", tmp);
    REQUIRE_OK(tg_dir_create(dir, &err));
    snprintf(snap, sizeof snap, "%s/hub/models--org--net/snapshots/abc123", tmp);
    REQUIRE_OK(tg_dir_create(snap, &err));
    snprintf(refs, sizeof refs, "%s/hub/models--org--net/refs", tmp);
    REQUIRE_OK(tg_dir_create(refs, &err));
    strcat(refs, "/main");
    REQUIRE_OK(tg_file_write_atomic(refs, "abc123\n", 7, &err));
    char models[256], hub[256];
    snprintf(models, sizeof models, "%s/models", tmp);
    snprintf(hub, sizeof hub, "%s/hub", tmp);
    setenv("TEXTGEN_MODELS", models, 1);
    setenv("HF_HUB_CACHE", hub, 1);
    setenv("HF_HOME", "", 1);
    setenv("HOME", "/nonexistent-home", 1);
    char *path;
    CHECK_OK(tg_model_locate(dir, &path, &err));
    CHECK_STR(path, dir);
    tg_free(path);
    CHECK_OK(tg_model_locate("my/model", &path, &err));
    CHECK_STR(path, dir);
    tg_free(path);
    CHECK_OK(tg_model_locate("org/net", &path, &err));
    CHECK_STR(path, snap);
    tg_free(path);
    char huggingface[300];
    snprintf(huggingface, sizeof huggingface, "%s/huggingface", tmp);
    REQUIRE(!mkdir(huggingface, 0755));
    strcat(huggingface, "/hub");
    REQUIRE(!symlink(hub, huggingface));
    static const char *const variables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                            "XDG_CACHE_HOME"};
    for (size_t i = 0; i < 4; i++) { /* each of them alone */
        for (size_t k = 0; k < 4; k++) setenv(variables[k], k != i ? "" : i < 2 ? hub : tmp, 1);
        CHECK_OK(tg_model_locate("org/net", &path, &err));
        if (path) CHECK(strstr(path, "/models--org--net/snapshots/abc123"));
        tg_free(path);
    }
    setenv("HF_HUB_CACHE", hub, 1);
    CHECK_EQ(tg_model_locate("no/such", &path, &err), TG_NOINPUT);
    CHECK(!path && strstr(err.msg, "\"no/such\"") && strstr(err.msg, models) &&
          strstr(err.msg, "models--no--such"));
    CHECK(strstr(err.msg, "TEXTGEN_MODELS"));
    CHECK_EQ(tg_model_locate("textgen/no-such", &path, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "configs/models/no-such"));
    CHECK_EQ(tg_model_locate("", &path, &err), TG_NOINPUT);
}

TEST_MAIN
