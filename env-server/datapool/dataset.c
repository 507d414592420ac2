/* Looking for the files of a data set. Every place that was tried is kept for the message. */
#include "env-server/datapool/dataset.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/config/locate.h"
#include "env-server/datapool/table/files.h"
#include "proto/split.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 96 }; /* of a pool and its filter */

bool tg_split_named(const char *name, tg_split split) {
    static const char *const words[][7] = {
        [TG_SPLIT_TRAIN] = {"train", "training", NULL},
        [TG_SPLIT_VAL] = {"validation", "valid", "valid1", "val", "dev", NULL},
        [TG_SPLIT_TEST] = {"test", "testing", NULL}};
    while (*name) {
        size_t n = 0;
        while (isalnum((unsigned char)name[n])) n++;
        for (size_t i = 0; words[split][i]; i++)
            if (n == strlen(words[split][i]) && !strncmp(name, words[split][i], n)) return true;
        name += n ? n : 1;
    }
    return false;
}

/* ---- files of a split in a folder ---------------------------------------------------------- */

/* "train-00001-of-00004.parquet" */
static bool is_shard(const char *path) {
    const char *of = strstr(tg_file_name(path), "-of-");
    return of && isdigit((unsigned char)of[4]) && isdigit((unsigned char)of[-1]);
}

/* Keeps the split's files of the best kind; in the folder of a split all files are meant. */
static void choose(tg_files *f, tg_split split, bool all) {
    int best = 1 << 20;
    for (size_t i = 0; i < f->n; i++) {
        int kind = tg_table_kind(f->paths[i]);
        if (kind >= 0 && kind < best && (all || tg_split_named(tg_file_name(f->paths[i]), split)))
            best = kind;
    }
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        char *path = f->paths[i];
        if (tg_table_kind(path) == best && (all || tg_split_named(tg_file_name(path), split)))
            f->paths[kept++] = path;
        else
            tg_free(path);
    }
    f->n = kept;
}

static tg_status open_shards(const tg_files *f, const char *const *columns, tg_table *out,
                             tg_error *err) {
    tg_table *parts = tg_alloc_array(f->n, sizeof *parts);
    if (!parts) return tg_fail_nomem(err, f->n * sizeof *parts);
    tg_status st = TG_OK;
    size_t n = 0;
    for (; n < f->n && st == TG_OK; n++) st = tg_table_open(&parts[n], f->paths[n], columns, err);
    if (st == TG_OK)
        st = tg_table_concat(out, parts, n, err);
    else
        for (size_t i = 0; i < n; i++) tg_table_close(&parts[i]);
    tg_free(parts);
    return st;
}

static tg_status open_files(const char *dir, tg_split split, bool all, const char *const *columns,
                            tg_table *out, tg_error *err) {
    tg_files f = {0};
    tg_status st = tg_files_list(&f, dir, NULL, err);
    if (st == TG_OK) choose(&f, split, all);
    for (size_t i = 0; i < f.n && f.n > 1 && st == TG_OK; i++)
        if (!is_shard(f.paths[i]))
            st = tg_fail(err, TG_DATA,
                         "%s: %s and %s could both be the %s split; name the file in "
                         "datapool.args.%s",
                         dir, tg_file_name(f.paths[0]), tg_file_name(f.paths[1]),
                         tg_split_name(split), tg_split_name(split));
    if (st == TG_OK && f.n) st = open_shards(&f, columns, out, err);
    tg_files_fini(&f);
    return st;
}

tg_status tg_dataset_open_folder(const char *dir, tg_split split, const char *const *columns,
                                 tg_table *out, tg_error *err) {
    tg_status st = open_files(dir, split, false, columns, out, err);
    if (st != TG_OK || out->ops) return st;
    tg_files f = {0}; /* a folder for each split */
    st = tg_files_list(&f, dir, NULL, err);
    for (size_t i = 0; i < f.n && st == TG_OK && !out->ops; i++)
        if (tg_split_named(tg_file_name(f.paths[i]), split) && tg_path_is_dir(f.paths[i]))
            st = open_files(f.paths[i], split, true, columns, out, err);
    tg_files_fini(&f);
    return st;
}

/* ---- places -------------------------------------------------------------------------------- */

typedef struct search {
    tg_rowpool *pool;
    const tg_dataset *d;
    tg_split split;
    const char *const *columns;
    tg_buf tried;
} search;

static void tried(search *s, const char *place) {
    tg_buf_printf(&s->tried, "%s%s", s->tried.len ? ", " : "", place);
}

static bool found(const search *s) {
    return s->pool->table.ops != NULL;
}

/* What save_to_disk and the cache of `datasets` hold; not readable here, but known. */
static bool holds_arrow(const char *dir) {
    tg_files f = {0};
    bool arrow = tg_files_list(&f, dir, ".arrow", NULL) == TG_OK && f.n > 0;
    tg_files_fini(&f);
    static const char *const marks[] = {"dataset_dict.json", "state.json"};
    for (size_t i = 0; i < 2 && !arrow; i++) {
        char *mark = tg_path_join(dir, marks[i]);
        arrow = mark && tg_path_exists(mark);
        tg_free(mark);
    }
    return arrow;
}

static tg_status try_file(search *s, const char *path, tg_error *err) {
    const tg_place place = {path, true, s->split, s->pool};
    tg_status st = s->d->native ? s->d->native(&place, &s->pool->table, err) : TG_OK;
    if (st == TG_OK && !found(s)) st = tg_table_open(&s->pool->table, path, s->columns, err);
    return st;
}

static tg_status try_folder(search *s, const char *dir, tg_error *err) {
    if (!tg_path_is_dir(dir)) {
        tried(s, dir);
        return TG_OK;
    }
    const tg_place place = {dir, false, s->split, s->pool};
    tg_status st = s->d->native ? s->d->native(&place, &s->pool->table, err) : TG_OK;
    const char *const below[] = {"", s->d->config, "data", "main"};
    for (size_t i = 0; i < sizeof below / sizeof *below && st == TG_OK && !found(s); i++) {
        if (!below[i]) continue;
        char *sub = *below[i] ? tg_path_join(dir, below[i]) : tg_strdup(dir);
        st = sub ? tg_dataset_open_folder(sub, s->split, s->columns, &s->pool->table, err)
                 : tg_fail_nomem(err, strlen(dir));
        tg_free(sub);
    }
    if (st == TG_OK && !found(s) && holds_arrow(dir))
        st = tg_fail(err, TG_UNSUPPORTED,
                     "%s: Arrow files of datasets' save_to_disk are not read here; export them: "
                     "python3 -c 'from datasets import load_from_disk as l; "
                     "[d.to_parquet(f\"%s/{k}.parquet\") for k, d in l(\"%s\").items()]'",
                     dir, dir, dir);
    if (st == TG_OK && !found(s)) tried(s, dir);
    return st;
}

/* A path of the config: it must be there. */
static tg_status try_named(search *s, const char *path, tg_error *err) {
    if (tg_path_is_dir(path)) return try_folder(s, path, err);
    if (tg_path_exists(path)) return try_file(s, path, err);
    const tg_place prefix = {path, true, s->split, s->pool}; /* of two files, for translations */
    tg_status st = s->d->native ? s->d->native(&prefix, &s->pool->table, err) : TG_OK;
    if (st == TG_OK && !found(s)) tried(s, path);
    return st;
}

static tg_status try_below(search *s, const char *variable, const char *name, tg_error *err) {
    const char *base = getenv(variable);
    if (!base || !*base || found(s)) return TG_OK;
    char *dir = tg_path_join(base, name);
    tg_status st = dir ? try_folder(s, dir, err) : tg_fail_nomem(err, strlen(name));
    tg_free(dir);
    return st;
}

static tg_status try_usual(search *s, tg_error *err) {
    tg_status st = TG_OK;
    const char *data = getenv("TEXTGEN_DATA");
    if (!data || !*data) tried(s, "$TEXTGEN_DATA (not set)");
    for (size_t i = 0; s->d->names[i] && st == TG_OK; i++)
        st = try_below(s, "TEXTGEN_DATA", s->d->names[i], err);
    if (st == TG_OK && s->d->home) st = try_below(s, "HOME", s->d->home, err);
    for (size_t i = 0; s->d->hub[i] && st == TG_OK && !found(s); i++) {
        char *dir;
        st = tg_hub_dataset(s->d->hub[i], &dir, err);
        if (st == TG_OK && dir) st = try_folder(s, dir, err);
        tg_free(dir);
    }
    if (st == TG_OK && !found(s) && s->d->hub[0]) tried(s, "the Hugging Face cache");
    return st;
}

static tg_status not_found(const search *s, tg_error *err) {
    const tg_dataset *d = s->d;
    static const char *const hub_split[] = {"", "train", "validation", "test"};
    tg_buf export = {0};
    if (d->hub[0])
        tg_buf_printf(&export,
                      " or an export of `datasets`: load_dataset(\"%s\"%s%s%s)"
                      "[\"%s\"].to_parquet(\"%s.parquet\")",
                      d->hub[0], d->config ? ", \"" : "", d->config ? d->config : "",
                      d->config ? "\"" : "", hub_split[s->split], hub_split[s->split]);
    tg_fail(
        err, TG_NOINPUT,
        "%s, %s split: not found. Expected: %.230s%.200s. Set datapool.args.path to the folder, "
        "or TEXTGEN_DATA to the folder that holds %s/; looked in: %.180s",
        d->title, tg_split_name(s->split), d->layout, export.data ? export.data : "", d->names[0],
        s->tried.data ? s->tried.data : "nowhere");
    tg_buf_fini(&export);
    return TG_NOINPUT;
}

/* Those that the pool reads, and those that the config's filter looks at. */
static tg_status list_columns(const tg_pool_common *o, const char *const *columns,
                              const char **wanted, tg_arena *arena, tg_error *err) {
    size_t n = 0;
    for (; columns && columns[n]; n++) {
        TG_ASSERT(n < MAX_COLUMNS);
        wanted[n] = columns[n];
    }
    tg_status st = tg_filter_columns(o->filter, arena, wanted, &n, MAX_COLUMNS, err);
    wanted[n] = NULL;
    return st;
}

tg_status tg_dataset_open(tg_rowpool *p, const tg_dataset *d, tg_split split,
                          const char *const *columns, tg_error *err) {
    const tg_pool_common *o = p->common;
    const char *by_split[] = {NULL, o->train, o->val, o->test};
    const char *wanted[MAX_COLUMNS + 1];
    tg_arena arena = {0};
    search s = {p, d, split, columns ? wanted : NULL, {0}};
    bool named = o->train || o->val || o->test;
    if (!by_split[split] && !o->path && named && split != TG_SPLIT_TRAIN) return TG_OK;
    tg_status st = list_columns(o, columns, wanted, &arena, err);
    const char *path = by_split[split] ? by_split[split] : o->path;
    if (st == TG_OK) st = path ? try_named(&s, path, err) : try_usual(&s, err);
    if (st == TG_OK && !found(&s)) st = not_found(&s, err);
    tg_buf_fini(&s.tried);
    tg_arena_fini(&arena);
    return st;
}
