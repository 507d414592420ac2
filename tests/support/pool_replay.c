/* Recordings of RL4LMs's data pools against ours; see pool_replay.h. */
#include "tests/support/pool_replay.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "env-server/datapool/numpy.h"
#include "proto/split.h"
#include "tests/support/pool_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct replay {
    json_t *pools;
    const char *scratch;
    size_t passed, failed;
    int64_t numpy_seed; /* last one set */
} replay;

static const char *const hub_splits[] = {"train", "validation", "test"};
static const char *const our_splits[] = {"train", "val", "test"};

static json_t *at(const json_t *o, const char *key) {
    return json_object_get(o, key);
}
static const char *text_at(const json_t *o, const char *key) {
    return json_string_value(json_object_get(o, key));
}

static void write_file(const replay *r, const char *folder, const char *name, const char *text) {
    tg_buf path = {0};
    tg_error err = {0};
    tg_buf_printf(&path, "%s/%s/%s", r->scratch, folder, name);
    char *slash = strrchr(path.data, '/');
    *slash = '\0';
    tg_status st = tg_dir_create(path.data, &err);
    *slash = '/';
    if (st == TG_OK) st = tg_file_write_atomic(path.data, text, strlen(text), &err);
    if (st != TG_OK) fprintf(stderr, "replay-pools: %s\n", err.msg);
    tg_buf_fini(&path);
}

static void write_rows(const replay *r, const char *pool, const char *split, const json_t *rows) {
    tg_buf text = {0};
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)rows, i, row) {
        char *line = json_dumps(row, JSON_COMPACT | JSON_ENSURE_ASCII);
        tg_buf_printf(&text, "%s\n", line);
        free(line);
    }
    char name[64];
    snprintf(name, sizeof name, "%s.jsonl", split);
    write_file(r, pool, name, text.data ? text.data : "");
    tg_buf_fini(&text);
}

/* The rows of a dataset call; a text stands for rows that are written elsewhere. */
static void write_dataset(const replay *r, const char *pool, const json_t *dataset, size_t first) {
    for (size_t i = first; i < 3; i++) {
        const json_t *rows = at(dataset, hub_splits[i]);
        if (json_is_string(rows)) rows = at(dataset, "train");
        if (rows) write_rows(r, pool, hub_splits[i], rows);
    }
}

static const json_t *wmt16_rows(const replay *r) {
    const char *key;
    json_t *value;
    json_object_foreach(at(at(r->pools, "wmt16"), "inputs"), key, value) {
        if (!strncmp(key, "load_dataset(", 13)) return value;
    }
    return NULL;
}

static void write_inputs(const replay *r, const char *pool, const json_t *inputs) {
    const char *key;
    json_t *value;
    if (json_is_string(inputs)) inputs = at(at(r->pools, "imdb"), "inputs");
    json_object_foreach((json_t *)inputs, key, value) {
        if (!strncmp(key, "load_dataset(", 13)) {
            if (json_is_string(value)) /* "rows of pool wmt16" */
                write_dataset(r, pool, wmt16_rows(r), 1);
            else
                write_dataset(r, pool, value, 0);
        } else if (!strcmp(key, "tsv_file_contents")) {
            write_file(r, pool, "train.tsv", text_at(value, "train"));
            write_file(r, pool, "dev.tsv", text_at(value, "val"));
            write_file(r, pool, "test.tsv", text_at(value, "test"));
        } else if (!strcmp(key, "episode_lists")) {
            for (size_t i = 0; i < 3; i++) {
                char name[64];
                tg_buf text = {0};
                size_t k;
                json_t *episode;
                json_array_foreach(at(value, our_splits[i]), k, episode)
                    tg_buf_printf(&text, "%s\n", json_string_value(episode));
                snprintf(name, sizeof name, "data/aligned data/%s_files", our_splits[i]);
                write_file(r, pool, name, text.data ? text.data : "");
                tg_buf_fini(&text);
            }
        } else if (!strcmp(key, "cleaned_episodes")) {
            const char *episode;
            json_t *object;
            json_object_foreach(value, episode, object) {
                char name[128], *text = json_dumps(object, 0);
                snprintf(name, sizeof name, "data/cleaned data/%s.json", episode);
                write_file(r, pool, name, text);
                free(text);
            }
        }
    }
}

/* ---- one run ------------------------------------------------------------------------------- */

static tg_status open_run(const replay *r, const char *pool, const json_t *run, tg_arena *arena,
                          tg_datapool *p, tg_error *err) {
    json_t *args = json_deep_copy(at(run, "args"));
    tg_split split;
    char folder[512];
    if (!tg_split_parse(text_at(args, "split"), &split)) {
        json_decref(args);
        return tg_fail(err, TG_USAGE, "not a split");
    }
    json_object_del(args, "split");
    snprintf(folder, sizeof folder, "%s/%s", r->scratch, pool);
    if (at(run, "tsv_file_contents")) {
        strncat(folder, "-own", 8);
        write_file(r, folder + strlen(r->scratch) + 1, "train.tsv",
                   text_at(run, "tsv_file_contents"));
    }
    if (strcmp(pool, "dummy_pool") != 0) json_object_set_new(args, "path", json_string(folder));
    /* a first shuffle that is not train's: numpy was seeded for it */
    if (at(run, "numpy_global_seed_set_before_call") && split != TG_SPLIT_TRAIN)
        json_object_set(args, "seed", at(run, "default_rng_seed"));
    const tg_datapool_context context = {.compat = true, .seed = (uint64_t)r->numpy_seed};
    tg_status st = pool_case_open(pool, args, &context, split, arena, p, err);
    json_decref(args);
    return st;
}

static bool same_permutation(const json_t *run) {
    const json_t *want = at(at(run, "random"), "permutation");
    size_t n = json_array_size(want);
    uint64_t *order;
    if (!n) return true;
    if (tg_numpy_permutation((uint64_t)json_integer_value(at(run, "default_rng_seed")), n, &order,
                             NULL) != TG_OK)
        return false;
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same &= order[i] == (uint64_t)json_integer_value(json_array_get(want, i));
    tg_free(order);
    return same;
}

static bool run_agrees(replay *r, const char *pool, const json_t *run, char *why, size_t size) {
    tg_arena arena = {0};
    tg_datapool p = {0};
    tg_error err = {0};
    if (at(run, "numpy_global_seed_set_before_call"))
        r->numpy_seed = json_integer_value(at(run, "numpy_global_seed_set_before_call"));
    tg_status st = open_run(r, pool, run, &arena, &p, &err);
    const json_t *samples = at(run, "samples");
    size_t kept = json_array_size(samples);
    if (at(run, "error")) {
        if (st == TG_OK)
            snprintf(why, size, "RL4LMs raised %s, we opened it",
                     text_at(at(run, "error"), "type"));
    } else if (st != TG_OK) {
        snprintf(why, size, "%s", err.msg);
    } else if (p.count != (uint64_t)json_integer_value(at(run, "n"))) {
        snprintf(why, size, "%llu samples, recorded %lld", (unsigned long long)p.count,
                 (long long)json_integer_value(at(run, "n")));
    } else if (!same_permutation(run)) {
        snprintf(why, size, "numpy's permutation differs");
    }
    for (size_t i = 0; st == TG_OK && !*why && i < kept; i++) {
        /* where not all were kept, they are the first and the last */
        uint64_t index = kept < p.count && i + 1 == kept ? p.count - 1 : i;
        tg_sample s;
        if (tg_datapool_get(&p, index, &arena, &s, &err) != TG_OK)
            snprintf(why, size, "%s", err.msg);
        else
            (void)pool_case_same(&p, &s, json_array_get(samples, i), "prompt_or_input_text",
                                 "meta_data", why, size);
    }
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
    return !*why;
}

static void replay_pool(replay *r, const char *pool, const json_t *recorded) {
    size_t i, passed = 0, samples = 0;
    json_t *run;
    write_inputs(r, pool, at(recorded, "inputs"));
    json_array_foreach(at(recorded, "runs"), i, run) {
        char why[1024] = "", *args = json_dumps(at(run, "args"), 0);
        if (run_agrees(r, pool, run, why, sizeof why)) {
            passed++;
            samples += json_array_size(at(run, "samples"));
        } else {
            printf("%s %s: %s\n", pool, args, why);
            r->failed++;
        }
        free(args);
    }
    r->passed += passed;
    printf("%-24s %2zu of %2zu runs agree, %3zu samples\n", pool, passed,
           json_array_size(at(recorded, "runs")), samples);
}

/* ---- split(ratios) ------------------------------------------------------------------------- */

static bool part_agrees(const replay *r, const json_t *ratios, size_t part, const json_t *ids) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_datapool p;
    char path[512];
    snprintf(path, sizeof path, "%s/split/all.jsonl", r->scratch);
    json_t *args = json_pack("{s:s, s:O}", "path", path, "ratios", ratios);
    tg_status st = pool_case_open("jsonl", args, NULL, (tg_split)(TG_SPLIT_TRAIN + (int)part),
                                  &arena, &p, &err);
    json_decref(args);
    bool same = st == TG_OK && p.count == json_array_size(ids);
    for (size_t i = 0; same && i < p.count; i++) {
        tg_sample s;
        char want[24];
        snprintf(want, sizeof want, "%lld", (long long)json_integer_value(json_array_get(ids, i)));
        same = tg_datapool_get(&p, i, &arena, &s, &err) == TG_OK && !strcmp(s.id, want);
    }
    tg_datapool_close(&p);
    tg_arena_fini(&arena);
    return same;
}

static void replay_split(replay *r, const json_t *split) {
    tg_buf rows = {0};
    for (json_int_t i = 0; i < json_integer_value(at(split, "n")); i++)
        tg_buf_printf(&rows, "{\"prompt\": \"p\", \"id\": %lld}\n", (long long)i);
    write_file(r, "split", "all.jsonl", rows.data ? rows.data : "");
    tg_buf_fini(&rows);
    size_t i, part, passed = 0;
    json_t *one, *ids;
    json_array_foreach(at(split, "cases"), i, one) {
        char *ratios = json_dumps(at(one, "ratios"), 0);
        bool same = true;
        json_array_foreach(at(one, "ids"), part, ids) same &=
            part_agrees(r, at(one, "ratios"), part, ids);
        if (!same) printf("split %s: other ids\n", ratios);
        free(ratios);
        passed += same;
        r->failed += !same;
    }
    r->passed += passed;
    printf("%-24s %2zu of %2zu cases agree\n", "split by ratios", passed,
           json_array_size(at(split, "cases")));
}

int pool_replay(const char *dir, const char *scratch, size_t *passed, size_t *failed) {
    char *path = tg_path_join(dir, "pools.json");
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    if (!root) fprintf(stderr, "replay-pools: %s: %s\n", path, e.text);
    tg_free(path);
    if (!root) return 66;
    tg_log_set_level(TG_LOG_ERROR);
    replay r = {.pools = at(root, "pools"), .scratch = scratch};
    const char *pool;
    json_t *recorded;
    json_object_foreach(r.pools, pool, recorded) replay_pool(&r, pool, recorded);
    replay_split(&r, at(root, "split_method"));
    json_decref(root);
    *passed = r.passed, *failed = r.failed;
    return r.failed != 0;
}
