/* The rewards of the step under way: of each of its tokens, their parts, and what the step has of them. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "env-server/env/slot_internal.h"
#include "env-server/reward/meter.h"
#include "proto/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reward of the i-th action, whose text is decoded where some reward looks at it. */
static tg_status score_token(const tg_env *env, tg_slot *s, size_t i, bool done,
                             tg_reward_value *const *ahead, tg_error *err) {
    if (env->wants_before && i) {
        tg_status kept = tg_slot_text_before(env, s, i, err);
        if (kept != TG_OK) return kept;
    }
    for (size_t k = 0; k < env->n_rewards; k++) {
        const tg_reward *r = &env->rewards[k];
        s->values[k] = (tg_reward_value){TG_REWARD_OK, 0};
        if (r->traits.terminal && !done) continue;
        if (ahead && ahead[k]) {
            s->values[k] = ahead[k][i - s->pending.step];
            continue;
        }
        if (env->ranked) { /* whoever owns the group of samples asks for the reward of all together */
            s->values[k] = (tg_reward_value){TG_REWARD_PENDING, (double)NAN};
            tg_reward_meter_count(r->meter, TG_REWARD_PENDING, 1);
            continue;
        }
        tg_status st = tg_slot_text(env, s, i + 1, err);
        if (st != TG_OK) return st;
        tg_reward_input in = {.sample = &s->sample, .n_tokens = i + 1, .done = done};
        in.details = &s->details;
        s->details.prefix = r->name;
        in.tokens = s->context.data + env->context_start.n;
        in.text = s->text.data, in.text_len = s->text.len;
        if (env->wants_before && i)
            in.before = s->shorter.data ? s->shorter.data : "", in.before_len = s->shorter.len;
        st = tg_reward_score(r, &in, 1, &s->values[k], err);
        if (st == TG_NOMEM || st == TG_BUSY) return st;
        if (s->values[k].status != TG_REWARD_OK)
            snprintf(s->reward_message, sizeof s->reward_message, "reward %s: %.200s", r->name,
                     err->msg[0] ? err->msg : "not a finite number");
    }
    return TG_OK;
}

/* Adds the values of one token to the components of the step; a failed one stays failed. */
static void add_components(const tg_env *env, tg_slot *s, bool first) {
    for (size_t k = 0; k < env->n_rewards; k++) {
        tg_component *c = &s->components[k];
        if (first) *c = (tg_component){env->rewards[k].name, 0, TG_REWARD_OK};
        if (c->status == TG_REWARD_OK) c->status = s->values[k].status;
        c->value += s->values[k].value;
        if (c->status == TG_REWARD_OK && !isfinite(c->value))
            c->status = TG_REWARD_INVALID, c->value = (double)NAN;
    }
}

/* Behind the components of the rewards stands what these told of themselves, as far as there is room. */
static void append_details(const tg_env *env, tg_slot *s) {
    size_t n = TG_MIN(s->details.n, (size_t)TG_LIMIT_COMPONENTS - env->n_rewards);
    s->n_components = env->n_rewards;
    if (!s->details.n || env->n_rewards > TG_LIMIT_COMPONENTS) return;
    if (env->n_rewards + n > s->cap_components) {
        size_t cap = env->n_rewards + n;
        tg_component *grown = tg_realloc_array(s->components, cap, sizeof *grown);
        if (!grown) return;
        s->components = grown, s->cap_components = cap;
    }
    memcpy(s->components + env->n_rewards, s->details.items, n * sizeof *s->details.items);
    s->n_components += n;
}

static void score_tokens(const tg_env *env, tg_slot *s, tg_reward_value *const *ahead) {
    tg_slot_reply *p = &s->pending;
    tg_error err = {0};
    uint64_t digest = s->digest;
    for (size_t i = 0; i < p->n_applied; i++) {
        size_t at = p->step + i;
        bool done = p->stop != TG_STOP_NONE && i + 1 == p->n_applied;
        s->scored = score_token(env, s, at, done, ahead, &err);
        if (s->scored != TG_OK) return;
        tg_reward_value total;
        const char *why = tg_env_combine(env, s->values, &total);
        if (*why) snprintf(s->reward_message, sizeof s->reward_message, "%s", why);
        add_components(env, s, i == 0);
        s->rewards[at] = total.value;
        if (p->status == TG_REWARD_OK) p->status = total.status;
        digest = tg_slot_chain(digest, s->context.data[env->context_start.n + at],
                               total.status == TG_REWARD_OK ? total.value : (double)NAN);
    }
    p->digest = digest;
    append_details(env, s);
}

void tg_slot_score(const tg_env *env, tg_slot *s) {
    tg_reward_value **ahead;
    tg_arena arena = {0};
    tg_error err = {0};
    s->pending.status = TG_REWARD_OK;
    tg_reward_details_reset(&s->details);
    s->scored = tg_slot_score_ahead(env, s, &arena, &ahead, &err);
    if (s->scored == TG_OK) score_tokens(env, s, ahead);
    tg_arena_fini(&arena);
}
