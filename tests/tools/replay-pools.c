/* replay-pools: recordings of RL4LMs's own data pools against ours under `compat: rl4lms`.
 *
 *   replay-pools DIR [SCRATCH]     DIR holds pools.json; files are written below SCRATCH (a temporary
 *                                  folder when it is not given)
 *
 * The recorded rows are written in the layout a user would have (JSON lines as `datasets` exports
 * them, UnifiedQA's .tsv, CRD3's folders), opened through the registry with the recorded arguments, and
 * every sample is compared: id and its type, prompt, references, meta data. Where RL4LMs raised, we must
 * refuse. Exit code 0 when all agree. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "env-server/datapool/datapool.h"
#include "env-server/datapool/numpy.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdlib.h>

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

static bool same_sample(const tg_sample *s, const json_t *want, bool integer_ids, char *why,
                        size_t size) {
    char number[32] = "";
    const json_t *id = at(want, "id"), *refs = at(want, "references"),
                 *meta = at(want, "meta_data");
    if (json_is_integer(id))
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    const char *want_id = json_is_integer(id) ? number : json_string_value(id);
    if (json_is_integer(id) != integer_ids || strcmp(s->id, want_id) != 0)
        snprintf(why, size, "id %s, recorded %s", s->id, want_id);
    else if (strcmp(s->prompt_text, text_at(want, "prompt_or_input_text")) != 0)
        snprintf(why, size, "prompt \"%.200s\", recorded \"%.200s\"", s->prompt_text,
                 text_at(want, "prompt_or_input_text"));
    else if (s->n_references != json_array_size(refs))
        snprintf(why, size, "%zu references, recorded %zu", s->n_references, json_array_size(refs));
    for (size_t i = 0; !*why && i < s->n_references; i++)
        if (strcmp(s->references[i], json_string_value(json_array_get(refs, i))) != 0)
            snprintf(why, size, "reference %zu \"%.200s\", recorded \"%.200s\"", i,
                     s->references[i], json_string_value(json_array_get(refs, i)));
    if (!*why && meta) { /* absent: the note says that it is left out */
        json_t *ours =
            *s->meta_json ? json_loads(s->meta_json, JSON_DECODE_ANY, NULL) : json_null();
        if (!json_equal(ours, meta)) {
            char *text = json_dumps(meta, JSON_ENCODE_ANY);
            snprintf(why, size, "meta %.300s, recorded %.300s", s->meta_json, text);
            free(text);
        }
        json_decref(ours);
    }
    return !*why;
}

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
    json_t *section = json_pack("{s:s, s:o}", "id", pool, "args", args);
    char *text = json_dumps(section, JSON_ENSURE_ASCII);
    json_decref(section);
    tg_node *root;
    tg_choice choice;
    tg_status st = tg_tree_parse(arena, "pools.json", text, strlen(text), &root, err);
    free(text);
    if (st == TG_OK)
        st = tg_choice_read(tg_datapool_registry(), root, "datapool", arena, &choice, err);
    if (st == TG_OK) st = tg_choice_require_built(&choice, err);
    const tg_datapool_context context = {.compat = true, .seed = (uint64_t)r->numpy_seed};
    return st == TG_OK ? tg_datapool_open(p, (const tg_datapool_ops *)choice.entry, choice.options,
                                          &context, split, err)
                       : st;
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
            (void)same_sample(&s, json_array_get(samples, i), p.ops->integer_ids, why, size);
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

static bool part_agrees(const replay *r, const char *ratios, size_t part, const json_t *ids) {
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root;
    tg_choice c;
    tg_datapool p = {0};
    char yaml[1024];
    snprintf(yaml, sizeof yaml, "{id: jsonl, args: {path: \"%s/split/all.jsonl\", ratios: %s}}",
             r->scratch, ratios);
    tg_status st = tg_tree_parse(&arena, "split", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK)
        st = tg_choice_read(tg_datapool_registry(), root, "datapool", &arena, &c, &err);
    if (st == TG_OK)
        st = tg_datapool_open(&p, (const tg_datapool_ops *)c.entry, c.options, NULL,
                              (tg_split)(TG_SPLIT_TRAIN + (int)part), &err);
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
        json_array_foreach(at(one, "ids"), part, ids) same &= part_agrees(r, ratios, part, ids);
        if (!same) printf("split %s: other ids\n", ratios);
        free(ratios);
        passed += same;
        r->failed += !same;
    }
    r->passed += passed;
    printf("%-24s %2zu of %2zu cases agree\n", "split by ratios", passed,
           json_array_size(at(split, "cases")));
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3 || argv[1][0] == '-') {
        fprintf(stderr, "usage: replay-pools DIR [SCRATCH]\n");
        return 64;
    }
    char *path = tg_path_join(argv[1], "pools.json");
    json_error_t e;
    json_t *root = json_load_file(path, 0, &e);
    if (!root) {
        fprintf(stderr, "replay-pools: %s: %s\n", path, e.text);
        return 66;
    }
    tg_log_set_level(TG_LOG_ERROR);
    replay r = {.pools = at(root, "pools"), .scratch = argc == 3 ? argv[2] : tg_test_tmpdir()};
    const char *pool;
    json_t *recorded;
    json_object_foreach(r.pools, pool, recorded) replay_pool(&r, pool, recorded);
    replay_split(&r, at(root, "split_method"));
    json_decref(root);
    tg_free(path);
    printf("%zu passed, %zu failed\n", r.passed, r.failed);
    return r.failed != 0;
}
