/* ROUGE-L as the package py-rouge 1.1 computes it (RL4LMs's rouge_l_max): lines as sentences, a length
 * limit, base forms from a table of exceptions or by Porter's original algorithm, union LCS, and its
 * weight factor applied to precision and recall. */
#ifndef TG_ENV_METRIC_PYROUGE_H
#define TG_ENV_METRIC_PYROUGE_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* Options of `args`; the table is shared by metric and reward. */
typedef struct tg_pyrouge_options {
    const char *length_limit_type;
    const tg_node *apply_best;
    int64_t max_n, length_limit;
    double alpha, weight_factor;
    bool limit_length, apply_avg, stemming, ensure_compatibility;
} tg_pyrouge_options;
extern const tg_opt tg_pyrouge_table[];

/* TG_UNSUPPORTED without ensure_compatibility, which needs a sentence splitter. */
tg_status tg_pyrouge_check(const tg_pyrouge_options *o, tg_error *err) TG_MUST_CHECK;

/* Scratch memory for many texts; one thread at a time. */
typedef struct tg_pyrouge tg_pyrouge;
tg_status tg_pyrouge_create(tg_pyrouge **out, const tg_pyrouge_options *o,
                            tg_error *err) TG_MUST_CHECK;
void tg_pyrouge_destroy(tg_pyrouge **p);

/* Largest F over the references. The sample has one at least. */
tg_status tg_pyrouge_best(tg_pyrouge *p, const char *text, size_t len, const tg_sample *sample,
                          double *f, tg_error *err) TG_MUST_CHECK;

#endif
