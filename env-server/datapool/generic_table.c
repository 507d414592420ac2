/* The tables behind pools of any layout: files by their format, folders, and the columns that are read. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/generic_impl.h"
#include "env-server/datapool/table/files.h"
#include "env-server/datapool/template.h"
#include "proto/split.h"

#include <string.h>

enum { MAX_COLUMNS = 128, MAX_FILTERED = 64 };

/* ---- one file ------------------------------------------------------------------------------ */

tg_status tg_generic_open_jsonl(const tg_rowpool *p, const char *path, const char *const *columns,
                                tg_table *out, tg_error *err) {
    (void)p;
    (void)columns;
    return tg_table_open_jsonl(out, path, err);
}
tg_status tg_generic_open_csv(const tg_rowpool *p, const char *path, const char *const *columns,
                              tg_table *out, tg_error *err) {
    static const tg_csv_format format = {.separator = ','};
    (void)p;
    (void)columns;
    return tg_table_open_csv(out, path, &format, err);
}
tg_status tg_generic_open_tsv(const tg_rowpool *p, const char *path, const char *const *columns,
                              tg_table *out, tg_error *err) {
    static const tg_csv_format format = {.separator = '\t'};
    (void)p;
    (void)columns;
    return tg_table_open_csv(out, path, &format, err);
}
tg_status tg_generic_open_parquet(const tg_rowpool *p, const char *path, const char *const *columns,
                                  tg_table *out, tg_error *err) {
    (void)p;
    return tg_table_open_parquet(out, path, columns, err);
}

/* The text files of a folder (of its part for the split, where it has one), or one file. */
static tg_status list_texts(const tg_rowpool *p, const char *path, tg_files *files, tg_error *err) {
    if (!tg_path_is_dir(path)) return tg_files_push(files, tg_strdup(path), err);
    tg_files below = {0};
    tg_status st = tg_files_list(&below, path, NULL, err);
    for (size_t i = 0; i < below.n && st == TG_OK; i++) {
        const char *name = tg_file_name(below.paths[i]);
        if (!tg_split_named(name, p->split)) continue;
        if (tg_path_is_dir(below.paths[i]))
            st = tg_files_list(files, below.paths[i], ".txt", err);
        else if (tg_str_ends(name, ".txt") || tg_str_ends(name, ".txt.gz"))
            st = tg_files_push(files, tg_strdup(below.paths[i]), err);
    }
    tg_files_fini(&below);
    if (st == TG_OK && !files->n) st = tg_files_list(files, path, ".txt", err);
    if (st == TG_OK && !files->n)
        st = tg_fail(err, TG_NOINPUT, "%s: no .txt files for the %s split", path,
                     tg_split_name(p->split));
    return st;
}

tg_status tg_generic_open_text(const tg_rowpool *p, const char *path, const char *const *columns,
                               tg_table *out, tg_error *err) {
    const tg_generic_options *o = p->options;
    tg_files files = {0};
    (void)columns;
    tg_status st = list_texts(p, path, &files, err);
    if (st == TG_OK && !strcmp(o->unit, "file")) {
        size_t n;
        tg_files_sort_by_number(&files);
        char **paths = tg_files_take(&files, &n);
        return tg_table_open_texts(out, paths, n, err);
    }
    tg_table *parts = tg_alloc_array(files.n ? files.n : 1, sizeof *parts);
    size_t n = 0;
    if (st == TG_OK && !parts) st = tg_fail_nomem(err, files.n);
    for (; n < files.n && st == TG_OK; n++)
        st = tg_table_open_lines(&parts[n], files.paths[n], err);
    if (st == TG_OK)
        st = tg_table_concat(out, parts, n, err);
    else
        for (size_t i = 0; parts && i < n; i++) tg_table_close(&parts[i]);
    tg_free(parts);
    tg_files_fini(&files);
    return st;
}

/* ---- the table of a split ------------------------------------------------------------------ */

/* What a columnar file is read for. */
static tg_status list_columns(const tg_generic_options *o, tg_arena *arena, const char **columns,
                              tg_error *err) {
    const char *const fields[] = {o->prompt_template ? NULL : o->prompt,
                                  o->references ? o->references : "references",
                                  o->id ? o->id : "id", o->meta ? o->meta : "meta", o->weight};
    size_t n = 0;
    tg_status st = tg_filter_columns(o->common.filter, arena, columns, &n, MAX_FILTERED, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i]) columns[n++] = tg_arena_strndup(arena, fields[i], strcspn(fields[i], "."));
    const char *const templates[] = {o->prompt_template, o->reference_template};
    for (size_t i = 0; i < 2; i++) {
        const char *at = templates[i], *field;
        size_t len;
        while (at && tg_template_next(&at, &field, &len)) {
            if (n + 1 == MAX_COLUMNS)
                return tg_fail(err, TG_CONFIG, "datapool.args.template: too many fields");
            const char *dot = memchr(field, '.', len);
            columns[n++] = tg_arena_strndup(arena, field, dot ? (size_t)(dot - field) : len);
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!columns[i]) return tg_fail_nomem(err, 64);
    columns[n] = NULL;
    return TG_OK;
}

tg_status tg_generic_open_table(tg_rowpool *p, tg_generic_opener *open, const char *file,
                                tg_error *err) {
    const char *columns[MAX_COLUMNS];
    tg_arena arena = {0};
    tg_status st = list_columns(p->options, &arena, columns, err);
    bool folder = open != tg_generic_open_text && tg_path_is_dir(file);
    if (st == TG_OK && folder)
        st = tg_dataset_open_folder(file, p->split, columns, &p->table, err);
    else if (st == TG_OK)
        st = open(p, file, columns, &p->table, err);
    if (st == TG_NOINPUT && !folder && !tg_path_exists(file))
        st = tg_fail(err, TG_NOINPUT, "%s: not found; expected %s for the %s split", file,
                     open == tg_generic_open_jsonl     ? "a file with one JSON object a line"
                     : open == tg_generic_open_parquet ? "a Parquet file"
                     : open == tg_generic_open_text    ? "a text file or a folder of them"
                                                    : "a file with the names of its columns first",
                     tg_split_name(p->split));
    tg_arena_fini(&arena);
    return st;
}
