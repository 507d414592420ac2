/* sacrebleu's BLEU of one sample, for the metric and the reward. */
#ifndef TG_ENV_METRIC_SACRE_BLEU_H
#define TG_ENV_METRIC_SACRE_BLEU_H

#include "common/config/option.h"
#include "env-server/metric/bleu.h"
#include "env-server/metric/bleu_text.h"
#include "proto/messages.h"

/* Options of `args`; the table is shared by metric and reward. */
typedef struct tg_sacre_bleu_options {
    const char *tokenize, *smooth_method;
    double smooth_value; /* NaN: the method's default */
    bool force, lowercase, use_effective_order;
} tg_sacre_bleu_options;
extern const tg_opt tg_sacre_bleu_table[];

typedef struct tg_sacre_bleu {
    tg_bleu_tok tok;
    tg_bleu_smooth smooth;
    double smooth_value;
    bool lowercase, effective_order;
} tg_sacre_bleu;

/* TG_CONFIG for an unknown tokeniser or smoothing method. */
tg_status tg_sacre_bleu_open(tg_sacre_bleu *s, const tg_sacre_bleu_options *o,
                             tg_error *err) TG_MUST_CHECK;

/* Scratch memory; zero it to start, one thread at a time. */
typedef struct tg_sacre_bleu_scratch {
    tg_bleu_counter counter; /* .stats after a sample */
    tg_bleu_text text;
} tg_sacre_bleu_scratch;

tg_status tg_sacre_bleu_count(const tg_sacre_bleu *s, tg_sacre_bleu_scratch *scratch,
                              const char *text, size_t len, const tg_sample *sample,
                              tg_error *err) TG_MUST_CHECK;
double tg_sacre_bleu_score(const tg_sacre_bleu *s, const tg_bleu_stats *stats); /* 0 .. 1 */
void tg_sacre_bleu_scratch_fini(tg_sacre_bleu_scratch *scratch);

#endif
