/* The metric cider: CIDEr-D of every text, and its mean. */
#include "common/base/alloc.h"
#include "common/base/map.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"

#include <string.h>

struct options {
    const char *tokenize, *df;
};
static const tg_opt options[] = {
    TG_OPT_STR_ONE_OF(struct options, tokenize, "none", "none|nltk",
                      "Words: between spaces, or lower-cased as NLTK splits them."),
    TG_OPT_STR(struct options, df, NULL,
               "File of references, a sample a line (a JSON list of texts, or a text), that says "
               "how rare n-grams are; without it the scored samples do."),
    TG_OPT_END};

struct state {
    tg_nltk *nltk;
    tg_cider_df *df;
    bool compat;
};

static void close_metric(void *state) {
    struct state *s = state;
    tg_nltk_destroy(&s->nltk);
    tg_cider_df_destroy(&s->df);
}

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    s->compat = ctx->compat;
    tg_status st = TG_OK;
    if (!strcmp(o->tokenize, "nltk"))
        st = tg_nltk_create(&s->nltk, ctx->compat ? TG_NLTK_3_7 : TG_NLTK_CURRENT, err);
    if (st == TG_OK && o->df) st = tg_cider_df_read(&s->df, o->df, s->nltk, err);
    if (st != TG_OK) close_metric(s);
    return st;
}

/* RL4LMs keeps results by prompt: the last text and references of a prompt stand at its first
 * place. */
static tg_status collapse(const tg_metric_input *in, tg_metric_item *out, size_t *n,
                          tg_error *err) {
    tg_map places = {0};
    bool ok = true;
    *n = 0;
    for (size_t i = 0; i < in->n && ok; i++) {
        const char *prompt = in->items[i].sample->prompt_text;
        uint64_t place = *n;
        if (!tg_map_get(&places, prompt, strlen(prompt), &place)) {
            ok = tg_map_set(&places, prompt, strlen(prompt), place);
            ++*n;
        }
        out[place] = in->items[i];
    }
    tg_map_fini(&places);
    return ok ? TG_OK : tg_fail_nomem(err, in->n);
}

static bool has_words(const tg_metric_item *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < items[i].sample->n_references; k++)
            if (items[i].sample->references[k][strspn(items[i].sample->references[k], " \t\r\n")])
                return true;
    return false;
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    const struct state *s = state;
    tg_status st = tg_items_need_references(in, err);
    if (st != TG_OK) return st;
    tg_metric_item *items = tg_alloc_array(in->n, sizeof *items);
    double *values = tg_alloc_array(in->n, sizeof *values), sum = 0;
    size_t n = in->n;
    if (!items || !values) st = tg_fail_nomem(err, in->n * sizeof *items);
    if (st == TG_OK) memcpy(items, in->items, in->n * sizeof *items);
    if (st == TG_OK && s->compat) st = collapse(in, items, &n, err);
    if (st == TG_OK && s->compat && !has_words(items, n))
        st = tg_fail(err, TG_DATA, "all references are empty");
    if (st == TG_OK) st = tg_cider_score(items, n, s->nltk, s->df, values, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) sum += values[i];
    if (st == TG_OK) st = tg_metric_emit(out, "lexical/cider", sum / (double)n, values, n, err);
    tg_free(items);
    tg_free(values);
    return st;
}

const tg_metric_ops tg_metric_cider = {
    .entry = {.name = "cider",
              .summary = "CIDEr-D.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
