/* The reward meteor: METEOR of the finished text, with an optional shaping function. */
#include "env-server/metric/meteor.h"

#include "env-server/reward/rows.h"
#include "env-server/reward/shaping.h"

struct options {
    const char *shaping_fn;
};
static const tg_opt options[] = {TG_OPT_SHAPING(struct options), TG_OPT_END};

struct state {
    tg_meteor *meteor;
    tg_reward shaping;
};

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    tg_status st =
        tg_shaping_open(&s->shaping, ((const struct options *)opts)->shaping_fn, ctx, err);
    if (st == TG_OK) st = tg_meteor_create(&s->meteor, ctx->compat, err);
    if (st != TG_OK) tg_reward_close(&s->shaping);
    return st;
}

static void close_reward(void *state) {
    struct state *s = state;
    tg_reward_close(&s->shaping);
    tg_meteor_destroy(&s->meteor);
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    tg_meteor_work w = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (in[i].done)
            st = tg_meteor_sample(s->meteor, &w, in[i].text, in[i].text_len, in[i].sample,
                                  &out[i].value, err);
    }
    tg_meteor_work_fini(&w);
    return st == TG_OK ? tg_shaping_add(&s->shaping, in, n, out, err) : st;
}

const tg_reward_ops tg_reward_meteor = {
    .entry = {.name = "meteor",
              .summary = "METEOR against the best reference.",
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
