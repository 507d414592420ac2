/* The rewards that ask a model. Texts that are finished are judged together, in one pass; what it computes is in env-server/judge. */
#include "env-server/reward/judged.h"

#include "common/base/alloc.h"
#include "env-server/judge/bert_score.h"
#include "env-server/reward/rows.h"

tg_status tg_judge_finished(const void *state, tg_judged_values *fill, const tg_reward_input *in,
                            size_t n, tg_reward_value *out, tg_error *err) {
    tg_metric_item *items = tg_alloc_array(n, sizeof *items);
    double *values = tg_alloc_array(n, sizeof *values);
    size_t done = 0;
    tg_status st = items && values ? TG_OK : tg_fail_nomem(err, n * sizeof *items);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        if (in[i].done) items[done++] = (tg_metric_item){in[i].sample, in[i].text, in[i].text_len};
    if (done) st = fill(state, items, done, values, err);
    for (size_t i = 0, k = 0; i < n && st == TG_OK; i++)
        out[i] = (tg_reward_value){TG_REWARD_OK, in[i].done ? values[k++] : 0};
    tg_free(items);
    tg_free(values);
    return st;
}

/* ---- learned_reward ---------------------------------------------------------------------------- */

static const tg_opt learned_options[] = {TG_LEARNED_ROWS, TG_LEARNED_PROMPT_ROW, TG_OPT_END};

static tg_status learned_score(const void *state, const tg_reward_input *in, size_t n,
                               tg_reward_value *out, tg_error *err) {
    return tg_judge_finished(state, tg_learned_values, in, n, out, err);
}

const tg_reward_ops tg_reward_learned = {
    .entry = {.name = "learned_reward",
              .summary = "Probability of a label under a sequence classifier.",
              .options = learned_options,
              .options_size = sizeof(tg_learned_options),
              .built = true},
    .state_size = sizeof(tg_learned),
    TG_JUDGED_TRAITS,
    .open = tg_learned_start,
    .close = tg_learned_close,
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
    return tg_judge_finished(state, bert_values, in, n, out, err);
}

const tg_reward_ops tg_reward_bert_score = {
    .entry = {.name = "bert_score",
              .summary = "BERTScore F1 against the best reference.",
              .options = tg_bert_score_table,
              .options_size = sizeof(tg_bert_score_options),
              .built = true},
    .state_size = sizeof(tg_bert_score),
    TG_JUDGED_TRAITS,
    .open = bert_open,
    .close = bert_close,
    .score = bert_reward,
};

/* ---- bleurt ------------------------------------------------------------------------------------ */

static const tg_opt bleurt_options[] = {TG_BLEURT_ROW("checkpoint"), TG_OPT_END};

static tg_status bleurt_score(const void *state, const tg_reward_input *in, size_t n,
                              tg_reward_value *out, tg_error *err) {
    return tg_judge_finished(state, tg_bleurt_values, in, n, out, err);
}

const tg_reward_ops tg_reward_bleurt = {
    .entry = {.name = "bleurt",
              .summary = "BLEURT against the best reference.",
              .options = bleurt_options,
              .options_size = sizeof(tg_bleurt_options),
              .built = true},
    .state_size = sizeof(tg_bleurt),
    TG_JUDGED_TRAITS,
    .open = tg_bleurt_start,
    .close = tg_bleurt_close,
    .score = bleurt_score,
};
