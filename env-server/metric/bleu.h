/* BLEU (Papineni et al. 2002): statistics of one sample against its references, and the score that sums
 * of them give in the two arithmetics in use: the one of tensorflow/nmt, which Hugging Face's "bleu"
 * is, and sacrebleu's. Also GLEU (Wu et al. 2016). */
#ifndef TG_ENV_METRIC_BLEU_H
#define TG_ENV_METRIC_BLEU_H

#include "common/base/status.h"
#include "env-server/metric/matcher.h"
#include "env-server/metric/words.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_BLEU_ORDER = 4 };

typedef struct tg_bleu_stats {
    uint64_t match[TG_BLEU_ORDER], total[TG_BLEU_ORDER]; /* n-grams of the hypothesis */
    uint64_t hyp_len;
    uint64_t shortest; /* length of the shortest reference */
    uint64_t closest;  /* of the one closest to the hypothesis, the shorter of equals */
} tg_bleu_stats;

void tg_bleu_add(tg_bleu_stats *sum, const tg_bleu_stats *one);

/* Counts for one sample after another; one thread at a time. Zero it to start. */
typedef struct tg_bleu_counter {
    tg_words words; /* of the sample at hand */
    tg_wids hyp, ref;
    tg_matcher matcher;
    tg_bleu_stats stats; /* complete after the last reference */
    size_t n_refs;
} tg_bleu_counter;

/* The hypothesis' words are pushed to c->hyp between start and hypothesis, a reference's to c->ref
 * before reference(). */
void tg_bleu_start(tg_bleu_counter *c);
void tg_bleu_hypothesis(tg_bleu_counter *c);
/* match: as of tg_matcher_reference. */
void tg_bleu_reference(tg_bleu_counter *c, uint64_t *match);
/* After all references; false: out of memory somewhere above. */
bool tg_bleu_finish(tg_bleu_counter *c);
/* One sample on words between spaces, all of the above; s may be NULL: no references. */
tg_status tg_bleu_words(tg_bleu_counter *c, const char *text, size_t len, const tg_sample *s,
                        tg_error *err) TG_MUST_CHECK;
void tg_bleu_fini(tg_bleu_counter *c);

/* tensorflow/nmt's compute_bleu without smoothing. False: undefined (an empty side). */
bool tg_bleu_nmt(const tg_bleu_stats *s, double *out);

typedef enum tg_bleu_smooth {
    TG_SMOOTH_NONE,
    TG_SMOOTH_FLOOR,
    TG_SMOOTH_ADD_K,
    TG_SMOOTH_EXP
} tg_bleu_smooth;

/* sacrebleu's score, 0 .. 100. value: of floor and add-k. */
double tg_bleu_sacre(const tg_bleu_stats *s, tg_bleu_smooth smooth, double value,
                     bool effective_order);

#endif
