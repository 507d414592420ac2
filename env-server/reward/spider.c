/* The reward spider: SPICE and CIDEr-D of finished texts, weighted, with an optional shaping function. CIDEr's document
 * frequencies are those of the training references where there is a data pool; under compat: rl4lms, of the batch. */
#include "common/base/alloc.h"
#include "env-server/metric/cider.h"
#include "env-server/metric/spice.h"
#include "env-server/reward/rows.h"
#include "env-server/reward/shaping.h"

#include <string.h>

struct options {
    double spice_coeff, cider_coeff;
    const char *shaping_fn, *tokenize, *df;
};
#define REQUIRED(f, h)                                                                             \
    TG_OPT_ROW(struct options, f, TG_T_FLOAT, TG_OPT_REQUIRED, NULL, -1e9, 1e9, NULL, h)
static const tg_opt options[] = {REQUIRED(spice_coeff, "Weight of SPICE."),
                                 REQUIRED(cider_coeff, "Weight of CIDEr-D."),
                                 TG_OPT_SHAPING(struct options),
                                 TG_OPT_SPLITTER(struct options, tokenize),
                                 TG_OPT_CIDER_DF(struct options, df),
                                 TG_OPT_END};

struct state {
    double spice_coeff, cider_coeff;
    tg_spice spice;
    tg_cider cider;
    tg_reward shaping;
    bool compat;
};

static void close_reward(void *state) {
    struct state *s = state;
    tg_spice_close(&s->spice);
    tg_cider_close(&s->cider);
    tg_reward_close(&s->shaping);
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    tg_cider_options cider = {o->tokenize, o->df};
    s->spice_coeff = o->spice_coeff, s->cider_coeff = o->cider_coeff, s->compat = ctx->compat;
    if (!cider.df && ctx->train && ctx->train->count && !ctx->compat) cider.df = "pool";
    tg_status st = o->spice_coeff != 0 ? tg_spice_open(&s->spice, ctx->compat, err) : TG_OK;
    if (st == TG_OK) st = tg_cider_open(&s->cider, &cider, ctx, err);
    if (st == TG_OK) st = tg_shaping_open(&s->shaping, o->shaping_fn, ctx, err);
    if (st != TG_OK) close_reward(s);
    return st;
}

static tg_status score_finished(const struct state *s, const tg_metric_item *items, size_t n,
                                double *values, tg_error *err) {
    double mean, *cider = values + n;
    tg_status st = TG_OK;
    if (s->spice_coeff != 0)
        st = tg_spice_corpus(&s->spice, &(tg_metric_input){.items = items, .n = n}, s->compat,
                             values, &mean, err);
    if (st == TG_OK) st = tg_cider_corpus(&s->cider, items, n, 1, cider, &mean, err);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        values[i] = s->spice_coeff * values[i] + s->cider_coeff * cider[i];
    return st;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    tg_metric_item *items = tg_alloc_array(n, sizeof *items);
    double *values = tg_alloc_array(2 * n, sizeof *values);
    tg_status st = items && values ? TG_OK : tg_fail_nomem(err, n * sizeof *items);
    size_t done = 0;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        if (!in[i].sample->n_references)
            out[i].status = TG_REWARD_INVALID;
        else
            items[done++] = (tg_metric_item){in[i].sample, in[i].text, in[i].text_len};
    }
    if (st == TG_OK && done) st = score_finished(s, items, done, values, err);
    for (size_t i = 0, k = 0; i < n && st == TG_OK; i++)
        if (in[i].done && out[i].status == TG_REWARD_OK) out[i].value = values[k++];
    tg_free(items);
    tg_free(values);
    if (st == TG_OK) st = tg_shaping_add(&s->shaping, in, n, out, err);
    for (size_t i = 0; i < n && st == TG_OK && s->compat; i++) /* a tensor of torch's there */
        out[i].value = (double)(float)out[i].value;
    return st;
}

const tg_reward_ops tg_reward_spider = {
    .entry = {.name = "spider",
              .summary = "Weighted sum of SPICE and CIDEr-D.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .terminal = true,
    .deterministic = true,
    .open = open_reward,
    .close = close_reward,
    .score = score,
};
