/* The reward intent_accuracy: METEOR, and whether the reply has the wanted dialogue intent by a classifier. */
#include "env-server/metric/meteor.h"
#include "env-server/reward/judged.h"
#include "env-server/reward/rows.h"

struct options {
    bool shape;
    double intent_coeff, auto_coeff;
    const char *model_name;
};
static const tg_opt options[] = {
    TG_OPT_BOOL(struct options, shape, "true", "Add METEOR."),
    TG_OPT_FLOAT(struct options, intent_coeff, "1.0", -1e9, 1e9,
                 "Weight of the intent's match; 0: no classifier is needed."),
    TG_OPT_FLOAT(struct options, auto_coeff, "1.0", -1e9, 1e9, "Weight of METEOR."),
    TG_OPT_STR(struct options, model_name, TG_INTENT_MODEL,
               "Classifier of intents, as a folder or a name."),
    TG_OPT_END};

struct state {
    tg_meteor *meteor;
    tg_match match; /* judge NULL: not asked for */
    double intent_coeff, auto_coeff;
    bool compat;
};

static void close_reward(void *state) {
    struct state *s = state;
    tg_match_close(&s->match);
    tg_meteor_destroy(&s->meteor);
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    s->intent_coeff = o->intent_coeff;
    s->auto_coeff = o->shape ? o->auto_coeff : 0;
    s->compat = ctx->compat;
    tg_status st = tg_meteor_create(&s->meteor, ctx->compat, err);
    if (st == TG_OK && o->intent_coeff != 0)
        st = tg_match_open(&s->match, ctx, "intent_accuracy", o->model_name, "intent", 1, err);
    if (st != TG_OK) close_reward(s);
    return st;
}

/* RL4LMs's lists of texts grow from one finished episode to the next: it gives the k-th the mean of the first k. */
static tg_status add_meteor(const struct state *s, const tg_metric_item *items, size_t n,
                            double *values, tg_error *err) {
    tg_meteor_work w = {0};
    tg_status st = TG_OK;
    double sum = 0;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        double value;
        st = tg_meteor_sample(s->meteor, &w, items[i].text, items[i].text_len, items[i].sample,
                              &value, err);
        sum += value;
        values[i] = s->auto_coeff * (s->compat ? sum / (double)(i + 1) : value) +
                    s->intent_coeff * values[i];
    }
    tg_meteor_work_fini(&w);
    return st;
}

static tg_status values_of(const void *state, const tg_metric_item *items, size_t n, double *values,
                           tg_error *err) {
    const struct state *s = state;
    for (size_t i = 0; i < n; i++) values[i] = 0;
    tg_status st = s->match.judge ? tg_match_values(&s->match, items, n, values, err) : TG_OK;
    return st == TG_OK ? add_meteor(s, items, n, values, err) : st;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    return tg_judge_finished(state, values_of, in, n, out, err);
}

const tg_reward_ops tg_reward_intent_accuracy = {
    .entry = {.name = "intent_accuracy",
              .summary = "METEOR, and whether a classifier finds the wanted dialogue intent.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    TG_JUDGED_TRAITS,
    .open = open_reward,
    .close = close_reward,
    .score = score,
};
