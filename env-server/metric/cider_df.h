/* How many samples' references hold an n-gram: CIDEr-D's document frequencies of a file or a data pool. */
#ifndef TG_ENV_CIDER_DF_H
#define TG_ENV_CIDER_DF_H

#include "env-server/datapool/datapool.h"
#include "env-server/metric/grams.h"
#include "env-server/metric/splitter.h"

enum { TG_CIDER_ORDERS = 4 };

/* Read-only after it is read. */
typedef struct tg_cider_df {
    tg_words words;
    tg_grams grams; /* node.df */
    size_t samples;
    double *idf; /* by document frequency */
} tg_cider_df;

/* Each line is one sample: a JSON list of its reference texts, or one text as it stands. */
tg_status tg_cider_df_read(tg_cider_df **out, const char *path, const tg_splitter *splitter,
                           tg_error *err) TG_MUST_CHECK;
/* Of all references of a data pool. */
tg_status tg_cider_df_pool(tg_cider_df **out, const tg_datapool *pool, const tg_splitter *splitter,
                           tg_error *err) TG_MUST_CHECK;
void tg_cider_df_destroy(tg_cider_df **df);

/* What an n-gram weighs that k of the samples have, for every k up to all; owned by the caller. */
tg_status tg_cider_idf(double **idf, size_t samples, tg_error *err) TG_MUST_CHECK;

#endif
