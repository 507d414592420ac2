/* The rewards that ask a model. Texts that are finished are judged together, in one pass; what it computes is in env-server/judge. */
#include "env-server/reward/judged.h"

#include "common/base/alloc.h"
#include "env-server/judge/bert_score.h"
#include "env-server/reward/rows.h"

#include <stdint.h>

tg_status tg_finished_init(tg_finished *f, const tg_reward_input *in, size_t n, tg_error *err) {
    *f = (tg_finished){.items = tg_alloc_array(n, sizeof *f->items),
                       .place = tg_alloc_array(n, sizeof *f->place),
                       .values = tg_alloc_array(n, sizeof *f->values)};
    if (!f->items || !f->place || !f->values) {
        tg_finished_fini(f);
        return tg_fail_nomem(err, n * sizeof *f->items);
    }
    for (size_t i = 0; i < n; i++) {
        if (!in[i].done) continue;
        f->place[f->n] = i;
        f->items[f->n++] = (tg_metric_item){in[i].sample, in[i].text, in[i].text_len};
    }
    return TG_OK;
}

void tg_finished_fini(tg_finished *f) {
    tg_free(f->items);
    tg_free(f->place);
    tg_free(f->values);
    *f = (tg_finished){0};
}

void tg_finished_spread(const tg_finished *f, size_t n, tg_reward_value *out) {
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_OK, 0};
    for (size_t i = 0; i < f->n; i++) out[f->place[i]].value = f->values[i];
}

typedef tg_status values_fn(const void *state, const tg_metric_item *items, size_t n,
                            double *values, tg_error *err);

static tg_status judge(const void *state, values_fn *fill, const tg_reward_input *in, size_t n,
                       tg_reward_value *out, tg_error *err) {
    tg_finished f;
    tg_status st = tg_finished_init(&f, in, n, err);
    if (st != TG_OK) return st;
    if (f.n) st = fill(state, f.items, f.n, f.values, err);
    if (st == TG_OK) tg_finished_spread(&f, n, out);
    tg_finished_fini(&f);
    return st;
}

/* ---- learned_reward ---------------------------------------------------------------------------- */

struct learned_options {
    const char *model_name;
    int64_t label_ix;
    bool include_prompt_for_eval;
};
#define O struct learned_options
static const tg_opt learned_options[] = {
    TG_OPT_STR_REQUIRED(O, model_name, "Sequence classifier, as a folder or a name."),
    TG_OPT_INT_REQUIRED(O, label_ix, -65536, 65536, "Label whose probability is the reward."),
    TG_OPT_BOOL(O, include_prompt_for_eval, "true", "Classify the prompt with the text."),
    TG_OPT_END};
#undef O

static tg_status learned_open(void *state, const void *opts, const tg_open_context *ctx,
                              tg_error *err) {
    const struct learned_options *o = opts;
    return tg_learned_open(state, ctx, "learned_reward", o->model_name, o->label_ix,
                           o->include_prompt_for_eval, err);
}

static void learned_close(void *state) {
    tg_learned_close(state);
}

static tg_status learned_values(const void *state, const tg_metric_item *items, size_t n,
                                double *values, tg_error *err) {
    return tg_learned_values(state, items, n, values, err);
}

static tg_status learned_score(const void *state, const tg_reward_input *in, size_t n,
                               tg_reward_value *out, tg_error *err) {
    return judge(state, learned_values, in, n, out, err);
}

const tg_reward_ops tg_reward_learned = {
    .entry = {.name = "learned_reward",
              .summary = "Probability of a label under a sequence classifier.",
              .options = learned_options,
              .options_size = sizeof(struct learned_options),
              .built = true},
    .state_size = sizeof(tg_learned),
    .terminal = true,
    .slow = true,
    .waits = true,
    .deterministic = true,
    .open = learned_open,
    .close = learned_close,
    .score = learned_score,
};

/* ---- bert_score -------------------------------------------------------------------------------- */

static tg_status bert_open(void *state, const void *opts, const tg_open_context *ctx,
                           tg_error *err) {
    return tg_bert_score_open(state, ctx, opts, err);
}

static void bert_close(void *state) {
    tg_bert_score_close(state);
}

static tg_status bert_values(const void *state, const tg_metric_item *items, size_t n,
                             double *values, tg_error *err) {
    tg_bert_score_value *v = tg_alloc_array(n, sizeof *v);
    if (!v) return tg_fail_nomem(err, n * sizeof *v);
    tg_status st = tg_bert_score_values(state, items, n, v, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) values[i] = (double)v[i].f1;
    tg_free(v);
    return st;
}

static tg_status bert_reward(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *err) {
    return judge(state, bert_values, in, n, out, err);
}

const tg_reward_ops tg_reward_bert_score = {
    .entry = {.name = "bert_score",
              .summary = "BERTScore F1 against the best reference.",
              .options = tg_bert_score_table,
              .options_size = sizeof(tg_bert_score_options),
              .built = true},
    .state_size = sizeof(tg_bert_score),
    .terminal = true,
    .slow = true,
    .waits = true,
    .deterministic = true,
    .open = bert_open,
    .close = bert_close,
    .score = bert_reward,
};

/* ---- bleurt ------------------------------------------------------------------------------------ */

struct bleurt_options {
    const char *checkpoint;
};
static const tg_opt bleurt_options[] = {
    TG_OPT_STR(struct bleurt_options, checkpoint, TG_BLEURT_MODEL,
               "BLEURT as a Hugging Face folder with one label, or its name."),
    TG_OPT_END};

static tg_status bleurt_open(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    const char *name = ((const struct bleurt_options *)opts)->checkpoint;
    return tg_bleurt_open(state, ctx, "bleurt", name ? name : TG_BLEURT_MODEL, err);
}

static void bleurt_close(void *state) {
    tg_bleurt_close(state);
}

static tg_status bleurt_values(const void *state, const tg_metric_item *items, size_t n,
                               double *values, tg_error *err) {
    return tg_bleurt_values(state, items, n, values, err);
}

static tg_status bleurt_score(const void *state, const tg_reward_input *in, size_t n,
                              tg_reward_value *out, tg_error *err) {
    return judge(state, bleurt_values, in, n, out, err);
}

const tg_reward_ops tg_reward_bleurt = {
    .entry = {.name = "bleurt",
              .summary = "BLEURT against the best reference.",
              .options = bleurt_options,
              .options_size = sizeof(struct bleurt_options),
              .built = true},
    .state_size = sizeof(tg_bleurt),
    .terminal = true,
    .slow = true,
    .waits = true,
    .deterministic = true,
    .open = bleurt_open,
    .close = bleurt_close,
    .score = bleurt_score,
};
