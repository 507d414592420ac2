/* The metrics parent_totto and bleu_totto: over all samples, those of the overlap subset and the others. */
#include "common/base/alloc.h"
#include "env-server/metric/items.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/totto.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4, PARTS = 3 };
static const char *const part_names[PARTS] = {"overall", "overlap", "non_overlap"};

static const tg_opt no_options[] = {TG_OPT_END};
struct state {
    bool compat;
};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)opts;
    (void)err;
    ((struct state *)state)->compat = ctx->compat;
    return TG_OK;
}

/* RL4LMs writes texts to files, one a line, and fails where lines and samples no longer agree. */
static tg_status check_lines(const struct state *s, const tg_metric_input *in, tg_error *err) {
    if (!s->compat) return TG_OK;
    for (size_t i = 0; i < in->n; i++)
        if (tg_totto_breaks_lines(in->items[i].text, in->items[i].text_len))
            return tg_fail(err, TG_DATA, "text %zu has a newline", i);
    if (!in->items[in->n - 1].text_len) return tg_fail(err, TG_DATA, "the last text is empty");
    return TG_OK;
}

typedef struct sums {
    double precision, recall, f;
    size_t n;
} sums;

static void add(sums *s, const tg_parent *p) {
    s->precision += p->precision, s->recall += p->recall, s->f += p->f, s->n++;
}

static tg_status emit_parent(tg_metric_out *out, const char *part, const sums *s,
                             const double *values, size_t n, tg_error *err) {
    char key[96];
    double d = s->n ? (double)s->n : 1;
    snprintf(key, sizeof key, "table_to_text/parent_%s/precision", part);
    tg_status st = tg_metric_emit(out, key, s->precision / d, NULL, 0, err);
    snprintf(key, sizeof key, "table_to_text/parent_%s/recall", part);
    if (st == TG_OK) st = tg_metric_emit(out, key, s->recall / d, NULL, 0, err);
    snprintf(key, sizeof key, "table_to_text/parent_%s_f_score", part);
    return st == TG_OK ? tg_metric_emit(out, key, s->f / d, values, n, err) : st;
}

typedef struct rated {
    tg_parent parent;
    bool overlap;
} rated;

static tg_status start(void *work, const void *state, tg_error *err) {
    (void)err;
    ((tg_totto *)work)->compat = ((const struct state *)state)->compat;
    return TG_OK;
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    (void)state;
    tg_totto *t = work;
    rated *r = out;
    tg_status st = tg_totto_read(t, item, err);
    if (st == TG_OK) st = tg_totto_parent(t, &r->parent, err);
    r->overlap = t->overlap;
    return st;
}

static void end(void *work) {
    tg_totto_fini(work);
}

static tg_status compute_parent(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_totto), sizeof(rated), start, one, end};
    tg_status st = check_lines(state, in, err);
    if (st != TG_OK) return st;
    double *f = tg_alloc_array(in->n, sizeof *f);
    rated *each = tg_alloc_array(in->n, sizeof *each);
    st = f && each ? tg_items_run(in, &loop, state, each, err)
                   : tg_fail_nomem(err, in->n * sizeof *each);
    sums parts[PARTS] = {{0}};
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        f[i] = each[i].parent.f;
        add(&parts[0], &each[i].parent);
        add(&parts[each[i].overlap ? 1 : 2], &each[i].parent);
    }
    for (int k = 0; k < PARTS && st == TG_OK; k++)
        st = emit_parent(out, part_names[k], &parts[k], k ? NULL : f, k ? 0 : in->n, err);
    tg_free(f);
    tg_free(each);
    return st;
}

/* ---- BLEU -------------------------------------------------------------------------------------- */

typedef struct bleu {
    uint64_t match[ORDERS], total[ORDERS];
    uint64_t hyp_words, ref_words;
    size_t n;
} bleu;

/* The length of the reference nearest in length, the shorter of two. */
static size_t nearest(const tg_totto *t, size_t n) {
    size_t best = 0, best_off = SIZE_MAX;
    for (size_t k = 0; k < TG_TOTTO_REFERENCES; k++) {
        size_t len = t->references[k].end - t->references[k].begin;
        size_t off = len > n ? len - n : n - len;
        if (off < best_off || (off == best_off && len < best)) best = len, best_off = off;
    }
    return best;
}

static bool count_bleu(const tg_totto *t, tg_ngrams *g, bleu *b) {
    size_t n = t->prediction.end - t->prediction.begin;
    uint64_t match[ORDERS];
    tg_ngrams_reset(g);
    tg_ngrams_add(g, t->ids.v + t->prediction.begin, n, ORDERS, TG_NGRAM_HYP);
    for (size_t k = 0; k < TG_TOTTO_REFERENCES; k++) {
        tg_totto_span r = t->references[k];
        tg_ngrams_add(g, t->ids.v + r.begin, r.end - r.begin, ORDERS, TG_NGRAM_REF);
        tg_ngrams_fold(g);
    }
    if (g->failed) return false;
    tg_ngrams_match(g, ORDERS, match);
    for (unsigned k = 0; k < ORDERS; k++) {
        b->match[k] += match[k];
        b->total[k] += tg_ngrams_of(n, k + 1);
    }
    b->hyp_words += n;
    b->ref_words += nearest(t, n);
    b->n++;
    return true;
}

/* sacrebleu's corpus BLEU with its default smoothing "exp", rounded to a tenth of a percent as its
 * command line prints it. */
static double finish_bleu(const bleu *b) {
    double sum = 0, smooth = 1;
    if (!b->n || !b->match[0]) return 0;
    for (int k = 0; k < ORDERS; k++) {
        if (!b->total[k]) return 0;
        double p;
        if (b->match[k]) {
            p = 100.0 * (double)b->match[k] / (double)b->total[k];
        } else {
            smooth *= 2;
            p = 100.0 / (smooth * (double)b->total[k]);
        }
        sum += log(p);
    }
    double brevity = 1;
    if (b->hyp_words < b->ref_words) brevity = exp(1 - (double)b->ref_words / (double)b->hyp_words);
    char text[32];
    snprintf(text, sizeof text, "%.1f", brevity * exp(sum / ORDERS));
    return strtod(text, NULL) / 100;
}

static tg_status compute_bleu(const void *state, const tg_metric_input *in, tg_metric_out *out,
                              tg_error *err) {
    const struct state *s = state;
    tg_status st = check_lines(s, in, err);
    tg_totto t = {.compat = s->compat};
    tg_ngrams g = {0};
    bleu parts[PARTS];
    memset(parts, 0, sizeof parts);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        st = tg_totto_read(&t, &in->items[i], err);
        if (st == TG_OK &&
            (!count_bleu(&t, &g, &parts[0]) || !count_bleu(&t, &g, &parts[t.overlap ? 1 : 2])))
            st = tg_fail_nomem(err, t.ids.n);
    }
    tg_totto_fini(&t);
    tg_ngrams_fini(&g);
    if (st == TG_OK && s->compat && !parts[2].n)
        st = tg_fail(err, TG_DATA, "no sample is outside the overlap subset");
    for (int k = 0; k < PARTS && st == TG_OK; k++) {
        char key[64];
        snprintf(key, sizeof key, "table_to_text/bleu_%s", part_names[k]);
        st = tg_metric_emit(out, key, finish_bleu(&parts[k]), NULL, 0, err);
    }
    return st;
}

const tg_metric_ops tg_metric_parent_totto = {
    .entry = {.name = "parent_totto",
              .summary = "PARENT of table-to-text generation.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute_parent,
};

const tg_metric_ops tg_metric_bleu_totto = {
    .entry = {.name = "bleu_totto",
              .summary = "BLEU of table-to-text generation.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute_bleu,
};
