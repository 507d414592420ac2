/* What file.c (opening, the page index), file_cache.c (decoded pages) and file_record.c (records) share. The index never changes
 * after opening; the cache is behind the lock. */
#ifndef TG_ENV_PARQUET_FILE_IMPL_H
#define TG_ENV_PARQUET_FILE_IMPL_H

#include "env-server/datapool/parquet/file.h"

#include <pthread.h>

typedef struct tg_pq_place {
    uint64_t offset;    /* of the header */
    uint64_t first_row; /* of the records that begin in the page */
    uint32_t n_rows;
    uint32_t group;
} tg_pq_place;

typedef struct tg_pq_column {
    tg_pq_place *pages;
    size_t n, cap;
    uint64_t *dictionary; /* offset of each group's, 0: none */
} tg_pq_column;

struct tg_pq_file {
    tg_datafile *data;
    const unsigned char *bytes;
    size_t len;
    tg_arena arena;
    tg_pq_meta meta;
    bool *used;            /* top-level columns */
    tg_pq_column *columns; /* by leaf; empty for those not in use */
    pthread_mutex_t lock;
    tg_pq_page **cache;
    size_t n_cached, cache_cap, cached_bytes;
    uint64_t clock;
};

/* file_cache.c */
/* The page whose header is at offset, held until tg_pq_file_release. A data page keeps its dictionary held as well. */
tg_status tg_pq_file_page(tg_pq_file *f, size_t leaf, uint32_t group, uint64_t offset,
                          tg_pq_page **out, tg_error *err) TG_MUST_CHECK;
/* page: may be NULL. */
void tg_pq_file_release(tg_pq_file *f, tg_pq_page *page);

#endif
