/* A table: the rows of a data set as JSON objects, by number, read when asked for.
 *
 *     tg_table t;
 *     tg_table_open(&t, "train.parquet", columns, err);
 *     json_t *row;
 *     tg_table_row(&t, 7, &row, err);            // TG_DATA: "train.jsonl:8: not JSON: …"
 *     json_decref(row);
 *     tg_table_close(&t);
 *
 * Opening finds where the rows are; a row's content is looked at when it is read. Read-only and
 * usable by any number of threads after opening. Memory is an index of a few bytes a row. */
#ifndef TG_ENV_TABLE_H
#define TG_ENV_TABLE_H

#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_table tg_table;

typedef struct tg_table_ops {
    /* *out is owned by the caller. Messages need not say where: tg_table_row does. */
    tg_status (*row)(const tg_table *t, uint64_t i, json_t **out, tg_error *err);
    void (*where)(const tg_table *t, uint64_t i, char *out, size_t size); /* "file:line" */
    void (*close)(void *state);
} tg_table_ops;

struct tg_table {
    const tg_table_ops *ops; /* NULL: closed */
    void *state;
    uint64_t count;
    uint64_t digest;  /* of the content */
    const char *name; /* of its (first) file or its folder, owned by the state; may be NULL */
};

tg_status tg_table_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) TG_MUST_CHECK;
void tg_table_where(const tg_table *t, uint64_t i, char *out, size_t size);
void tg_table_close(tg_table *t); /* also of a zeroed one */

/* ---- files with one row after the other -------------------------------------------------------- */

/* One JSON object a line; blank lines are passed over. */
tg_status tg_table_open_jsonl(tg_table *t, const char *path, tg_error *err) TG_MUST_CHECK;

typedef struct tg_csv_format {
    char separator;
    const char *const *names; /* NULL-terminated, for a file without header; NULL: first record */
} tg_csv_format;
/* Fields as texts; an object with a key for every name. A record with another number of fields than
 * there are names is bad. */
tg_status tg_table_open_csv(tg_table *t, const char *path, const tg_csv_format *format,
                            tg_error *err) TG_MUST_CHECK;

/* columns: NULL-terminated names of the columns that are read, NULL for all; those that a file
 * lacks are left out, and a file that lacks all of them is read whole. */
tg_status tg_table_open_parquet(tg_table *t, const char *path, const char *const *columns,
                                tg_error *err) TG_MUST_CHECK;

/* {"text": …} for each line of a text. */
tg_status tg_table_open_lines(tg_table *t, const char *path, tg_error *err) TG_MUST_CHECK;
/* {"text", "file", "folder"} (names without the path) for each of the files, which are owned by the
 * table from here on, also on failure. */
tg_status tg_table_open_texts(tg_table *t, char **files, size_t n, tg_error *err) TG_MUST_CHECK;

/* By the name's end: .jsonl, .json, .csv, .tsv (each also .gz), .parquet. */
tg_status tg_table_open(tg_table *t, const char *path, const char *const *columns,
                        tg_error *err) TG_MUST_CHECK;
/* Is the name one that tg_table_open reads? The rank orders kinds, 0 first; -1: no. */
int tg_table_kind(const char *path);

/* n tables one after the other; they are owned by *t from here on, also on failure. */
tg_status tg_table_concat(tg_table *t, tg_table *parts, size_t n, tg_error *err) TG_MUST_CHECK;

/* A row's text for the table's users: TG_DATA unless it is UTF-8 without NUL. */
tg_status tg_table_text(const char *bytes, size_t len, json_t **out, tg_error *err) TG_MUST_CHECK;

/* Growing list of byte offsets. */
typedef struct tg_offsets {
    uint64_t *at;
    size_t n, cap;
} tg_offsets;
bool tg_offsets_push(tg_offsets *o, uint64_t at); /* false: out of memory */

#endif
