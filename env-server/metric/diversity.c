/* The metric diversity: lengths, vocabulary, distinct n-grams and entropies of all texts together, with
 * gem-metrics's keys and arithmetic. Words are NLTK's in lower case; the keys with "nopunct" leave out
 * words that are one mark of punctuation. */
#include "common/base/alloc.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ORDER = 3 };

struct options {
    int64_t window_size;
};
static const tg_opt options[] = {
    TG_OPT_INT(struct options, window_size, "100", 1, 1e9, "Words per window of MSTTR."),
    TG_OPT_END};

struct state {
    tg_nltk *nltk;
    size_t window;
};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    s->window = (size_t)((const struct options *)opts)->window_size;
    return tg_nltk_create(&s->nltk, ctx->compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT, err);
}

static void close_metric(void *state) {
    tg_nltk_destroy(&((struct state *)state)->nltk);
}

/* The words of all texts end to end, and where each text ends. */
typedef struct texts {
    tg_words vocabulary;
    tg_wids words;
    size_t *ends;
    size_t n;
} texts;

static bool is_punctuation(const char *word, size_t len) {
    return len == 1 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *word) && *word;
}

static tg_status read_texts(const struct state *s, const tg_metric_input *in, texts *t,
                            tg_error *err) {
    tg_nltk_list list = {0};
    tg_status st = TG_OK;
    t->n = in->n;
    t->ends = tg_alloc_array(in->n, sizeof *t->ends);
    if (!t->ends) return tg_fail_nomem(err, in->n * sizeof *t->ends);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        st = tg_nltk_words(s->nltk, in->items[i].text, in->items[i].text_len, &list, err);
        if (st == TG_OK) st = tg_nltk_list_lower(&list, err);
        for (size_t k = 0; k < list.n && st == TG_OK; k++)
            tg_wids_push(&t->words,
                         tg_words_id(&t->vocabulary, tg_nltk_at(&list, k), list.words[k].len));
        t->ends[i] = t->words.n;
    }
    tg_nltk_list_fini(&list);
    if (st == TG_OK && (t->words.failed || t->vocabulary.failed))
        st = tg_fail_nomem(err, t->words.n);
    return st;
}

static void drop_punctuation(texts *t) {
    size_t to = 0, at = 0;
    for (size_t i = 0; i < t->n; i++) {
        for (; at < t->ends[i]; at++) {
            size_t len;
            const char *word = tg_words_text(&t->vocabulary, t->words.v[at], &len);
            if (!is_punctuation(word, len)) t->words.v[to++] = t->words.v[at];
        }
        t->ends[i] = to;
    }
    t->words.n = to;
}

/* Mean share of different words over windows that lie end to end; the rest is dropped. */
static tg_status msttr(const texts *t, size_t window, double *out, tg_error *err) {
    *out = (double)NAN;
    size_t windows = t->words.n / window;
    if (!windows) return TG_OK;
    size_t *seen = tg_alloc_array(t->vocabulary.count + 1, sizeof *seen);
    if (!seen) return tg_fail_nomem(err, t->vocabulary.count * sizeof *seen);
    double sum = 0;
    for (size_t w = 0; w < windows; w++) {
        size_t different = 0;
        for (size_t i = 0; i < window; i++) {
            size_t *last = &seen[t->words.v[w * window + i]];
            different += *last != w + 1;
            *last = w + 1;
        }
        sum += (double)different / (double)window;
    }
    tg_free(seen);
    char text[64];
    snprintf(text, sizeof text, "%.5f",
             sum / (double)windows); /* the original rounds to 5 digits */
    *out = strtod(text, NULL);
    return TG_OK;
}

static int by_size(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

typedef struct sink {
    tg_metric_out *out;
    const char *suffix;
    tg_status st;
    tg_error *err;
} sink;

static void emit(sink *s, const char *name, unsigned order, double value) {
    char key[96], number[16] = "";
    if (order) snprintf(number, sizeof number, "-%u", order);
    snprintf(key, sizeof key, "diversity_metrics/%s%s%s", name, number, s->suffix);
    if (s->st == TG_OK) s->st = tg_metric_emit(s->out, key, value, NULL, 0, s->err);
}

static void emit_lengths(sink *s, const texts *t) {
    size_t *sizes = tg_alloc_array(t->n, sizeof *sizes);
    if (!sizes) {
        s->st = tg_fail_nomem(s->err, t->n * sizeof *sizes);
        return;
    }
    double n = (double)t->n, mean = (double)t->words.n / n, square = 0;
    for (size_t i = 0; i < t->n; i++) {
        sizes[i] = t->ends[i] - (i ? t->ends[i - 1] : 0);
        double d = (double)sizes[i] - mean;
        square += d * d;
    }
    qsort(sizes, t->n, sizeof *sizes, by_size);
    size_t a = sizes[(t->n - 1) / 2], b = sizes[t->n / 2];
    emit(s, "total_length", 0, (double)t->words.n);
    emit(s, "mean_pred_length", 0, mean);
    emit(s, "std_pred_length", 0, sqrt(square / n));
    emit(s, "median_pred_length", 0, ((double)a + (double)b) / 2);
    emit(s, "min_pred_length", 0, (double)sizes[0]);
    emit(s, "max_pred_length", 0, (double)sizes[t->n - 1]);
    tg_free(sizes);
}

static void emit_order(sink *s, const tg_ngrams *g, unsigned order, const uint64_t *total) {
    size_t kinds = 0, once = 0;
    double entropy = 0, conditional = 0, all = (double)total[order];
    for (size_t i = 1; i <= g->count; i++) {
        const tg_ngram *x = &g->nodes[i];
        if (x->order != order || !x->hyp) continue;
        double p = x->hyp / all;
        kinds++;
        once += x->hyp == 1;
        entropy -= p * log2(p);
        if (order > 1) {
            double before = g->nodes[x->parent].hyp / (double)total[order - 1];
            conditional -= p * log2(p / before);
        }
    }
    emit(s, "distinct", order, all > 0 ? (double)kinds / all : 0);
    emit(s, "vocab_size", order, (double)kinds);
    emit(s, "unique", order, (double)once);
    emit(s, "entropy", order, entropy);
    if (order > 1 && total[order - 1]) emit(s, "cond_entropy", order, conditional);
}

static void emit_ngrams(sink *s, const texts *t) {
    tg_ngrams g = {0};
    uint64_t total[MAX_ORDER + 1] = {0};
    for (size_t i = 0; i < t->n; i++) {
        size_t begin = i ? t->ends[i - 1] : 0, n = t->ends[i] - begin;
        tg_ngrams_add(&g, t->words.v + begin, n, MAX_ORDER, TG_NGRAM_HYP);
        for (unsigned k = 1; k <= MAX_ORDER; k++) total[k] += tg_ngrams_of(n, k);
    }
    if (g.failed && s->st == TG_OK) s->st = tg_fail_nomem(s->err, t->words.n);
    for (unsigned k = 1; k <= MAX_ORDER && s->st == TG_OK; k++) emit_order(s, &g, k, total);
    tg_ngrams_fini(&g);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    const struct state *s = state;
    texts t = {0};
    char key[96];
    tg_status st = read_texts(s, in, &t, err);
    for (int pass = 0; pass < 2 && st == TG_OK; pass++) {
        double value = 0;
        if (pass) drop_punctuation(&t);
        st = msttr(&t, s->window, &value, err);
        snprintf(key, sizeof key, "diversity_metrics/msttr-%zu%s", s->window,
                 pass ? "_nopunct" : "");
        if (st == TG_OK) st = tg_metric_emit(out, key, value, NULL, 0, err);
        sink to = {out, pass ? "-nopunct" : "", st, err};
        if (to.st == TG_OK) emit_lengths(&to, &t);
        if (to.st == TG_OK) emit_ngrams(&to, &t);
        st = to.st;
    }
    tg_words_fini(&t.vocabulary);
    tg_wids_fini(&t.words);
    tg_free(t.ends);
    return st;
}

const tg_metric_ops tg_metric_diversity = {
    .entry = {.name = "diversity",
              .summary = "Lengths, vocabulary, distinct n-grams and entropies.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
