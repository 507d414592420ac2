/* Pages: headers, and one page decoded. */
#ifndef TG_ENV_PARQUET_PAGE_H
#define TG_ENV_PARQUET_PAGE_H

#include "env-server/datapool/parquet/values.h"

typedef enum tg_pq_page_kind {
    TG_PQ_DATA,
    TG_PQ_INDEX,
    TG_PQ_DICTIONARY,
    TG_PQ_DATA_V2
} tg_pq_page_kind;

typedef struct tg_pq_header {
    int kind;
    uint32_t size, packed;         /* bytes of its content, unpacked and in the file */
    uint32_t n_values;             /* nulls and empty lists included */
    uint32_t n_rows;               /* version 2 only */
    uint32_t rep_bytes, def_bytes; /* version 2: before the values, not packed */
    int encoding, rep_encoding, def_encoding;
    bool is_packed, has_crc;
    uint32_t crc;
    size_t header_bytes;
} tg_pq_header;

/* Reads the header at in[0]; afterwards header_bytes + packed <= len. */
tg_status tg_pq_header_read(const unsigned char *in, size_t len, tg_pq_header *out,
                            tg_error *err) TG_MUST_CHECK;

typedef struct tg_pq_page {
    size_t n;           /* levels */
    uint8_t *rep, *def; /* NULL where all are 0 */
    uint32_t *value_at; /* number of the value at or behind each level; NULL: the level itself */
    uint32_t *starts;   /* levels at which a record begins; NULL: each of them */
    size_t n_starts;
    tg_pq_values values;
    unsigned char *data;           /* unpacked content, which plain texts lie in */
    struct tg_pq_page *dictionary; /* whose texts the values mean, or NULL; counted */
    size_t memory;                 /* bytes held, roughly */
    unsigned refs;                 /* private to the cache from here */
    uint64_t key, stamp;
} tg_pq_page;

/* Decodes the content behind a header. dictionary: the chunk's, or NULL; values become its values. */
tg_status tg_pq_page_read(const tg_pq_node *leaf, int codec, const tg_pq_header *h,
                          const unsigned char *content, tg_pq_page *dictionary, tg_pq_page **out,
                          tg_error *err) TG_MUST_CHECK;
/* Does not touch the dictionary's count. */
void tg_pq_page_free(tg_pq_page *page);

#endif
