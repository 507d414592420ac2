/* The metrics distinct (share of different n-grams, of each text and of all together) and length (words, characters,
 * sentences). */
#include "common/base/alloc.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/splitter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4 };

struct options {
    const char *tokenize;
};
static const tg_opt options[] = {
    TG_OPT_STR_ONE_OF(struct options, tokenize, "nltk", TG_SPLITTER_NAMES,
                      "Words: lower-cased as NLTK splits them, as spaCy does, or between spaces."),
    TG_OPT_END};
static const tg_opt no_options[] = {TG_OPT_END};

static tg_status open_splitter(void *state, const void *opts, const tg_open_context *ctx,
                               tg_error *err) {
    return tg_splitter_open(state, ((const struct options *)opts)->tokenize, ctx->compat, err);
}

static void close_splitter(void *state) {
    tg_splitter_close(state);
}

/* ---- distinct ---------------------------------------------------------------------------------- */

static void count_different(const tg_ngrams *g, uint64_t different[ORDERS]) {
    memset(different, 0, ORDERS * sizeof *different);
    for (size_t i = 1; i <= g->count; i++) different[g->nodes[i].order - 1]++;
}

static double share(uint64_t different, uint64_t total) {
    return total ? (double)different / (double)total : 0;
}

static tg_status compute_distinct(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                  tg_error *err) {
    tg_splitter_work work = {0};
    tg_words words = {0};
    tg_wids ids = {0};
    tg_ngrams all = {0}, one = {0};
    uint64_t different[ORDERS], total[ORDERS] = {0};
    double *values = tg_alloc_array(ORDERS * in->n, sizeof *values);
    tg_status st = values ? TG_OK : tg_fail_nomem(err, in->n * sizeof *values);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        tg_wids_reset(&ids);
        tg_ngrams_reset(&one);
        st = tg_splitter_words(state, &work, in->items[i].text, in->items[i].text_len, &words, &ids,
                               err);
        tg_ngrams_add(&one, ids.v, ids.n, ORDERS, TG_NGRAM_HYP);
        tg_ngrams_add(&all, ids.v, ids.n, ORDERS, TG_NGRAM_HYP);
        count_different(&one, different);
        for (unsigned k = 0; k < ORDERS; k++) {
            uint64_t n = tg_ngrams_of(ids.n, k + 1);
            values[k * in->n + i] = share(different[k], n);
            total[k] += n;
        }
        if (st == TG_OK && (one.failed || all.failed)) st = tg_fail_nomem(err, ids.n);
    }
    count_different(&all, different);
    for (unsigned k = 0; k < ORDERS && st == TG_OK; k++) {
        char key[40];
        snprintf(key, sizeof key, "diversity_metrics/distinct-%u", k + 1);
        st =
            tg_metric_emit(out, key, share(different[k], total[k]), values + k * in->n, in->n, err);
    }
    tg_free(values);
    tg_ngrams_fini(&all);
    tg_ngrams_fini(&one);
    tg_words_fini(&words);
    tg_wids_fini(&ids);
    tg_splitter_work_fini(&work);
    return st;
}

/* ---- length ------------------------------------------------------------------------------------ */

struct length {
    tg_nltk *nltk;
};

static tg_status open_length(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)opts;
    return tg_nltk_create(&((struct length *)state)->nltk,
                          ctx->compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT, err);
}

static void close_length(void *state) {
    tg_nltk_destroy(&((struct length *)state)->nltk);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean with the values of each text; deviation, median, least and most beside it. */
static tg_status emit(tg_metric_out *out, const char *name, double *v, size_t n, tg_error *err) {
    char key[48];
    double sum = 0, squares = 0, mean;
    for (size_t i = 0; i < n; i++) sum += v[i];
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    snprintf(key, sizeof key, "length/%s", name);
    tg_status st = tg_metric_emit(out, key, mean, v, n, err);
    qsort(v, n, sizeof *v, by_value);
    static const char *const names[] = {"std", "median", "min", "max"};
    const double more[] = {sqrt(squares / (double)n), (v[(n - 1) / 2] + v[n / 2]) / 2, v[0],
                           v[n - 1]};
    for (int k = 0; k < 4 && st == TG_OK; k++) {
        snprintf(key, sizeof key, "length/%s_%s", name, names[k]);
        st = tg_metric_emit(out, key, more[k], NULL, 0, err);
    }
    return st;
}

static tg_status compute_length(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                tg_error *err) {
    static const char *const names[] = {"words", "characters", "sentences"};
    const tg_nltk *nltk = ((const struct length *)state)->nltk;
    tg_nltk_list list = {0};
    double *v = tg_alloc_array(3 * in->n, sizeof *v);
    tg_status st = v ? TG_OK : tg_fail_nomem(err, in->n * sizeof *v);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        const tg_metric_item *item = &in->items[i];
        st = tg_nltk_words(nltk, item->text, item->text_len, &list, err);
        v[i] = (double)list.n;
        v[in->n + i] = (double)list.text.n;
        if (st == TG_OK) st = tg_nltk_sentences(nltk, item->text, item->text_len, &list, err);
        v[2 * in->n + i] = (double)list.n;
    }
    for (int k = 0; k < 3 && st == TG_OK; k++)
        st = emit(out, names[k], v + (size_t)k * in->n, in->n, err);
    tg_nltk_list_fini(&list);
    tg_free(v);
    return st;
}

const tg_metric_ops tg_metric_distinct = {
    .entry = {.name = "distinct",
              .summary = "Share of different n-grams, orders 1 to 4.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(tg_splitter),
    .open = open_splitter,
    .close = close_splitter,
    .compute = compute_distinct,
};

const tg_metric_ops tg_metric_length = {
    .entry = {.name = "length",
              .summary = "Words, characters and sentences of the texts.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct length),
    .open = open_length,
    .close = close_length,
    .compute = compute_length,
};
