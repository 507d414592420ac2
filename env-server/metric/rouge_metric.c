/* The metric rouge: F of the four types for each text, and for the corpus
 * rouge-score's bootstrap `mid` with the plain mean beside it. After open the
 * state is read-only. */
#include "common/base/alloc.h"
#include "env-server/metric/bootstrap.h"
#include "env-server/metric/items.h"
#include "env-server/metric/pyrepr.h"
#include "env-server/metric/rouge.h"
#include "env-server/metric/rows.h"

#include <stdio.h>
#include <string.h>

struct options {
    bool use_single_ref;
    int64_t seed;
    bool compat; /* not an option: from the context */
};
static const tg_opt options[] = {
    TG_OPT_BOOL(struct options, use_single_ref, "true",
                "Only the first reference counts; else the best one by F."),
    TG_OPT_INT_OR_NULL(struct options, seed, 0, 4294967295.0,
                       "Resample as rouge-score does after numpy.random.seed(seed)."),
    TG_OPT_END};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)err;
    struct options *o = state;
    *o = *(const struct options *)opts;
    o->compat = ctx->compat;
    return TG_OK;
}

/* RL4LMs passes the whole list where one text is expected. */
static tg_status score_as_list(tg_rouge *r, const tg_sample *s, tg_prf *out, tg_error *err) {
    tg_buf text = {0};
    tg_py_repr_list(&text, s->references, s->n_references);
    tg_status st = text.failed ? tg_fail_nomem(err, text.len)
                               : tg_rouge_score(r, text.data, text.len, out, err);
    tg_buf_fini(&text);
    return st;
}

tg_status tg_rouge_sample(tg_rouge *r, const char *text, size_t len, const tg_sample *s,
                          bool use_single_ref, bool compat, tg_prf out[TG_ROUGE_TYPES],
                          tg_error *err) {
    tg_status st = tg_rouge_prediction(r, text, len, err);
    if (st != TG_OK) return st;
    if (compat && !use_single_ref) return score_as_list(r, s, out, err);
    return tg_rouge_best(r, s->references, use_single_ref ? 1 : s->n_references, out, err);
}

static tg_status start(void *work, const void *state, tg_error *err) {
    (void)state;
    return tg_rouge_create(work, true, err);
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    const struct options *o = state;
    return tg_rouge_sample(*(tg_rouge **)work, item->text, item->text_len, item->sample,
                           o->use_single_ref, o->compat, out, err);
}

static void end(void *work) {
    tg_rouge_destroy(work);
}

/* f: n values of each type, one type after the other. */
static tg_status score_all(const struct options *o, const tg_metric_input *in, double *f,
                           tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_rouge *), TG_ROUGE_TYPES * sizeof(tg_prf), start,
                                      one, end};
    tg_prf *scores = tg_alloc_array(in->n, TG_ROUGE_TYPES * sizeof *scores);
    if (!scores) return tg_fail_nomem(err, in->n * TG_ROUGE_TYPES * sizeof *scores);
    tg_status st = tg_items_run(in, &loop, o, scores, err);
    for (size_t i = 0; i < in->n && st == TG_OK; i++)
        for (int t = 0; t < TG_ROUGE_TYPES; t++)
            f[(size_t)t * in->n + i] = scores[i * TG_ROUGE_TYPES + (size_t)t].f;
    tg_free(scores);
    return st;
}

static tg_status emit(const struct options *o, tg_rouge_type type, double mid, const double *f,
                      size_t n, tg_metric_out *out, tg_error *err) {
    char key[64];
    double sum = 0;
    snprintf(key, sizeof key, "lexical/rouge_%s", tg_rouge_name(type));
    tg_status st = tg_metric_emit(out, key, mid, o->compat ? NULL : f, n, err);
    if (st != TG_OK || o->compat) return st;
    for (size_t i = 0; i < n; i++) sum += f[i];
    snprintf(key, sizeof key, "lexical/rouge_%s_mean", tg_rouge_name(type));
    return tg_metric_emit(out, key, sum / (double)n, NULL, 0, err);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    const struct options *o = state;
    if (o->use_single_ref || !o->compat) {
        tg_status missing = tg_items_need_references(in, err);
        if (missing != TG_OK) return missing;
    }
    double *f = tg_alloc_array(in->n, TG_ROUGE_TYPES * sizeof *f);
    if (!f) return tg_fail_nomem(err, in->n * TG_ROUGE_TYPES * sizeof *f);
    tg_bootstrap b;
    tg_bootstrap_init(&b, o->seed);
    double mid[TG_ROUGE_TYPES];
    tg_status st = score_all(o, in, f, err);
    if (st == TG_OK) st = tg_bootstrap_mids(&b, f, in->n, TG_ROUGE_TYPES, in->threads, mid, err);
    for (int t = 0; t < TG_ROUGE_TYPES && st == TG_OK; t++)
        st = emit(o, (tg_rouge_type)t, mid[t], f + (size_t)t * in->n, in->n, out, err);
    tg_free(f);
    return st;
}

const tg_metric_ops tg_metric_rouge = {
    .entry = {.name = "rouge",
              .summary = "ROUGE-1, -2, -L and -Lsum F.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct options),
    .open = open_metric,
    .compute = compute,
};
