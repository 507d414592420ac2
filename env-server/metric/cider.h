/* CIDEr-D (Vedantam et al. 2015) with pycocoevalcap's arithmetic: n-grams to 4, sigma 6.
 *
 * How much an n-gram weighs depends on how many samples' references hold it. Those are the samples at
 * hand, as in the original, or those of a file, which makes single texts comparable. */
#ifndef TG_ENV_CIDER_H
#define TG_ENV_CIDER_H

#include "common/base/status.h"
#include "env-server/metric/metric.h"
#include "env-server/metric/nltk.h"

/* Document frequencies, read-only after they are read. */
typedef struct tg_cider_df tg_cider_df;
/* Each line is one sample: a JSON list of its reference texts, or one text as it stands. nltk NULL:
 * words lie between spaces. */
tg_status tg_cider_df_read(tg_cider_df **out, const char *path, const tg_nltk *nltk,
                           tg_error *err) TG_MUST_CHECK;
void tg_cider_df_destroy(tg_cider_df **df);

/* out[i] of every item; df NULL: the items' own references. Items without references get 0. */
tg_status tg_cider_score(const tg_metric_item *items, size_t n, const tg_nltk *nltk,
                         const tg_cider_df *df, double *out, tg_error *err) TG_MUST_CHECK;

#endif
