/* A Parquet file's footer: its schema as a tree and where the pages of each column lie. */
#ifndef TG_ENV_PARQUET_META_H
#define TG_ENV_PARQUET_META_H

#include "common/base/arena.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_pq_type {
    TG_PQ_BOOLEAN,
    TG_PQ_INT32,
    TG_PQ_INT64,
    TG_PQ_INT96,
    TG_PQ_FLOAT,
    TG_PQ_DOUBLE,
    TG_PQ_BYTE_ARRAY,
    TG_PQ_FIXED,
    TG_PQ_GROUP /* no leaf */
} tg_pq_type;

typedef enum tg_pq_repetition { TG_PQ_REQUIRED, TG_PQ_OPTIONAL, TG_PQ_REPEATED } tg_pq_repetition;

/* What the bytes mean, as far as it matters here. */
typedef enum tg_pq_meaning {
    TG_PQ_PLAIN,
    TG_PQ_LIST, /* also a map: a list of its entries */
    TG_PQ_UNSIGNED,
    TG_PQ_FLOAT16,
    TG_PQ_OTHER /* decimals and such: not read */
} tg_pq_meaning;

typedef struct tg_pq_node {
    const char *name;
    tg_pq_type type;
    tg_pq_repetition repetition;
    tg_pq_meaning meaning;
    int32_t fixed_len;
    struct tg_pq_node **children;
    size_t n_children;
    uint8_t max_def, max_rep;
    size_t first_leaf, n_leaves; /* below it */
} tg_pq_node;

static inline bool tg_pq_is_text(const tg_pq_node *leaf) {
    bool half = leaf->meaning == TG_PQ_FLOAT16 && leaf->fixed_len == 2;
    return leaf->type == TG_PQ_BYTE_ARRAY || (leaf->type == TG_PQ_FIXED && !half);
}

typedef enum tg_pq_codec {
    TG_PQ_UNCOMPRESSED,
    TG_PQ_SNAPPY,
    TG_PQ_GZIP,
    TG_PQ_LZO,
    TG_PQ_BROTLI,
    TG_PQ_LZ4,
    TG_PQ_ZSTD,
    TG_PQ_LZ4_RAW
} tg_pq_codec;

typedef struct tg_pq_chunk {
    uint64_t offset, bytes; /* of its pages, the dictionary first */
    uint64_t n_values;
    int codec;
} tg_pq_chunk;

typedef struct tg_pq_group {
    uint64_t n_rows;
    tg_pq_chunk *chunks; /* one for each leaf */
} tg_pq_group;

typedef struct tg_pq_meta {
    tg_pq_node *root;
    tg_pq_node **leaves; /* in the file's order */
    size_t n_leaves;
    tg_pq_group *groups;
    size_t n_groups;
    uint64_t n_rows;
} tg_pq_meta;

/* bytes is the whole file. Everything is in the arena. TG_DATA: not a Parquet file, or a broken one;
 * TG_UNSUPPORTED: an encrypted one, or one whose columns are in other files. */
tg_status tg_pq_meta_read(const unsigned char *bytes, size_t len, tg_arena *arena, tg_pq_meta *out,
                          tg_error *err) TG_MUST_CHECK;

#endif
