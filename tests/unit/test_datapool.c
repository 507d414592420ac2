/* Data pools: dummy_pool as in RL4LMs, jsonl with its fields, templates and bad lines. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "env-server/datapool/datapool.h"
#include "env-server/datapool/template.h"
#include "tests/support/tg_test.h"

static tg_arena arena;
static tg_error err;

static const char *write_file(const char *name, const char *text) {
    char *path = tg_path_join(tg_test_tmpdir(), name);
    const char *kept = tg_arena_strdup(&arena, path);
    tg_free(path);
    CHECK_OK(tg_file_write_atomic(kept, text, strlen(text), &err));
    return kept;
}

/* Opens {id, args} written as YAML. */
static tg_status open_pool(tg_datapool *p, const char *yaml, tg_split split) {
    tg_node *root;
    tg_choice c;
    memset(p, 0, sizeof *p);
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK)
        st = tg_choice_read(tg_datapool_registry(), root, "datapool", &arena, &c, &err);
    if (st == TG_OK) st = tg_choice_require_built(&c, &err);
    if (st == TG_OK)
        st = tg_datapool_open(p, (const tg_datapool_ops *)c.entry, c.options, NULL, split, &err);
    return st;
}

static tg_status open_jsonl(tg_datapool *p, const char *file, const char *more, tg_split split) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "{id: jsonl, args: {path: \"%s\"%s%s}}", file, more ? ", " : "",
             more ? more : "");
    return open_pool(p, yaml, split);
}

TEST(dummy_pool) {
    tg_datapool p;
    tg_sample s;
    for (tg_split split = TG_SPLIT_TRAIN; split <= TG_SPLIT_TEST; split++) {
        REQUIRE_OK(open_pool(&p, "{id: dummy_pool, args: {prompt: Hello}}", split));
        CHECK_EQ(p.count, 100);
        REQUIRE_OK(tg_datapool_get(&p, 99, &arena, &s, &err));
        CHECK_STR(s.id, "99");
        CHECK_STR(s.prompt_text, "Hello");
        CHECK_EQ(s.n_references, 0);
        CHECK_STR(s.meta_json, "");
        CHECK_EQ(tg_datapool_get(&p, 100, &arena, &s, &err), TG_DATA);
        tg_datapool_close(&p);
    }
    CHECK_EQ(open_pool(&p, "{id: dummy_pool, args: {}}", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK(strstr(err.msg, "prompt"));
    CHECK_EQ(open_pool(&p, "{id: dummy_pool, args: {prompt: a, n_samples: 0}}", TG_SPLIT_TRAIN),
             TG_CONFIG);
}

TEST(ids) {
    tg_datapool p;
    CHECK_EQ(open_pool(&p, "{id: dummy_pol, args: {}}", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK(strstr(err.msg, "did you mean 'dummy_pool'"));
    CHECK_EQ(open_pool(&p, "{id: imdb, args: {seed: 42, path: /nowhere}}", TG_SPLIT_TRAIN),
             TG_NOINPUT);
    CHECK(strstr(err.msg, "aclImdb/train/{neg,pos}") && strstr(err.msg, "to_parquet") &&
          strstr(err.msg, "/nowhere"));
    CHECK_EQ(open_pool(&p, "{id: imdb, args: {sed: 42}}", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK_EQ(open_pool(&p, "{id: dummy_pool, arg: {}}", TG_SPLIT_TRAIN), TG_CONFIG);
}

TEST(jsonl_fields) {
    const char *f = write_file("a.jsonl", "{\"prompt\": \"p0\", \"references\": [\"r\", \"s\"], "
                                          "\"id\": 7, \"meta\": {\"k\": [1]}}\r\n"
                                          "\n"
                                          "{\"prompt\": \"p1 \\u00e9\", \"references\": \"only\"}\n"
                                          "{\"prompt\": \"p2\"}");
    tg_datapool p;
    tg_sample s;
    REQUIRE_OK(open_jsonl(&p, f, NULL, TG_SPLIT_VAL));
    CHECK_EQ(p.count, 3);
    REQUIRE_OK(tg_datapool_get(&p, 0, &arena, &s, &err));
    CHECK_STR(s.id, "7");
    CHECK_EQ(s.n_references, 2);
    CHECK_STR(s.references[1], "s");
    CHECK_STR(s.meta_json, "{\"k\":[1]}");
    REQUIRE_OK(tg_datapool_get(&p, 1, &arena, &s, &err));
    CHECK_STR(s.prompt_text, "p1 é");
    CHECK_STR(s.references[0], "only");
    CHECK_STR(s.id, "val_1");
    REQUIRE_OK(tg_datapool_get(&p, 2, &arena, &s, &err));
    CHECK_EQ(s.n_references, 0);
    CHECK_EQ(s.index, 2);
    tg_datapool_close(&p);
    REQUIRE_OK(open_jsonl(&p, f, "max_size: 2", TG_SPLIT_VAL));
    CHECK_EQ(p.count, 2);
    tg_datapool_close(&p);
}

TEST(jsonl_named_fields_and_template) {
    const char *f = write_file("b.jsonl", "{\"doc\": {\"body\": \"B\", \"n\": 3}, \"tags\": "
                                          "[\"x\", \"y\"], \"sum\": [\"S\"], \"key\": \"K\"}\n");
    tg_datapool p;
    tg_sample s;
    REQUIRE_OK(open_jsonl(
        &p, f, "template: \"{{Sum}} {doc.body}/{doc.n}: {tags}\", references: sum, id: key",
        TG_SPLIT_TRAIN));
    REQUIRE_OK(tg_datapool_get(&p, 0, &arena, &s, &err));
    CHECK_STR(s.prompt_text, "{Sum} B/3: x y");
    CHECK_STR(s.references[0], "S");
    CHECK_STR(s.id, "K");
    tg_datapool_close(&p);
    CHECK_EQ(open_jsonl(&p, f, "prompt: key, references: summ", TG_SPLIT_TRAIN), TG_DATA);
    CHECK(strstr(err.msg, "b.jsonl:1: ") && strstr(err.msg, "\"summ\"") &&
          strstr(err.msg, "doc, tags, sum, key"));
    CHECK_EQ(open_jsonl(&p, f, "template: \"{doc.title}\"", TG_SPLIT_TRAIN), TG_DATA);
    CHECK_EQ(open_jsonl(&p, f, "template: \"{doc\"", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK_EQ(open_jsonl(&p, f, "template: \"doc}\"", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK_EQ(open_jsonl(&p, f, "template: \"{}\"", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK_EQ(open_jsonl(&p, f, "template: \"{doc}\"", TG_SPLIT_TRAIN),
             TG_DATA); /* an object is no text */
}

TEST(jsonl_bad_lines) {
    const char *f = write_file(
        "c.jsonl", "{\"prompt\": \"good\"}\n{\"prompt\": 5}\nnot json\n[1]\n{\"prompt\": \"also\", "
                   "\"references\": [1]}\n{\"prompt\": \"fine\"}\n");
    tg_datapool p;
    tg_sample s;
    CHECK_EQ(open_jsonl(&p, f, NULL, TG_SPLIT_TRAIN), TG_DATA);
    CHECK(strstr(err.msg, "c.jsonl:2: ") && strstr(err.msg, "not a text"));
    REQUIRE_OK(open_jsonl(&p, f, "on_error: skip", TG_SPLIT_TRAIN));
    CHECK_EQ(p.count, 2);
    REQUIRE_OK(tg_datapool_get(&p, 1, &arena, &s, &err));
    CHECK_STR(s.prompt_text, "fine");
    CHECK_STR(s.id, "train_1");
    tg_datapool_close(&p);
    REQUIRE_OK(open_jsonl(&p, f, "check: lazy", TG_SPLIT_TRAIN));
    CHECK_EQ(p.count, 6);
    CHECK_OK(tg_datapool_get(&p, 0, &arena, &s, &err));
    CHECK_EQ(tg_datapool_get(&p, 2, &arena, &s, &err), TG_DATA);
    CHECK(strstr(err.msg, "c.jsonl:3: ") && strstr(err.msg, "not JSON"));
    tg_datapool_close(&p);
    CHECK_EQ(open_jsonl(&p, write_file("d.jsonl", "\n \n"), NULL, TG_SPLIT_TRAIN), TG_DATA);
    CHECK_EQ(open_jsonl(&p, write_file("e.jsonl", ""), NULL, TG_SPLIT_TRAIN), TG_DATA);
    CHECK_EQ(open_jsonl(&p, write_file("g.jsonl", "nope\n"), "on_error: skip", TG_SPLIT_TRAIN),
             TG_DATA);
    CHECK_EQ(open_jsonl(&p, "/nowhere/x.jsonl", NULL, TG_SPLIT_TRAIN), TG_NOINPUT);
    CHECK(strstr(err.msg, "/nowhere/x.jsonl") && strstr(err.msg, "one JSON object a line"));
}

TEST(jsonl_splits) {
    const char *f = write_file("h.jsonl", "{\"prompt\": \"x\"}\n");
    char yaml[512];
    tg_datapool p;
    snprintf(yaml, sizeof yaml, "{id: jsonl, args: {train: \"%s\"}}", f);
    REQUIRE_OK(open_pool(&p, yaml, TG_SPLIT_TRAIN));
    CHECK_EQ(p.count, 1);
    tg_datapool_close(&p);
    REQUIRE_OK(open_pool(&p, yaml, TG_SPLIT_VAL)); /* left out: known to be empty */
    CHECK_EQ(p.count, 0);
    tg_datapool_close(&p);
    CHECK_EQ(open_pool(&p, "{id: jsonl, args: {val: a}}", TG_SPLIT_TRAIN), TG_CONFIG);
    CHECK_EQ(open_pool(&p, "{id: jsonl, args: {path: b, val: a}}", TG_SPLIT_TRAIN), TG_CONFIG);
}

/* Samples of a part of two rows; `log` gets what was said of it. */
static uint64_t part_of_two(const char *rows, const char *ratios, tg_split split, tg_buf *log) {
    char more[80];
    const char *said = write_file("ratios.log", "");
    tg_datapool p;
    snprintf(more, sizeof more, "ratios: %s", ratios);
    CHECK_OK(tg_log_set_file(said, &err));
    CHECK_OK(open_jsonl(&p, rows, more, split));
    uint64_t n = p.count;
    tg_datapool_close(&p);
    CHECK_OK(tg_log_set_file(NULL, &err));
    tg_buf_fini(log);
    CHECK_OK(tg_file_read(said, 1 << 16, log, &err));
    return n;
}

/* A part that has a ratio but no sample is said by name. */
TEST(jsonl_ratios) {
    const char *f = write_file("l.jsonl", "{\"prompt\": \"x\"}\n{\"prompt\": \"y\"}\n");
    tg_buf log = {0};
    CHECK_EQ(part_of_two(f, "[0.5, 0.4, 0]", TG_SPLIT_TRAIN, &log), 1);
    CHECK_EQ(log.len, 0);
    CHECK_EQ(part_of_two(f, "[0.5, 0.4, 0]", TG_SPLIT_TEST, &log), 0); /* none is wanted */
    CHECK_EQ(log.len, 0);
    CHECK_EQ(part_of_two(f, "[0.5, 0.4, 0]", TG_SPLIT_VAL, &log), 0);
    CHECK(log.len && strstr(log.data, "datapool.args.ratios: 0.4 of 2 samples is less than one: "
                                      "the val split is empty"));
    CHECK_EQ(part_of_two(f, "[0.3, 0.7]", TG_SPLIT_TRAIN, &log), 0);
    CHECK(log.len && strstr(log.data, "the train split is empty"));
    tg_buf_fini(&log);
}

TEST(jsonl_weights) {
    const char *f =
        write_file("i.jsonl", "{\"prompt\": \"x\", \"w\": 2.5}\n{\"prompt\": \"y\", \"w\": 0}\n");
    tg_datapool p;
    double w = 0;
    REQUIRE_OK(open_jsonl(&p, f, "weight: w", TG_SPLIT_TRAIN));
    CHECK_OK(p.ops->weight(p.state, 0, &w, &err));
    CHECK_NEAR(w, 2.5, 0);
    tg_datapool_close(&p);
    static const char *const bad[] = {"-1", "\"-0.5\"", "\"1e999\"", "\"inf\"", "\"nan\"", "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char row[80];
        snprintf(row, sizeof row, "{\"prompt\": \"x\", \"w\": %s}\n", bad[i]);
        const char *g = write_file("j.jsonl", row);
        tg_check(open_jsonl(&p, g, "weight: w", TG_SPLIT_TRAIN) == TG_DATA, __FILE__, __LINE__,
                 "weight %s is taken", bad[i]);
        CHECK(strstr(err.msg, "field \"w\" is not a finite number of at least 0"));
    }
}

TEST(jsonl_survives_every_failing_allocation) {
    const char *f = write_file(
        "k.jsonl", "{\"prompt\": \"p0\", \"references\": [\"r\", \"s\"], \"meta\": 1}\n");
    int failures = 0;
    for (int64_t n = 0; n < 200; n++) {
        tg_datapool p;
        tg_sample s;
        tg_arena a = {0};
        tg_alloc_fail_after(n);
        tg_status st = open_jsonl(&p, f, "template: \"{prompt}!\"", TG_SPLIT_TRAIN);
        if (st == TG_OK) {
            st = tg_datapool_get(&p, 0, &a, &s, &err);
            tg_datapool_close(&p);
        }
        tg_alloc_fail_after(-1);
        tg_arena_fini(&a);
        if (st == TG_OK) break;
        CHECK_EQ(st, TG_NOMEM);
        failures++;
    }
    CHECK(failures > 3 && failures < 200);
    tg_arena_fini(&arena); /* last test: all that the tests kept */
}

TEST_MAIN
