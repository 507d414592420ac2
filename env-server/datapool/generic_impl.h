/* What the files of the pools with any layout share.
 *
 *   generic.c        options, opening, the pools
 *   generic_row.c    from a row to a sample
 *   generic_table.c  which files are opened, and for which columns */
#ifndef TG_ENV_GENERIC_IMPL_H
#define TG_ENV_GENERIC_IMPL_H

#include "env-server/datapool/rowpool.h"

typedef struct tg_generic_options {
    tg_pool_common common;
    const char *prompt, *prompt_template, *references, *reference_template, *id, *meta, *weight;
    const char *on_error, *unit;
    const tg_node *ratios;
} tg_generic_options;

/* generic_row.c: the slots of tg_recipe and tg_datapool_ops. */
tg_status tg_generic_inspect(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                             tg_error *err);
tg_status tg_generic_make(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                          tg_sample *out, tg_error *err);
tg_status tg_generic_weight(const void *state, uint64_t i, double *out, tg_error *err);

/* generic_table.c: *out is the caller's to close. columns: NULL-terminated, what is read of a columnar file. */
typedef tg_status tg_generic_opener(const tg_rowpool *p, const char *path,
                                    const char *const *columns, tg_table *out, tg_error *err);
tg_generic_opener tg_generic_open_jsonl, tg_generic_open_csv, tg_generic_open_tsv,
    tg_generic_open_parquet, tg_generic_open_text;
/* Opens p->table: the file, or the files of the split in a folder. It stays closed where a folder has none. */
tg_status tg_generic_open_table(tg_rowpool *p, tg_generic_opener *open, const char *file,
                                tg_error *err) TG_MUST_CHECK;

#endif
