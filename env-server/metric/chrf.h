/* chrF and chrF++ (Popović 2015, 2017) with sacrebleu's arithmetic: F of character n-grams, and of word
 * n-grams for chrF++. */
#ifndef TG_ENV_METRIC_CHRF_H
#define TG_ENV_METRIC_CHRF_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/option.h"
#include "env-server/metric/matcher.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/words.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stdint.h>

enum { TG_CHRF_CHARS = 10, TG_CHRF_WORDS = 4, TG_CHRF_ORDERS = TG_CHRF_CHARS + TG_CHRF_WORDS };

/* Options of `args`; the table is shared by metric and reward. */
typedef struct tg_chrf_options {
    int64_t char_order, word_order, beta;
    bool lowercase, whitespace, eps_smoothing;
} tg_chrf_options;
extern const tg_opt tg_chrf_table[];

/* Counts of each order, character orders first. */
typedef struct tg_chrf_stats {
    uint64_t hyp[TG_CHRF_ORDERS], ref[TG_CHRF_ORDERS], match[TG_CHRF_ORDERS];
} tg_chrf_stats;

/* Scratch memory; zero it to start, one thread at a time. */
typedef struct tg_chrf {
    struct tg_chrf_side {
        tg_buf lower;
        tg_wids chars; /* dense numbers from 1 */
        tg_wids words;
    } hyp, ref;
    uint64_t *keys, *spare; /* n-grams of the largest order, of both */
    size_t cap;
    tg_words letters, vocabulary; /* characters above ASCII; words */
    uint16_t ascii[128];
    tg_wids dense; /* number of each of `letters` */
    uint32_t n_letters;
    tg_matcher matcher;   /* of words */
    tg_ngrams char_grams; /* of wide alphabets */
    bool failed;
} tg_chrf;

/* Statistics of the reference with the best F. The sample has one at least. */
tg_status tg_chrf_count(tg_chrf *c, const tg_chrf_options *o, const char *text, size_t len,
                        const tg_sample *sample, tg_chrf_stats *out, tg_error *err) TG_MUST_CHECK;
void tg_chrf_add(tg_chrf_stats *sum, const tg_chrf_stats *one);
double tg_chrf_score(const tg_chrf_options *o, const tg_chrf_stats *s); /* 0 .. 100 */
void tg_chrf_fini(tg_chrf *c);

#endif
