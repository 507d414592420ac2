/* Data pools on tiny data sets in every layout: tests/golden/pools, written by tests/oracle/gen_pools.py
 * together with the samples that each pool must give. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "tests/support/pool_case.h"
#include "tests/support/tg_test.h"

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
