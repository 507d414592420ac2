/* Translation edit rate (Snover et al. 2006): edits and block shifts that make a hypothesis its reference,
 * with the search, limits and tie rules of tercom as sacrebleu has them. */
#ifndef TG_ENV_METRIC_TER_H
#define TG_ENV_METRIC_TER_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "env-server/metric/bleu_text.h"
#include "env-server/metric/words.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stdint.h>

/* Options of `args`; the table is shared by metric and reward. */
typedef struct tg_ter_options {
    bool normalized, no_punct, asian_support, case_sensitive;
} tg_ter_options;
extern const tg_opt tg_ter_table[];

typedef struct tg_ter_stats {
    double edits;      /* against the best reference */
    double ref_length; /* mean over the references */
} tg_ter_stats;

/* Scratch memory; zero it to start, one thread at a time. */
typedef struct tg_ter {
    tg_bleu_text text;
    tg_words words;
    tg_wids hyp, ref, trial; /* the hypothesis so far, the reference, a shifted hypothesis */
    int32_t *cost;           /* the band of the edit distance table, row by row */
    size_t cap_cost;
    struct tg_ter_row *rows; /* where each row's band lies */
    size_t cap_rows;
    int32_t *scratch; /* two rows of a trial */
    size_t cap_scratch;
    int32_t *align; /* of each reference word: the hypothesis word at or before it, or -1 */
    uint8_t *hyp_wrong, *ref_wrong;
    size_t cap_align, cap_hyp, cap_ref;
} tg_ter;

/* Words of tercom's tokeniser, appended to out. */
bool tg_ter_words(tg_ter *t, const tg_ter_options *o, const char *text, size_t len, bool reference,
                  tg_wids *out);
/* Edits from t->hyp (which is changed) to t->ref. False: no memory. */
bool tg_ter_edits(tg_ter *t, uint64_t *edits);

/* The sample has one reference at least. */
tg_status tg_ter_count(tg_ter *t, const tg_ter_options *o, const char *text, size_t len,
                       const tg_sample *sample, tg_ter_stats *out, tg_error *err) TG_MUST_CHECK;
/* Edits per reference word; 0 is best. Nothing against nothing is 0, but 1 with the sacrebleu that RL4LMs
 * has (compat). */
double tg_ter_score(const tg_ter_stats *s, bool compat);
void tg_ter_fini(tg_ter *t);

#endif
