/* The metrics bleu and google_bleu, on words between spaces. After open a state is read-only. */
#include "common/base/alloc.h"
#include "env-server/metric/bleu.h"
#include "env-server/metric/items.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/rows.h"

#include <math.h>
#include <string.h>

struct state {
    bool compat;
};
static const tg_opt no_options[] = {TG_OPT_END};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)opts;
    (void)err;
    ((struct state *)state)->compat = ctx->compat;
    return TG_OK;
}

tg_status tg_bleu_words(tg_bleu_counter *c, const char *text, size_t len, const tg_sample *s,
                        tg_error *err) {
    tg_bleu_start(c);
    tg_words_split(&c->words, text, len, &c->hyp);
    tg_bleu_hypothesis(c);
    for (size_t i = 0; s && i < s->n_references; i++) {
        tg_words_split(&c->words, s->references[i], strlen(s->references[i]), &c->ref);
        tg_bleu_reference(c, NULL);
    }
    return tg_bleu_finish(c) ? TG_OK : tg_fail_nomem(err, len);
}

static tg_status emit_bleu(const struct state *state, const tg_bleu_stats *sum,
                           const double *samples, size_t n, tg_metric_out *out, tg_error *err) {
    static const char key[] = "lexical/bleu";
    double corpus;
    if (tg_bleu_nmt(sum, &corpus))
        return tg_metric_emit(out, key, corpus, state->compat ? NULL : samples, n, err);
    /* RL4LMs's value is then the text "n/a". */
    if (state->compat) return tg_metric_emit_error(out, key, "n/a", err);
    return tg_metric_emit_error(out, key,
                                sum->hyp_len ? "BLEU is not defined: the references have no words"
                                             : "BLEU is not defined: the texts have no words",
                                err);
}

static tg_status one_bleu(void *work, const void *state, const tg_metric_item *item, void *out,
                          tg_error *err) {
    (void)state;
    tg_bleu_counter *c = work;
    tg_status st = tg_bleu_words(c, item->text, item->text_len, item->sample, err);
    *(tg_bleu_stats *)out = c->stats;
    return st;
}

static void end(void *work) {
    tg_bleu_fini(work);
}

static tg_status compute_bleu(const void *state, const tg_metric_input *in, tg_metric_out *out,
                              tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_bleu_counter), sizeof(tg_bleu_stats), NULL,
                                      one_bleu, end};
    const struct state *o = state;
    tg_status st = o->compat ? TG_OK : tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    tg_bleu_stats *each = tg_alloc_array(in->n, sizeof *each), sum = {0};
    double *samples = tg_alloc_array(in->n, sizeof *samples);
    st = each && samples ? tg_items_run(in, &loop, state, each, err)
                         : tg_fail_nomem(err, in->n * sizeof *each);
    bool none = false;
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        tg_bleu_add(&sum, &each[i]);
        if (!tg_bleu_nmt(&each[i], &samples[i])) samples[i] = (double)NAN;
        none |= !tg_item_references(&in->items[i]);
    }
    if (none) sum.shortest = 0; /* undefined as a whole */
    if (st == TG_OK) st = emit_bleu(o, &sum, samples, in->n, out, err);
    tg_free(each);
    tg_free(samples);
    return st;
}

/* ---- google_bleu ---------------------------------------------------------------------------- */

/* All n-grams of orders 1 to 4 that a text of n words has. */
static uint64_t all_grams(size_t n) {
    uint64_t sum = 0;
    for (unsigned k = 1; k <= TG_BLEU_ORDER; k++) sum += tg_ngrams_of(n, k);
    return sum;
}

typedef struct gleu {
    uint64_t match, all;
} gleu;

/* The reference with the best match / all, the first of equals; all 0 when there is none. */
static tg_status one_gleu(void *work, const void *state, const tg_metric_item *item, void *out,
                          tg_error *err) {
    (void)state;
    tg_bleu_counter *c = work;
    const tg_sample *s = item->sample;
    gleu *best = out;
    *best = (gleu){0};
    tg_bleu_start(c);
    tg_words_split(&c->words, item->text, item->text_len, &c->hyp);
    tg_bleu_hypothesis(c);
    for (size_t i = 0; i < s->n_references; i++) {
        uint64_t by_order[TG_BLEU_ORDER], hits = 0, hyp = all_grams(c->hyp.n), ref;
        tg_words_split(&c->words, s->references[i], strlen(s->references[i]), &c->ref);
        ref = all_grams(c->ref.n);
        tg_bleu_reference(c, by_order);
        for (int n = 0; n < TG_BLEU_ORDER; n++) hits += by_order[n];
        uint64_t larger = hyp > ref ? hyp : ref;
        if (larger &&
            (!best->all || (double)hits / (double)larger > (double)best->match / (double)best->all))
            *best = (gleu){hits, larger};
    }
    return tg_bleu_finish(c) ? TG_OK : tg_fail_nomem(err, item->text_len);
}

static tg_status compute_gleu(const void *state, const tg_metric_input *in, tg_metric_out *out,
                              tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_bleu_counter), sizeof(gleu), NULL, one_gleu, end};
    tg_status st = tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    gleu *each = tg_alloc_array(in->n, sizeof *each), sum = {0};
    double *samples = tg_alloc_array(in->n, sizeof *samples);
    st = each && samples ? tg_items_run(in, &loop, state, each, err)
                         : tg_fail_nomem(err, in->n * sizeof *each);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        sum.match += each[i].match, sum.all += each[i].all;
        samples[i] = each[i].all ? (double)each[i].match / (double)each[i].all : 0;
    }
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/google_bleu",
                            sum.all ? (double)sum.match / (double)sum.all : 0, samples, in->n, err);
    tg_free(each);
    tg_free(samples);
    return st;
}

const tg_metric_ops tg_metric_bleu = {
    .entry = {.name = "bleu",
              .summary = "Corpus BLEU-4 on words between spaces.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute_bleu,
};

const tg_metric_ops tg_metric_google_bleu = {
    .entry = {.name = "google_bleu",
              .summary =
                  "GLEU: the smaller of n-gram precision and recall, on words between spaces.",
              .options = no_options,
              .built = true},
    .compute = compute_gleu,
};
