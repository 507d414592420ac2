/* Rewards that are had elsewhere for every token: all tokens of a step are asked for at once, instead of one call after
 * another. */
#include "common/base/arena.h"
#include "env-server/env/slot_internal.h"

#include <stdio.h>

/* What each token's judge sees: n inputs, whose texts are in the arena. */
static tg_status prepare(const tg_env *env, tg_slot *s, tg_arena *arena, tg_reward_input *in,
                         tg_error *err) {
    const tg_slot_reply *p = &s->pending;
    const char *text = NULL;
    size_t len = 0;
    for (size_t i = 0; i <= p->n_applied; i++) {
        size_t at = p->step + i; /* tokens in this text */
        const char *before = text;
        size_t before_len = len;
        if (at == 0) continue; /* nothing stands before the first */
        tg_status st = tg_slot_text(env, s, at, err);
        if (st != TG_OK) return st;
        len = s->text.len;
        text = tg_arena_strndup(arena, s->text.data, len);
        if (!text) return tg_fail_nomem(err, len);
        if (i == 0) continue;
        in[i - 1] = (tg_reward_input){.sample = &s->sample, .n_tokens = at, .details = &s->details};
        in[i - 1].tokens = s->context.data + env->context_start.n;
        in[i - 1].text = text, in[i - 1].text_len = len;
        in[i - 1].before = before, in[i - 1].before_len = before_len;
        in[i - 1].done = p->stop != TG_STOP_NONE && i == p->n_applied;
    }
    return TG_OK;
}

static tg_status ask(tg_slot *s, const tg_reward *r, const tg_reward_input *in, tg_arena *arena,
                     tg_reward_value **out, tg_error *err) {
    size_t n = s->pending.n_applied;
    tg_reward_value *values = tg_arena_array(arena, n, sizeof *values);
    if (!values) return tg_fail_nomem(err, n * sizeof *values);
    s->details.prefix = r->name;
    tg_status st = tg_reward_score(r, in, n, values, err);
    if (st == TG_NOMEM || st == TG_BUSY) return st;
    for (size_t i = 0; i < n; i++)
        if (values[i].status != TG_REWARD_OK)
            snprintf(s->reward_message, sizeof s->reward_message, "reward %s: %.200s", r->name,
                     err->msg[0] ? err->msg : "not a finite number");
    *out = values;
    return TG_OK;
}

tg_status tg_slot_score_ahead(const tg_env *env, tg_slot *s, tg_arena *arena,
                              tg_reward_value ***out, tg_error *err) {
    size_t n = s->pending.n_applied;
    *out = NULL;
    if (!env->asks_ahead || n < 2) return TG_OK;
    tg_reward_value **values = tg_arena_array(arena, env->n_rewards, sizeof *values);
    tg_reward_input *in = tg_arena_array(arena, n, sizeof *in);
    if (!values || !in) return tg_fail_nomem(err, n * sizeof *in);
    tg_status st = prepare(env, s, arena, in, err);
    for (size_t k = 0; k < env->n_rewards && st == TG_OK; k++) {
        const tg_reward *r = &env->rewards[k];
        if (r->traits.waits && !r->traits.terminal) st = ask(s, r, in, arena, &values[k], err);
    }
    if (st == TG_OK) *out = values;
    return st;
}
