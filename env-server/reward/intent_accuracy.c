/* The reward intent_accuracy: METEOR, and whether a dialogue intent was met. The classifier of intents is not built into
 * this version, so intent_coeff has to be 0; METEOR's part is complete. */
#include "env-server/metric/meteor.h"
#include "env-server/reward/rows.h"

struct options {
    bool shape;
    double intent_coeff, auto_coeff;
};
static const tg_opt options[] = {
    TG_OPT_BOOL(struct options, shape, "true", "Add METEOR."),
    TG_OPT_FLOAT(struct options, intent_coeff, "1.0", -1e9, 1e9,
                 "Weight of the intent's match; only 0 in this version."),
    TG_OPT_FLOAT(struct options, auto_coeff, "1.0", -1e9, 1e9, "Weight of METEOR."), TG_OPT_END};

struct state {
    tg_meteor *meteor;
    double coeff;
    bool compat;
};

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const struct options *o = opts;
    if (o->intent_coeff != 0)
        return tg_fail(err, TG_UNSUPPORTED,
                       "intent_accuracy: the classifier of intents is not built into this version; "
                       "intent_coeff: 0 leaves METEOR");
    s->coeff = o->shape ? o->auto_coeff : 0;
    s->compat = ctx->compat;
    return tg_meteor_create(&s->meteor, ctx->compat, err);
}

static void close_reward(void *state) {
    tg_meteor_destroy(&((struct state *)state)->meteor);
}

/* RL4LMs's lists of texts grow from one finished episode to the next: it gives the k-th the mean of the first k. */
static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    tg_meteor_work w = {0};
    tg_status st = TG_OK;
    double sum = 0;
    size_t finished = 0;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        double value;
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        st = tg_meteor_sample(s->meteor, &w, in[i].text, in[i].text_len, in[i].sample, &value, err);
        sum += value;
        finished++;
        out[i].value = s->coeff * (s->compat ? sum / (double)finished : value);
    }
    tg_meteor_work_fini(&w);
    return st;
}

const tg_reward_ops tg_reward_intent_accuracy = {
    .entry = {.name = "intent_accuracy",
              .summary = "METEOR, with the match of the dialogue intent (not in this version).",
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
