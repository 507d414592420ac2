/* The metrics that ask a model: one value for each text, and their mean. What they compute is in env-server/judge. */
#include "common/base/alloc.h"
#include "env-server/judge/bert_score.h"
#include "env-server/judge/judgement.h"
#include "env-server/metric/rows.h"

/* The values under the key, and their mean. */
static tg_status emit_mean(tg_metric_out *out, const char *key, const double *values, size_t n,
                           tg_error *err) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    return tg_metric_emit(out, key, sum / (double)n, values, n, err);
}

static tg_status mean_of(const void *state, tg_judged_values *fill, const char *key,
                         const tg_metric_input *in, tg_metric_out *out, tg_error *err) {
    double *values = tg_alloc_array(in->n, sizeof *values);
    if (!values) return tg_fail_nomem(err, in->n * sizeof *values);
    tg_status st = fill(state, in->items, in->n, values, err);
    if (st == TG_OK) st = emit_mean(out, key, values, in->n, err);
    tg_free(values);
    return st;
}

/* ---- learned_reward ---------------------------------------------------------------------------- */

static const tg_opt learned_options[] = {
    TG_LEARNED_ROWS,
    TG_OPT_INT(tg_learned_options, batch_size, "32", 1, 1e9,
               "As in RL4LMs; texts are packed here, and results do not depend on it."),
    TG_LEARNED_PROMPT_ROW, TG_OPT_END};

static tg_status learned_compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                 tg_error *err) {
    return mean_of(state, tg_learned_values, "semantic/learned_automodel_metric", in, out, err);
}

const tg_metric_ops tg_metric_learned_reward = {
    .entry = {.name = "learned_reward",
              .summary = "Probability of a label under a sequence classifier.",
              .options = learned_options,
              .options_size = sizeof(tg_learned_options),
              .built = true},
    .state_size = sizeof(tg_learned),
    .open = tg_learned_start,
    .close = tg_learned_close,
    .compute = learned_compute,
};

/* ---- intent_accuracy, emotion_accuracy --------------------------------------------------------- */

struct match_options {
    const char *model_name;
};
static const tg_opt intent_options[] = {TG_OPT_STR(struct match_options, model_name,
                                                   TG_INTENT_MODEL,
                                                   "Classifier of intents, as a folder or a name."),
                                        TG_OPT_END};
static const tg_opt emotion_options[] = {
    TG_OPT_STR_REQUIRED(struct match_options, model_name,
                        "Classifier of emotions (labels 0 to 6 as in DailyDialog)."),
    TG_OPT_END};

static tg_status intent_open(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    return tg_match_open(state, ctx, "intent_accuracy",
                         ((const struct match_options *)opts)->model_name, "intent", 1, err);
}

static tg_status emotion_open(void *state, const void *opts, const tg_open_context *ctx,
                              tg_error *err) {
    return tg_match_open(state, ctx, "emotion_accuracy",
                         ((const struct match_options *)opts)->model_name, "emotion", 0, err);
}

static tg_status intent_compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                tg_error *err) {
    return mean_of(state, tg_match_values, "intent/accuracy", in, out, err);
}

static tg_status emotion_compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                 tg_error *err) {
    return mean_of(state, tg_match_values, "emotion/accuracy", in, out, err);
}

const tg_metric_ops tg_metric_intent_accuracy = {
    .entry = {.name = "intent_accuracy",
              .summary = "Share of texts with the wanted dialogue intent.",
              .options = intent_options,
              .options_size = sizeof(struct match_options),
              .built = true},
    .state_size = sizeof(tg_match),
    .open = intent_open,
    .close = tg_match_close,
    .compute = intent_compute,
};

const tg_metric_ops tg_metric_emotion_accuracy = {
    .entry = {.name = "emotion_accuracy",
              .summary = "Share of texts with the wanted emotion of a dialogue.",
              .options = emotion_options,
              .options_size = sizeof(struct match_options),
              .built = true},
    .state_size = sizeof(tg_match),
    .open = emotion_open,
    .close = tg_match_close,
    .compute = emotion_compute,
};

/* ---- bleurt ------------------------------------------------------------------------------------ */

static const tg_opt bleurt_options[] = {TG_BLEURT_ROW("config_name"), TG_OPT_END};

static tg_status bleurt_compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                                tg_error *err) {
    return mean_of(state, tg_bleurt_values, "semantic/bleurt", in, out, err);
}

const tg_metric_ops tg_metric_bleurt = {
    .entry = {.name = "bleurt",
              .summary = "BLEURT against the best reference.",
              .options = bleurt_options,
              .options_size = sizeof(tg_bleurt_options),
              .built = true},
    .state_size = sizeof(tg_bleurt),
    .open = tg_bleurt_start,
    .close = tg_bleurt_close,
    .compute = bleurt_compute,
};

/* ---- bert_score -------------------------------------------------------------------------------- */

struct bert_state {
    tg_bert_score score;
    bool compat;
};

static tg_status bert_open(void *state, const void *opts, const tg_open_context *ctx,
                           tg_error *err) {
    struct bert_state *s = state;
    s->compat = ctx->compat;
    return tg_bert_score_open(&s->score, ctx, opts, err);
}

static void bert_close(void *state) {
    tg_bert_score_close(&((struct bert_state *)state)->score);
}

static tg_status bert_emit(const tg_bert_score_value *v, size_t n, bool all, double *values,
                           tg_metric_out *out, tg_error *err) {
    for (size_t i = 0; i < n; i++) values[i] = (double)v[i].f1;
    tg_status st = emit_mean(out, "semantic/bert_score", values, n, err);
    for (size_t i = 0; i < n; i++) values[i] = (double)v[i].precision;
    if (st == TG_OK && all) st = emit_mean(out, "semantic/bert_score_precision", values, n, err);
    for (size_t i = 0; i < n; i++) values[i] = (double)v[i].recall;
    if (st == TG_OK && all) st = emit_mean(out, "semantic/bert_score_recall", values, n, err);
    return st;
}

static tg_status bert_compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                              tg_error *err) {
    const struct bert_state *s = state;
    tg_bert_score_value *v = tg_alloc_array(in->n, sizeof *v);
    double *values = tg_alloc_array(in->n, sizeof *values);
    tg_status st = v && values ? TG_OK : tg_fail_nomem(err, in->n * sizeof *v);
    if (st == TG_OK) st = tg_bert_score_values(&s->score, in->items, in->n, v, err);
    if (st == TG_OK) st = bert_emit(v, in->n, !s->compat, values, out, err);
    tg_free(values);
    tg_free(v);
    return st;
}

const tg_metric_ops tg_metric_bert_score = {
    .entry = {.name = "bert_score",
              .summary = "BERTScore F1 against the best reference; precision and recall beside.",
              .options = tg_bert_score_table,
              .options_size = sizeof(tg_bert_score_options),
              .built = true},
    .state_size = sizeof(struct bert_state),
    .open = bert_open,
    .close = bert_close,
    .compute = bert_compute,
};
