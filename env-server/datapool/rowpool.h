/* Data pools made of a table's rows: which rows, in which order, and which samples each gives.
 *
 * A pool of this kind is a recipe (what a row must look like, how many samples it gives, how one is
 * made) and an option table that includes TG_POOL_OPTIONS. Its open() fills a tg_rowpool, opens the
 * table, may set an order or a part of it, and calls tg_rowpool_index.
 *
 * The index is 24 bytes a sample, or nothing where every row gives one sample and none was looked
 * at. Read-only after opening. */
#ifndef TG_ENV_ROWPOOL_H
#define TG_ENV_ROWPOOL_H

#include "env-server/datapool/datapool.h"
#include "env-server/datapool/filter.h"
#include "env-server/datapool/table/table.h"

#include <jansson.h>

/* Options that every such pool has. */
typedef struct tg_pool_common {
    const char *path, *train, *val, *test; /* NULL: unset */
    const char *on_bad_row, *check;
    int64_t max_size, shuffle; /* INT64_MIN: unset */
    const tg_node *filter;
} tg_pool_common;

#define TG_POOL_FILES(S)                                                                           \
    TG_OPT_ROW_KEY("path", S, common.path, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, NULL,            \
                   "Folder of the data set, or one file for all splits."),                         \
        TG_OPT_ROW_KEY("train", S, common.train, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, NULL,      \
                       "File (or folder) of the train split."),                                    \
        TG_OPT_ROW_KEY("val", S, common.val, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, NULL,          \
                       "File (or folder) of the val split."),                                      \
        TG_OPT_ROW_KEY("test", S, common.test, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, NULL,        \
                       "File (or folder) of the test split.")
#define TG_POOL_OPTIONS(S)                                                                         \
    TG_POOL_FILES(S),                                                                              \
        TG_OPT_ROW_KEY("max_size", S, common.max_size, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 1e15,   \
                       NULL, "Stop after this many samples; unset or 0: all."),                    \
        TG_OPT_ROW_KEY("shuffle", S, common.shuffle, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 1e15,     \
                       NULL, "Seed of a shuffle of the rows before max_size; unset: as stored."),  \
        TG_OPT_ROW_KEY("filter", S, common.filter, TG_T_NODE, TG_OPT_NULLABLE, NULL, 0, 0, NULL,   \
                       "Conditions on a row, such as \"label == 1\" or [\"score >= 0.5\", "        \
                       "\"lang != de\"]; rows that meet not all are left out."),                   \
        TG_OPT_ROW_KEY("on_bad_row", S, common.on_bad_row, TG_T_STR, 0, "fail", 0, 0, "fail|skip", \
                       "What a malformed row does; skipped rows are counted and logged."),         \
        TG_OPT_ROW_KEY("check", S, common.check, TG_T_STR, 0, "all", 0, 0, "all|lazy",             \
                       "Look at every row at opening, or only when it is used.")

/* What a row gives. */
typedef struct tg_row_info {
    uint64_t samples; /* 0: the row is passed over */
    uint64_t advance; /* how far the numbers in the ids go on; 1 unless set otherwise */
} tg_row_info;

/* The rows of one sample. */
typedef struct tg_picked {
    json_t *const *rows; /* more than one only where the recipe groups */
    size_t n_rows;
    uint64_t index;  /* of the sample */
    uint64_t number; /* of the (first) row: the sum of `advance` before it */
    uint64_t sub;    /* which of the row's samples */
} tg_picked;

typedef struct tg_rowpool tg_rowpool;

typedef struct tg_recipe {
    /* NULL-terminated: columns with lists or structs, which separated text holds as their text. */
    const char *const *structured;
    /* Checks the row, cheaply; *info is {1, 1}. */
    tg_status (*inspect)(const tg_rowpool *p, const json_t *row, tg_row_info *info, tg_error *err);
    bool must_inspect; /* how many samples there are depends on the rows */
    /* Rows with the same key make one sample; NULL: none do. */
    tg_status (*group_key)(const tg_rowpool *p, const json_t *row, tg_buf *key, tg_error *err);
    tg_status (*make)(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena, tg_sample *out,
                      tg_error *err);
} tg_recipe;

typedef struct tg_index_entry {
    uint64_t row, number, sub;
} tg_index_entry;

struct tg_rowpool {
    const tg_recipe *recipe;
    const void *options;
    const tg_pool_common *common;
    tg_datapool_context context;
    tg_split split;
    tg_table table;
    uint64_t *order;     /* owned; row at each position, or NULL: as stored */
    uint64_t begin, end; /* positions used; both 0 and not sliced: all */
    bool sliced;
    int64_t shuffle; /* INT64_MIN: none */
    bool skip_bad;
    void *extra; /* owned by the pool's own code */
    void (*free_extra)(void *extra);
    /* what tg_rowpool_index makes */
    tg_filter filter;
    tg_index_entry *entries; /* NULL: one sample a row */
    uint64_t *groups;        /* NULL, or where the entries of each sample begin, and their end */
    uint64_t n_entries, count;
};

/* Starts *state as a pool of the recipe. Everything borrowed must outlive it. */
tg_rowpool *tg_rowpool_init(void *state, const tg_recipe *recipe, const void *options,
                            const tg_pool_common *common, const tg_datapool_context *context,
                            tg_split split);
/* Ends open(): st is how it went so far. Makes the index, or closes the pool and returns why not. A
 * split without rows or without samples is TG_DATA; one whose table was not opened has no samples. */
tg_status tg_rowpool_finish(tg_rowpool *p, tg_status st, uint64_t *count,
                            tg_error *err) TG_MUST_CHECK;

/* The slots of tg_datapool_ops. */
void tg_rowpool_close(void *state);
tg_status tg_rowpool_get(const void *state, uint64_t i, tg_arena *arena, tg_sample *out,
                         tg_error *err);
uint64_t tg_rowpool_digest(const void *state);

/* Reads a sample's (first) row again, for what is no part of the sample; owned. */
tg_status tg_rowpool_row(const tg_rowpool *p, uint64_t i, json_t **out,
                         tg_error *err) TG_MUST_CHECK;

#define TG_ROWPOOL_OPS                                                                             \
    .state_size = sizeof(tg_rowpool), .close = tg_rowpool_close, .get = tg_rowpool_get,            \
    .digest = tg_rowpool_digest

#endif
