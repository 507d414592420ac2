/* The metric sacre_bleu. After open a state is read-only. */
#include "env-server/metric/sacre_bleu.h"

#include "common/base/alloc.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"

#include <math.h>
#include <string.h>

#define S tg_sacre_bleu_options
const tg_opt tg_sacre_bleu_table[] = {
    TG_OPT_STR(S, tokenize, NULL, "Tokeniser: none, 13a (default), intl, char or zh."),
    TG_OPT_STR_ONE_OF(S, smooth_method, "exp", "exp|floor|add-k|none", "Smoothing."),
    TG_OPT_ROW(S, smooth_value, TG_T_FLOAT, TG_OPT_NULLABLE, NULL, 0, 1e9, NULL,
               "Value of floor (default 0.1) and add-k smoothing (default 1)."),
    TG_OPT_ROW(S, force, TG_T_BOOL, TG_OPT_IGNORED, "false", 0, 0, NULL,
               "No effect: nothing warns about tokenised input."),
    TG_OPT_BOOL(S, lowercase, "false", "Ignore case."),
    TG_OPT_BOOL(S, use_effective_order, "false", "Stop at the longest order that occurs."),
    TG_OPT_END};
#undef S

tg_status tg_sacre_bleu_open(tg_sacre_bleu *s, const tg_sacre_bleu_options *o, tg_error *err) {
    static const char *const methods[] = {"none", "floor", "add-k", "exp"};
    static const double defaults[] = {0, 0.1, 1, 0};
    int method = 0;
    while (strcmp(methods[method], o->smooth_method) != 0) method++; /* the table knows all four */
    *s =
        (tg_sacre_bleu){.tok = o->tokenize ? tg_bleu_tok_find(o->tokenize) : TG_TOK_13A,
                        .smooth = (tg_bleu_smooth)method,
                        .smooth_value = isnan(o->smooth_value) ? defaults[method] : o->smooth_value,
                        .lowercase = o->lowercase,
                        .effective_order = o->use_effective_order};
    if (s->tok == TG_TOK_COUNT)
        return tg_fail(err, TG_CONFIG,
                       "sacre_bleu: tokenize: expected none, 13a, intl, char or zh, found \"%s\"",
                       o->tokenize);
    return TG_OK;
}

tg_status tg_sacre_bleu_count(const tg_sacre_bleu *s, tg_sacre_bleu_scratch *scratch,
                              const char *text, size_t len, const tg_sample *sample,
                              tg_error *err) {
    tg_bleu_counter *c = &scratch->counter;
    tg_bleu_start(c);
    bool ok =
        tg_bleu_text_words(&scratch->text, s->tok, s->lowercase, text, len, &c->words, &c->hyp);
    tg_bleu_hypothesis(c);
    for (size_t i = 0; i < sample->n_references && ok; i++) {
        const char *ref = sample->references[i];
        ok = tg_bleu_text_words(&scratch->text, s->tok, s->lowercase, ref, strlen(ref), &c->words,
                                &c->ref);
        tg_bleu_reference(c, NULL);
    }
    return tg_bleu_finish(c) && ok ? TG_OK : tg_fail_nomem(err, len);
}

double tg_sacre_bleu_score(const tg_sacre_bleu *s, const tg_bleu_stats *stats) {
    return tg_bleu_sacre(stats, s->smooth, s->smooth_value, s->effective_order) / 100;
}

void tg_sacre_bleu_scratch_fini(tg_sacre_bleu_scratch *scratch) {
    tg_bleu_fini(&scratch->counter);
    tg_bleu_text_fini(&scratch->text);
}

struct state {
    tg_sacre_bleu bleu;
    bool compat;
};

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    s->compat = ctx->compat;
    return tg_sacre_bleu_open(&s->bleu, opts, err);
}

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    tg_sacre_bleu_scratch *scratch = work;
    tg_status st = tg_sacre_bleu_count(&((const struct state *)state)->bleu, scratch, item->text,
                                       item->text_len, item->sample, err);
    *(tg_bleu_stats *)out = scratch->counter.stats;
    return st;
}

static void end(void *work) {
    tg_sacre_bleu_scratch_fini(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_sacre_bleu_scratch), sizeof(tg_bleu_stats), NULL,
                                      one, end};
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st == TG_OK && s->compat) st = tg_items_need_equal(in, err);
    if (st != TG_OK) return st;
    tg_bleu_stats *each = tg_alloc_array(in->n, sizeof *each), sum = {0};
    double *samples = tg_alloc_array(in->n, sizeof *samples);
    st = each && samples ? tg_items_run(in, &loop, state, each, err)
                         : tg_fail_nomem(err, in->n * sizeof *each);
    for (size_t i = 0; i < in->n && st == TG_OK; i++) {
        samples[i] = tg_sacre_bleu_score(&s->bleu, &each[i]);
        tg_bleu_add(&sum, &each[i]);
    }
    if (st == TG_OK)
        st = tg_metric_emit(out, "lexical/sacrebleu", tg_sacre_bleu_score(&s->bleu, &sum),
                            s->compat ? NULL : samples, in->n, err);
    tg_free(each);
    tg_free(samples);
    return st;
}

const tg_metric_ops tg_metric_sacre_bleu = {
    .entry = {.name = "sacre_bleu",
              .summary = "SacreBLEU, between 0 and 1.",
              .options = tg_sacre_bleu_table,
              .options_size = sizeof(tg_sacre_bleu_options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .compute = compute,
};
