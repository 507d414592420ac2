/* An open Parquet file: where the pages of the columns in use are, and a cache of decoded ones.
 *
 * Memory is the index (a few bytes a page) and the cache, whatever the file's size. Pages may be
 * asked for by any number of threads. */
#ifndef TG_ENV_PARQUET_FILE_H
#define TG_ENV_PARQUET_FILE_H

#include "env-server/datapool/parquet/page.h"
#include "env-server/datapool/table/datafile.h"

typedef struct tg_pq_file tg_pq_file;

/* columns: NULL-terminated names of top-level columns, NULL for all; unknown ones are passed over,
 * and where none is known all are read.
 * TG_UNSUPPORTED: one of them has a type that is not read. */
tg_status tg_pq_file_open(tg_pq_file **out, const char *path, const char *const *columns,
                          tg_error *err) TG_MUST_CHECK;
void tg_pq_file_close(tg_pq_file **f);

const tg_pq_meta *tg_pq_file_meta(const tg_pq_file *f);
tg_datafile *tg_pq_file_data(const tg_pq_file *f);
bool tg_pq_file_uses(const tg_pq_file *f, size_t top_level);

/* One entry of a record in a leaf column. */
typedef struct tg_pq_entry {
    uint8_t rep, def;
    tg_pq_value value;          /* where def is the leaf's max_def */
    const unsigned char *bytes; /* that texts lie in */
} tg_pq_entry;

/* A leaf column's part of a row. */
typedef struct tg_pq_record {
    tg_pq_entry *entries;
    size_t n, cap;
    tg_pq_page **pages; /* held while the entries are used */
    size_t n_pages, pages_cap;
} tg_pq_record;

/* Replaces nothing: *r must be zeroed or released. */
tg_status tg_pq_file_record(tg_pq_file *f, size_t leaf, uint64_t row, tg_pq_record *r,
                            tg_error *err) TG_MUST_CHECK;
void tg_pq_record_release(tg_pq_file *f, tg_pq_record *r);

#endif
