/* BLEU's counting and its two final formulas. Pure but for the counter passed in. */
#include "env-server/metric/bleu.h"

#include "env-server/metric/ngram.h"

#include <math.h>
#include <string.h>

void tg_bleu_add(tg_bleu_stats *sum, const tg_bleu_stats *one) {
    for (int i = 0; i < TG_BLEU_ORDER; i++) {
        sum->match[i] += one->match[i];
        sum->total[i] += one->total[i];
    }
    sum->hyp_len += one->hyp_len;
    sum->shortest += one->shortest;
    sum->closest += one->closest;
}

void tg_bleu_start(tg_bleu_counter *c) {
    tg_words_reset(
        &c->words); /* small numbers: what the matcher knows of words stays in the nearest cache */
    tg_wids_reset(&c->hyp);
    tg_wids_reset(&c->ref);
    memset(&c->stats, 0, sizeof c->stats);
    c->n_refs = 0;
}

void tg_bleu_hypothesis(tg_bleu_counter *c) {
    tg_matcher_hypothesis(&c->matcher, c->hyp.v, c->hyp.n, TG_BLEU_ORDER);
    c->stats.hyp_len = c->hyp.n;
    for (unsigned n = 1; n <= TG_BLEU_ORDER; n++) c->stats.total[n - 1] = tg_ngrams_of(c->hyp.n, n);
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

void tg_bleu_reference(tg_bleu_counter *c, uint64_t *match) {
    tg_bleu_stats *s = &c->stats;
    uint64_t len = c->ref.n;
    tg_matcher_reference(&c->matcher, c->ref.v, c->ref.n, match);
    tg_wids_reset(&c->ref);
    if (!c->n_refs || len < s->shortest) s->shortest = len;
    uint64_t now = distance(len, s->hyp_len), best = distance(s->closest, s->hyp_len);
    if (!c->n_refs || now < best || (now == best && len < s->closest)) s->closest = len;
    c->n_refs++;
}

bool tg_bleu_finish(tg_bleu_counter *c) {
    tg_matcher_all(&c->matcher, c->stats.match);
    return !c->words.failed && !c->hyp.failed && !c->ref.failed && !c->matcher.failed;
}

void tg_bleu_fini(tg_bleu_counter *c) {
    tg_words_fini(&c->words);
    tg_wids_fini(&c->hyp);
    tg_wids_fini(&c->ref);
    tg_matcher_fini(&c->matcher);
    memset(c, 0, sizeof *c);
}

bool tg_bleu_nmt(const tg_bleu_stats *s, double *out) {
    if (!s->hyp_len || !s->shortest) return false;
    double log_sum = 0, ratio = (double)s->hyp_len / (double)s->shortest;
    bool all = true;
    for (int i = 0; i < TG_BLEU_ORDER; i++) {
        if (!s->match[i]) all = false;
        if (all) log_sum += 1.0 / TG_BLEU_ORDER * log((double)s->match[i] / (double)s->total[i]);
    }
    double brevity = ratio > 1.0 ? 1.0 : exp(1 - 1.0 / ratio);
    *out = (all ? exp(log_sum) : 0) * brevity;
    return true;
}

/* sacrebleu's logarithm of 0 is a large negative number, so that a zero precision gives a zero score. */
static double log_or_low(double p) {
    return p == 0 ? -9999999999.0 : log(p);
}

double tg_bleu_sacre(const tg_bleu_stats *s, tg_bleu_smooth smooth, double value,
                     bool effective_order) {
    double brevity = 1, halving = 1, log_sum = 0, precision[TG_BLEU_ORDER] = {0};
    int order = TG_BLEU_ORDER;
    bool any = false;
    if (s->hyp_len < s->closest)
        brevity = s->hyp_len ? exp(1 - (double)s->closest / (double)s->hyp_len) : 0;
    for (int i = 0; i < TG_BLEU_ORDER; i++) any |= s->match[i] > 0;
    if (!any) return 0;
    for (int i = 0; i < TG_BLEU_ORDER; i++) {
        double more = smooth == TG_SMOOTH_ADD_K && i > 0 ? value : 0;
        double match = (double)s->match[i] + more, total = (double)s->total[i] + more;
        if (total == 0) break;
        if (effective_order) order = i + 1;
        if (match > 0)
            precision[i] = 100.0 * match / total;
        else if (smooth == TG_SMOOTH_EXP) {
            halving *= 2;
            precision[i] = 100.0 / (halving * total);
        } else if (smooth == TG_SMOOTH_FLOOR)
            precision[i] = 100.0 * value / total;
    }
    for (int i = 0; i < order; i++) log_sum += log_or_low(precision[i]);
    return brevity * exp(log_sum / order);
}
