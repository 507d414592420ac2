/* CIDEr-D (Vedantam et al. 2015) with pycocoevalcap's arithmetic: n-grams to 4, sigma 6.
 *
 * How much an n-gram weighs depends on how many samples' references hold it. Those are the samples at
 * hand, as in the original, or those of a file or a data pool, which makes single texts comparable. */
#ifndef TG_ENV_CIDER_H
#define TG_ENV_CIDER_H

#include "common/base/status.h"
#include "env-server/metric/cider_df.h"
#include "env-server/metric/metric.h"

/* out[i] of every item; df NULL: the items' own references. Items without references get 0.
 * threads: as tg_metric_input has them. */
tg_status tg_cider_score(const tg_metric_item *items, size_t n, const tg_splitter *splitter,
                         const tg_cider_df *df, int threads, double *out,
                         tg_error *err) TG_MUST_CHECK;

/* CIDEr-D as it is configured. Read-only after open. */
typedef struct tg_cider_options {
    const char *tokenize, *df;
} tg_cider_options;
#define TG_OPT_CIDER_DF(S, f)                                                                      \
    TG_OPT_STR(                                                                                    \
        S, f, NULL,                                                                                \
        "What says how rare n-grams are: a file of references, a sample a line (a JSON list "      \
        "of texts, or a text); pool: the training references; default: the scored samples.")

typedef struct tg_cider {
    tg_splitter splitter;
    tg_cider_df *df; /* NULL: the scored samples */
    bool compat;
} tg_cider;

tg_status tg_cider_open(tg_cider *c, const tg_cider_options *o, const tg_open_context *ctx,
                        tg_error *err) TG_MUST_CHECK;
void tg_cider_close(tg_cider *c);
/* out[i] of every item, *mean of the corpus. Under compat, samples of one prompt are one sample, with the text and
 * references of the last. */
tg_status tg_cider_corpus(const tg_cider *c, const tg_metric_item *items, size_t n, int threads,
                          double *out, double *mean, tg_error *err) TG_MUST_CHECK;

#endif
