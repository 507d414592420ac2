/* The reward common_gen_preference_model: how likely a preference model calls the sentence good, less for every concept that it lacks, and
 * METEOR. */
#include "common/base/buf.h"
#include "env-server/metric/meteor.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/judged.h"
#include "env-server/reward/rows.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct options {
    const char *model_type, *device, *model_name;
    int64_t batch_size;
    double concept_penalty_coeff, meteor_coeff;
};
#define O struct options
static const tg_opt options[] = {
    TG_OPT_STR_REQUIRED(O, model_type, "Size of the preference model: 11b."),
    TG_OPT_STR(O, device, NULL, "As in RL4LMs; the worker's backend runs the model."),
    TG_OPT_INT(O, batch_size, "1", 1, 1e9,
               "As in RL4LMs; texts are packed here, and results do not depend on it."),
    TG_OPT_FLOAT(O, concept_penalty_coeff, "0.0", -1e9, 1e9, "Penalty per missing concept."),
    TG_OPT_FLOAT(O, meteor_coeff, "0.0", -1e9, 1e9, "Weight of METEOR."),
    TG_OPT_STR(O, model_name, NULL,
               "Folder or name of the model; unset: t5-<model_type>~commongen_prefs."),
    TG_OPT_END};
#undef O

struct state {
    tg_preference model;
    tg_meteor *meteor;
    double concept_penalty_coeff, meteor_coeff;
};

static void close_reward(void *state) {
    struct state *s = state;
    tg_preference_close(&s->model);
    tg_meteor_destroy(&s->meteor);
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    s->concept_penalty_coeff = o->concept_penalty_coeff;
    s->meteor_coeff = o->meteor_coeff;
    char name[128];
    snprintf(name, sizeof name, "t5-%.80s~commongen_prefs", o->model_type);
    tg_status st = tg_preference_open(&s->model, ctx, "common_gen_preference_model",
                                      o->model_name ? o->model_name : name, err);
    if (st == TG_OK && o->meteor_coeff != 0) st = tg_meteor_create(&s->meteor, ctx->compat, err);
    if (st != TG_OK) close_reward(s);
    return st;
}

/* Concepts of meta that are no part of the text in lower case. */
static tg_status count_missing(const tg_metric_item *item, size_t *out, tg_error *err) {
    const tg_sample *s = item->sample;
    json_t *meta = s && s->meta_json && *s->meta_json ? json_loads(s->meta_json, 0, NULL) : NULL;
    const json_t *concepts = json_object_get(meta, "concepts"), *concept;
    tg_status st = TG_OK;
    if (!json_is_array(concepts))
        st = tg_fail(err, TG_DATA,
                     "sample \"%s\": meta: expected {\"concepts\": […]}, as the data pool "
                     "commongen has it",
                     s ? s->id : "");
    tg_buf lower = {0};
    if (st == TG_OK) tg_py_lower(&lower, item->text, item->text_len);
    if (lower.failed) st = tg_fail_nomem(err, item->text_len);
    size_t i;
    *out = 0;
    if (st == TG_OK) json_array_foreach(concepts, i, concept) {
            const char *word = json_string_value(concept);
            size_t len = json_string_length(concept);
            if (!word || (len && (!lower.len || !memmem(lower.data, lower.len, word, len)))) ++*out;
        }
    tg_buf_fini(&lower);
    json_decref(meta);
    return st;
}

static tg_status shape(const struct state *s, tg_meteor_work *w, const tg_metric_item *item,
                       double *value, tg_error *err) {
    double meteor = 0;
    size_t missing = 0;
    tg_status st = TG_OK;
    if (s->concept_penalty_coeff != 0) st = count_missing(item, &missing, err);
    if (st == TG_OK && s->meteor)
        st = tg_meteor_sample(s->meteor, w, item->text, item->text_len, item->sample, &meteor, err);
    *value = s->meteor_coeff * meteor + *value / (1 + s->concept_penalty_coeff * (double)missing);
    return st;
}

static tg_status values_of(const void *state, const tg_metric_item *items, size_t n, double *values,
                           tg_error *err) {
    const struct state *s = state;
    tg_meteor_work w = {0};
    tg_status st = tg_preference_values(&s->model, items, n, values, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) st = shape(s, &w, &items[i], &values[i], err);
    tg_meteor_work_fini(&w);
    return st;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    return tg_judge_finished(state, values_of, in, n, out, err);
}

const tg_reward_ops tg_reward_preference = {
    .entry = {.name = "common_gen_preference_model",
              .summary = "Probability of a good sentence under a preference model.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    TG_JUDGED_TRAITS,
    .open = open_reward,
    .close = close_reward,
    .score = score,
};
