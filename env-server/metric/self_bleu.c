/* The metric self_bleu (Zhu et al. 2018): BLEU of every text against all others, so that texts that are alike score high;
 * NLTK's sentence_bleu with its method 1 of smoothing. For every n-gram only its two largest counts and whose
 * the largest is are kept, so the time is that of one pass over the texts. */
#include "common/base/alloc.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/splitter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4, FIRST = 2 };

struct options {
    const char *tokenize;
};
static const tg_opt options[] = {
    TG_OPT_STR_ONE_OF(struct options, tokenize, "nltk", TG_SPLITTER_NAMES,
                      "Words: lower-cased as NLTK splits them, as spaCy does, or between spaces."),
    TG_OPT_END};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    return tg_splitter_open(state, ((const struct options *)opts)->tokenize, ctx->compat, err);
}

static void close_metric(void *state) {
    tg_splitter_close(state);
}

typedef struct top { /* of one n-gram */
    uint32_t most, second;
    uint32_t whose; /* text that has the most */
} top;

typedef struct corpus {
    tg_words words;
    tg_wids ids;     /* of all texts, end to end */
    size_t *ends;    /* in ids */
    size_t *lengths; /* sorted */
    size_t n;
    tg_ngrams grams; /* of all texts; hyp: of the one at hand */
    top *tops;       /* by n-gram */
    size_t cap;
} corpus;

static tg_status read_texts(corpus *c, const tg_splitter *s, const tg_metric_input *in,
                            tg_error *err) {
    tg_splitter_work work = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        st = tg_splitter_words(s, &work, in->items[i].text, in->items[i].text_len, &c->words,
                               &c->ids, err);
        c->ends[i + 1] = c->ids.n;
        c->lengths[i] = c->ids.n - c->ends[i];
    }
    tg_splitter_work_fini(&work);
    return st;
}

/* Calls tg_ngrams_add of text i; then the nodes of text i have their counts in hyp. */
static void count_text(corpus *c, size_t i) {
    tg_ngrams_add(&c->grams, c->ids.v + c->ends[i], c->ends[i + 1] - c->ends[i], ORDERS,
                  TG_NGRAM_HYP);
}

/* The nodes of text i, each once: f gets its number. Clears hyp behind it. */
typedef void visit(corpus *c, size_t text, size_t node, void *arg);
static void each_gram(corpus *c, size_t i, visit *f, void *arg) {
    const uint32_t *w = c->ids.v + c->ends[i];
    size_t n = c->ends[i + 1] - c->ends[i];
    for (size_t at = 0; at < n; at++) {
        uint32_t node = 0;
        for (size_t k = 0; k < ORDERS && at + k < n; k++) {
            node = tg_ngrams_child(&c->grams, node, w[at + k]);
            if (!c->grams.nodes[node].hyp) continue;
            f(c, i, node, arg);
            c->grams.nodes[node].hyp = 0;
        }
    }
}

static void keep_top(corpus *c, size_t text, size_t node, void *arg) {
    (void)arg;
    top *t = &c->tops[node];
    uint32_t count = c->grams.nodes[node].hyp;
    if (count > t->most)
        *t = (top){count, t->most, (uint32_t)text};
    else if (count > t->second)
        t->second = count;
}

static void clip(corpus *c, size_t text, size_t node, void *arg) {
    uint64_t *match = arg;
    const top *t = &c->tops[node];
    uint32_t count = c->grams.nodes[node].hyp, best = t->whose == text ? t->second : t->most;
    match[c->grams.nodes[node].order - 1] += count < best ? count : best;
}

static tg_status find_tops(corpus *c, tg_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        count_text(c, i);
        if (c->grams.failed) return tg_fail_nomem(err, c->grams.cap);
        if (c->cap < c->grams.cap) {
            top *more = tg_alloc_array(c->grams.cap, sizeof *more);
            if (!more) return tg_fail_nomem(err, c->grams.cap * sizeof *more);
            if (c->tops) memcpy(more, c->tops, c->cap * sizeof *more);
            tg_free(c->tops);
            c->tops = more, c->cap = c->grams.cap;
        }
        each_gram(c, i, keep_top, NULL);
    }
    return TG_OK;
}

static int by_size(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Length of the other text that is nearest in length, the shorter of two. */
static size_t nearest(const corpus *c, size_t own) {
    size_t low = 0, high = c->n;
    while (low < high) { /* the first that is not shorter; it may be the text itself */
        size_t middle = low + (high - low) / 2;
        if (c->lengths[middle] < own)
            low = middle + 1;
        else
            high = middle;
    }
    if (low + 1 < c->n && c->lengths[low + 1] == own) return own;
    if (low == 0) return c->lengths[1];
    if (low + 1 == c->n) return c->lengths[low - 1];
    size_t below = own - c->lengths[low - 1], above = c->lengths[low + 1] - own;
    return below <= above ? c->lengths[low - 1] : c->lengths[low + 1];
}

static double bleu(const uint64_t *match, size_t own, size_t other, int orders) {
    if (!match[0]) return 0;
    double sum = 0;
    for (int k = 0; k < orders; k++) {
        uint64_t total = tg_ngrams_of(own, (unsigned)k + 1);
        sum += log((match[k] ? (double)match[k] : 0.1) / (double)(total ? total : 1)) / orders;
    }
    double brevity = own > other ? 1 : exp(1 - (double)other / (double)own);
    return brevity * exp(sum);
}

static tg_status score(corpus *c, tg_metric_out *out, tg_error *err) {
    double *values = tg_alloc_array((ORDERS - FIRST + 1) * c->n, sizeof *values);
    if (!values) return tg_fail_nomem(err, c->n * sizeof *values);
    qsort(c->lengths, c->n, sizeof *c->lengths, by_size);
    for (size_t i = 0; i < c->n; i++) {
        uint64_t match[ORDERS] = {0};
        size_t own = c->ends[i + 1] - c->ends[i], other = nearest(c, own);
        count_text(c, i);
        each_gram(c, i, clip, match);
        for (int k = FIRST; k <= ORDERS; k++)
            values[(size_t)(k - FIRST) * c->n + i] = bleu(match, own, other, k);
    }
    tg_status st = TG_OK;
    for (int k = FIRST; k <= ORDERS && st == TG_OK; k++) {
        char key[48];
        double sum = 0, *v = values + (size_t)(k - FIRST) * c->n;
        for (size_t i = 0; i < c->n; i++) sum += v[i];
        snprintf(key, sizeof key, "diversity_metrics/self_bleu-%d", k);
        st = tg_metric_emit(out, key, sum / (double)c->n, v, c->n, err);
    }
    tg_free(values);
    return st;
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    if (in->n < 2)
        return tg_fail(err, TG_DATA, "self-BLEU compares texts: at least two are needed");
    corpus c = {.n = in->n};
    c.ends = tg_alloc_array(in->n + 1, sizeof *c.ends);
    c.lengths = tg_alloc_array(in->n, sizeof *c.lengths);
    tg_status st = c.ends && c.lengths ? read_texts(&c, state, in, err)
                                       : tg_fail_nomem(err, in->n * sizeof *c.ends);
    if (st == TG_OK) st = find_tops(&c, err);
    if (st == TG_OK) st = score(&c, out, err);
    tg_words_fini(&c.words);
    tg_wids_fini(&c.ids);
    tg_ngrams_fini(&c.grams);
    tg_free(c.ends);
    tg_free(c.lengths);
    tg_free(c.tops);
    return st;
}

const tg_metric_ops tg_metric_self_bleu = {
    .entry = {.name = "self_bleu",
              .summary = "BLEU of every text against all others: high where they are alike.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(tg_splitter),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
