/* The reward parent: PARENT F of a finished text about a table. */
#include "env-server/metric/totto.h"
#include "env-server/reward/rows.h"

static const tg_opt no_options[] = {TG_OPT_END};
struct state {
    bool compat;
};

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    (void)opts;
    (void)err;
    ((struct state *)state)->compat = ctx->compat;
    return TG_OK;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    tg_totto t = {.compat = ((const struct state *)state)->compat};
    tg_status st = TG_OK;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        if (!in[i].done) continue;
        if (t.compat && (!in[i].text_len || tg_totto_breaks_lines(in[i].text, in[i].text_len))) {
            out[i].status = TG_REWARD_INVALID; /* RL4LMs's scripts fail */
            continue;
        }
        const tg_metric_item item = {in[i].sample, in[i].text, in[i].text_len};
        tg_parent p = {0};
        st = tg_totto_read(&t, &item, err);
        if (st == TG_OK) st = tg_totto_parent(&t, &p, err);
        out[i].value = p.f;
    }
    tg_totto_fini(&t);
    return st;
}

const tg_reward_ops tg_reward_parent = {
    .entry = {.name = "parent",
              .summary = "PARENT F of table-to-text generation.",
              .options = no_options,
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_reward,
    .terminal = true,
    .deterministic = true,
    .score = score,
};
