/* Data pools on tiny data sets in every layout: tests/golden/pools, written by tests/oracle/gen_pools.py
 * together with the samples that each pool must give. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "proto/split.h"
#include "tests/support/pool_case.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <stdlib.h>

static json_t *cases(void) {
    tg_buf text = {0};
    tg_error err = {0};
    json_t *list = json_array();
    tg_log_set_level(TG_LOG_ERROR);
    if (tg_file_read(tg_test_path("golden/pools/cases.jsonl"), 1 << 24, &text, &err) != TG_OK)
        printf("  %s\n", err.msg);
    for (char *at = text.data, *end; at && (end = strchr(at, '\n')); at = end + 1)
        json_array_append_new(list, json_loadb(at, (size_t)(end - at), 0, NULL));
    tg_buf_fini(&text);
    return list;
}

/* Paths of a case are below golden/pools. */
static json_t *args_of(const json_t *one) {
    static const char *const names[] = {"path", "train", "val", "test"};
    json_t *args = json_deep_copy(json_object_get(one, "args"));
    for (size_t i = 0; i < 4; i++) {
        const char *path = json_string_value(json_object_get(args, names[i]));
        char whole[1024];
        if (!path) continue;
        snprintf(whole, sizeof whole, "%s/%s", tg_test_path("golden/pools"), path);
        json_object_set_new(args, names[i], json_string(whole));
    }
    return args;
}

static tg_status open_case(const json_t *one, const json_t *args, tg_arena *arena, tg_datapool *p,
                           tg_error *err) {
    tg_split split = TG_SPLIT_TRAIN;
    CHECK(tg_split_parse(json_string_value(json_object_get(one, "split")), &split));
    const tg_datapool_context context = {
        .compat = json_is_true(json_object_get(one, "compat")),
        .seed = (uint64_t)json_integer_value(json_object_get(one, "seed"))};
    return pool_case_open(json_string_value(json_object_get(one, "pool")), args, &context, split,
                          arena, p, err);
}

static void check_case(size_t number, const json_t *one, const json_t *args) {
    tg_arena arena = {0};
    tg_datapool p;
    tg_error err = {0};
    char why[1200] = "", *text = json_dumps(json_object_get(one, "args"), 0);
    const json_t *samples = json_object_get(one, "samples");
    tg_status st = open_case(one, args, &arena, &p, &err);
    if (!samples) {
        const char *want = json_string_value(json_object_get(one, "error"));
        const char *status = json_string_value(json_object_get(one, "status"));
        if (!strstr(st == TG_OK ? "" : err.msg, want) || strcmp(tg_status_name(st), status) != 0)
            snprintf(why, sizeof why, "%s \"%s\", expected %s \"%s\"", tg_status_name(st), err.msg,
                     status, want);
    } else if (st != TG_OK) {
        snprintf(why, sizeof why, "%s", err.msg);
    } else if (p.count != json_array_size(samples)) {
        snprintf(why, sizeof why, "%llu samples, expected %zu", (unsigned long long)p.count,
                 json_array_size(samples));
    }
    for (size_t i = 0; st == TG_OK && !*why && i < p.count; i++) {
        tg_sample s;
        if (tg_datapool_get(&p, i, &arena, &s, &err) != TG_OK)
            snprintf(why, sizeof why, "%s", err.msg);
        else
            (void)pool_case_same(&p, &s, json_array_get(samples, i), "prompt", "meta", why,
                                 sizeof why);
    }
    tg_check(!*why, __FILE__, __LINE__, "case %zu, %s %s %s: %s", number,
             json_string_value(json_object_get(one, "pool")),
             json_string_value(json_object_get(one, "split")), text, why);
    free(text);
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
}

TEST(samples_of_every_layout) {
    json_t *list = cases(), *one;
    size_t i;
    CHECK(json_array_size(list) > 200);
    json_array_foreach(list, i, one) {
        json_t *args = args_of(one);
        check_case(i, one, args);
        json_decref(args);
    }
    json_decref(list);
}

/* What was checked at opening does not decide the samples. */
TEST(lazy_pools_give_the_same_samples) {
    json_t *list = cases(), *one;
    size_t i, n = 0;
    json_array_foreach(list, i, one) {
        if (!json_object_get(one, "samples")) continue;
        json_t *args = args_of(one);
        json_object_set_new(args, "check", json_string("lazy"));
        check_case(i, one, args);
        json_decref(args);
        n++;
    }
    CHECK(n > 150);
    json_decref(list);
}

/* A shuffle is a permutation of the same rows, the same for everyone, another for another seed. */
TEST(shuffles) {
    char seen[2][8][32];
    for (int seed = 0; seed < 2; seed++) {
        for (int again = 0; again < 2; again++) {
            tg_arena arena = {0};
            tg_datapool p;
            tg_error err = {0};
            char path[1024];
            snprintf(path, sizeof path, "%s/rows-jsonl/all.jsonl", tg_test_path("golden/pools"));
            json_t *args =
                json_pack("{s:s, s:s, s:i}", "path", path, "prompt", "q", "shuffle", seed);
            REQUIRE_OK(pool_case_open("jsonl", args, NULL, TG_SPLIT_TRAIN, &arena, &p, &err));
            json_decref(args);
            CHECK_EQ(p.count, 8);
            bool rows[8] = {false};
            for (size_t i = 0; i < 8; i++) {
                tg_sample s;
                REQUIRE_OK(tg_datapool_get(&p, i, &arena, &s, &err));
                int number = atoi(s.prompt_text + strlen("Question "));
                CHECK(number >= 0 && number < 8 && !rows[number]);
                rows[number & 7] = true;
                if (again)
                    CHECK_STR(s.prompt_text, seen[seed][i]);
                else
                    snprintf(seen[seed][i], sizeof seen[seed][i], "%s", s.prompt_text);
            }
            tg_datapool_close(&p);
            tg_arena_fini(&arena);
        }
    }
    CHECK(memcmp(seen[0], seen[1], sizeof seen[0]) != 0);
}

static void expect_first(const char *pool, const json_t *args, tg_split split, const char *prompt) {
    tg_arena arena = {0};
    tg_datapool p;
    tg_error err = {0};
    tg_sample s;
    REQUIRE_OK(pool_case_open(pool, args, NULL, split, &arena, &p, &err));
    if (prompt) {
        REQUIRE_OK(tg_datapool_get(&p, 0, &arena, &s, &err));
        CHECK_STR(s.prompt_text, prompt);
    } else
        CHECK_EQ(p.count, 0);
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
}

TEST(usual_places_and_left_out_splits) {
    static const char row[] = "{\"document\": \"d\", \"summary\": \"s\"}\n";
    const char *const files[][2] = {
        {"hub/datasets--EdinburghNLP--xsum/refs/main", "abc"},
        {"hub/datasets--EdinburghNLP--xsum/snapshots/abc/data/test.jsonl", row},
        {"home/narrative_qa/dev.tsv", "Q\ta\n"}};
    tg_error err = {0};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", tg_test_tmpdir(), files[i][0]);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        REQUIRE_OK(tg_dir_create(path, &err));
        *slash = '/';
        REQUIRE_OK(tg_file_write_atomic(path, files[i][1], strlen(files[i][1]), &err));
    }
    char hub[512], home[512];
    snprintf(hub, sizeof hub, "%s/hub", tg_test_tmpdir());
    snprintf(home, sizeof home, "%s/home", tg_test_tmpdir());
    setenv("HF_HUB_CACHE", hub, 1);
    setenv("HOME", home, 1);
    setenv("TEXTGEN_DATA", tg_test_path("golden/pools"), 1);
    json_t *none = json_object();
    expect_first("commongen", none, TG_SPLIT_VAL, "summarize: field look stand ");
    setenv("TEXTGEN_DATA", "/nowhere", 1);
    expect_first("narrative_qa", none, TG_SPLIT_VAL, "q");
    expect_first("xsum", none, TG_SPLIT_TEST, "dTL;DR:");
    json_decref(none);
    char train[512];
    snprintf(train, sizeof train, "%s/xsum/train.jsonl", tg_test_path("golden/pools"));
    json_t *args = json_pack("{s:s}", "train", train);
    expect_first("xsum", args, TG_SPLIT_TRAIN, "Document 0\nwith linesTL;DR:");
    expect_first("xsum", args, TG_SPLIT_VAL, NULL);
    json_decref(args);
}

/* How many samples a pool has of rows-parquet/all.parquet, whose columns are q, a, lang, score; -1: the config is refused. */
static int64_t filtered(const char *pool, json_t *args, json_t *filter) {
    char path[512];
    tg_arena arena = {0};
    tg_datapool p;
    tg_error err = {0};
    snprintf(path, sizeof path, "%s/rows-parquet/all.parquet", tg_test_path("golden/pools"));
    json_object_set_new(args, "path", json_string(path));
    json_object_set_new(args, "filter", filter);
    tg_status st = pool_case_open(pool, args, NULL, TG_SPLIT_TRAIN, &arena, &p, &err);
    int64_t n = st == TG_OK ? (int64_t)p.count : st == TG_CONFIG ? -1 : 0;
    if (st == TG_CONFIG) CHECK(strstr(err.msg, "datapool.args.filter: too many fields"));
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
    json_decref(args);
    return n;
}

/* Conditions that each row meets: of n fields, or n times of one. */
static json_t *many(size_t n, bool fields, const char *last) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, fields ? json_sprintf("absent%zu != 1", i)
                                           : json_sprintf("score >= %d", -(int)i));
    json_array_append_new(list, json_string(last));
    return list;
}

TEST(a_filter_reads_all_its_columns) {
    for (size_t n = 1; n <= 60; n++) {
        CHECK_EQ(
            filtered("parquet", json_pack("{s:s}", "prompt", "q"), many(n, true, "lang == de")), 3);
        CHECK_EQ(filtered("parquet", json_pack("{s:s}", "prompt", "q"),
                          many(5 * n, false, "lang == de")),
                 3);
    }
    CHECK_EQ(filtered("parquet", json_pack("{s:s}", "prompt", "q"), many(64, true, "lang == de")),
             -1);
}

/* A pool of a certain data set reads few columns, and what the filter asks for besides. */
TEST(a_filter_may_ask_for_columns_of_no_other_use) {
    CHECK_EQ(filtered("wmt16",
                      json_pack("{s:s, s:s, s:s}", "wmt_id", "wmt16", "source_language", "q",
                                "target_language", "a"),
                      json_string("lang == de")),
             3);
}

typedef struct reading {
    const tg_datapool *pool;
    uint64_t first;
    size_t bad;
} reading;

static void *read_pool(void *arg) {
    reading *r = arg;
    tg_arena arena = {0};
    for (uint64_t k = 0; k < 20 * r->pool->count; k++) {
        uint64_t i = (r->first + 7 * k) % r->pool->count;
        tg_sample s;
        tg_error err = {0};
        tg_arena_reset(&arena);
        r->bad += tg_datapool_get(r->pool, i, &arena, &s, &err) != TG_OK || s.index != i;
    }
    tg_arena_fini(&arena);
    return NULL;
}

/* Pools with a cache of their own. */
TEST(threads_share_a_pool) {
    static const char *const pools[][3] = {
        {"totto", "totto-hf", "{}"},
        {"daily_dialog", "dailydialog-hf", "{\"context_size\": 1}"},
        {"crd3", "crd3", "{\"max_context_size\": 2}"}};
    for (size_t i = 0; i < 3; i++) {
        tg_arena arena = {0};
        tg_datapool p;
        tg_error err = {0};
        char path[512];
        snprintf(path, sizeof path, "%s/%s", tg_test_path("golden/pools"), pools[i][1]);
        json_t *args = json_loads(pools[i][2], 0, NULL);
        json_object_set_new(args, "path", json_string(path));
        REQUIRE_OK(pool_case_open(pools[i][0], args, NULL, TG_SPLIT_TEST, &arena, &p, &err));
        json_decref(args);
        pthread_t threads[4];
        reading readings[4];
        for (size_t t = 0; t < 4; t++) {
            readings[t] = (reading){&p, t, 0};
            REQUIRE(!pthread_create(&threads[t], NULL, read_pool, &readings[t]));
        }
        for (size_t t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
            CHECK_EQ(readings[t].bad, 0);
        }
        tg_datapool_close(&p);
        tg_arena_fini(&arena);
    }
}

/* One case of each pool and layout, with every allocation failing once. */
TEST(every_allocation_may_fail) {
    json_t *list = cases(), *one;
    const char *last = "";
    char key[256], last_key[256] = "";
    size_t i, tried = 0;
    json_array_foreach(list, i, one) {
        const json_t *path = json_object_get(json_object_get(one, "args"), "path");
        const char *pool = json_string_value(json_object_get(one, "pool"));
        snprintf(key, sizeof key, "%s %s", pool, path ? json_string_value(path) : "");
        if (!json_object_get(one, "samples") || !strcmp(key, last_key)) continue;
        snprintf(last_key, sizeof last_key, "%s", key);
        last = pool;
        json_t *args = args_of(one);
        for (int64_t k = 0;; k++) {
            tg_arena arena = {0};
            tg_datapool p;
            tg_error err = {0};
            tg_sample s;
            tg_alloc_fail_after(k);
            tg_status st = open_case(one, args, &arena, &p, &err);
            if (st == TG_OK && p.count) st = tg_datapool_get(&p, 0, &arena, &s, &err);
            tg_alloc_fail_after(-1);
            tg_datapool_close(&p);
            tg_arena_fini(&arena);
            if (st == TG_OK) break;
            if (!CHECK(st == TG_NOMEM || st == TG_DATA || st == TG_NOINPUT))
                printf("  %s: %s\n", key, err.msg);
            if (k > 5000) {
                CHECK(!"it never succeeds");
                break;
            }
        }
        json_decref(args);
        tried++;
    }
    CHECK(tried > 20);
    CHECK(*last);
    json_decref(list);
}

TEST_MAIN
