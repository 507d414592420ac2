/* Where a data set lies on this machine, and in which of its layouts.
 *
 * Looked up in this order: the split's own file or folder (datapool.args.train, val, test); path;
 * $TEXTGEN_DATA/<name>; the place where RL4LMs keeps it in the home folder; the Hugging Face cache
 * (common/config/locate.h). A folder holds the native layout, or
 * files whose names say the split: train.jsonl, validation-00000-of-00002.parquet, test.csv …, also
 * below data/ or the folder of the configuration. Nothing is downloaded. */
#ifndef TG_ENV_DATASET_H
#define TG_ENV_DATASET_H

#include "env-server/datapool/rowpool.h"

#include <stdbool.h>

/* What a native reader is told. */
typedef struct tg_place {
    const char *root; /* a folder, or the file of the split */
    bool is_file;
    tg_split split;
    const tg_rowpool *pool; /* options and context */
} tg_place;

typedef struct tg_dataset {
    const char *title;    /* "IMDB reviews" */
    const char *names[4]; /* folders below $TEXTGEN_DATA, NULL behind the last */
    const char *home;     /* folder below $HOME, or NULL */
    const char *hub[3];   /* names at the Hugging Face hub, the first is shown; NULL-terminated */
    const char *config;   /* folder and configuration of the hub's data set, or NULL */
    const char *layout;   /* what is expected natively, one phrase */
    /* Opens the native layout; *out stays closed when the place does not hold it. NULL: there is
     * none besides rows in files. */
    tg_status (*native)(const tg_place *place, tg_table *out, tg_error *err);
} tg_dataset;

/* Opens the rows of a split into p->table, which stays closed for val or test when the config names
 * files for other splits alone. columns: what Parquet files are read for. TG_NOINPUT says where it
 * looked, what is expected and how to get it. */
tg_status tg_dataset_open(tg_rowpool *p, const tg_dataset *d, tg_split split,
                          const char *const *columns, tg_error *err) TG_MUST_CHECK;

/* Is a word of the name (cut at every character that is no letter or digit) one for the split:
 * train; validation, valid, valid1, val, dev; test? */
bool tg_split_named(const char *name, tg_split split);

/* Opens the one file, or all shards, of a split in a folder; *out stays closed when there is none.
 * TG_DATA: several that are no shards of one. */
tg_status tg_dataset_open_folder(const char *dir, tg_split split, const char *const *columns,
                                 tg_table *out, tg_error *err) TG_MUST_CHECK;

#endif
