/* Episodes from a log of tokens and rewards, and logs of episodes. No reward is called here. */
#include "common/base/check.h"
#include "env-server/env/slot_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The state after these actions. TG_USAGE: they are not those of one episode. */
static tg_status replay(const tg_env *env, tg_slot *s, const int32_t *tokens, const double *rewards,
                        size_t n, tg_error *err) {
    tg_status st = tg_slot_reserve(s, n, err);
    tg_stop stop = TG_STOP_NONE;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (stop != TG_STOP_NONE && !env->settings->context.compat)
            return tg_fail(err, TG_USAGE, "the episode ends at token %zu, the log has %zu", i, n);
        if (tokens[i] < 0 || tokens[i] >= (int64_t)env->spec.vocab_size)
            return tg_fail(err, TG_USAGE, "token %d is not in the vocabulary of %u tokens",
                           tokens[i], env->spec.vocab_size);
        if (isinf(rewards[i]))
            return tg_fail(err, TG_USAGE, "the reward of token %zu is infinite", i);
        if (!tg_ids_push(&s->context, tokens[i])) return tg_fail_nomem(err, n * sizeof *tokens);
        stop = tg_slot_ends(env, s);
        s->rewards[i] = rewards[i];
        s->digest = tg_slot_chain(s->digest, tokens[i], rewards[i]);
    }
    if (st == TG_OK && n) tg_slot_set_state(s, stop);
    return st;
}

/* ---- the last step of a log, asked for again ------------------------------------------------- */

bool tg_slot_is_restored_step(const tg_env *env, const tg_slot *s, const tg_step_item *item) {
    size_t length = tg_slot_length(env, s);
    if (!s->reply.restored || item->step >= length) return false;
    size_t n = length - item->step; /* tokens beyond the episode's end were sent, but not applied */
    bool over = s->state == TG_SLOT_TERMINATED || s->state == TG_SLOT_TRUNCATED;
    if (item->n_tokens < n || (item->n_tokens > n && !over)) return false;
    const int32_t *actions = s->context.data + env->context_start.n;
    return !memcmp(actions + item->step, item->tokens, n * sizeof *actions);
}

/* The log says that a token has no reward, not why; the end of a group's member has none until the group is ranked. */
static tg_reward_status status_of(const tg_env *env, const tg_slot *s, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        if (!isnan(s->rewards[i])) continue;
        bool last = i + 1 == tg_slot_length(env, s) && s->reply.stop != TG_STOP_NONE;
        return env->ranked && last ? TG_REWARD_PENDING : TG_REWARD_FAILED;
    }
    return TG_REWARD_OK;
}

static void keep_reply(const tg_env *env, tg_slot *s, size_t n) {
    tg_stop stop = n ? tg_slot_ends(env, s) : TG_STOP_NONE;
    s->reply = (tg_slot_reply){.restored = n > 0, .stop = stop, .digest = s->digest};
    s->reply.status = n ? status_of(env, s, n - 1, n) : TG_REWARD_OK;
    s->n_components = 0; /* the log has only their sum */
}

void tg_slot_recall(const tg_env *env, tg_slot *s, const tg_step_item *item, uint64_t hash) {
    tg_slot_reply *r = &s->reply;
    size_t length = tg_slot_length(env, s);
    r->valid = true;
    r->step = item->step;
    r->n_sent = (uint32_t)item->n_tokens;
    r->n_applied = (uint32_t)(length - item->step);
    r->tokens_hash = hash;
    r->status = status_of(env, s, item->step, length);
    r->code = r->status == TG_REWARD_FAILED ? TG_CODE_REWARD_FAILED : TG_CODE_OK;
    snprintf(s->reward_message, sizeof s->reward_message,
             "the log that the episode was restored from has no reward for this step");
}

/* ---- restore ------------------------------------------------------------------------------- */

static tg_code refuse(tg_slot *s, tg_code code, const char *why, tg_restore_result *out) {
    s->state = TG_SLOT_FREE;
    snprintf(s->message, sizeof s->message, "%.250s", why);
    out->message = s->message;
    return out->code = code;
}

void tg_slot_restore(const tg_env *env, tg_slot *s, const tg_restore_item *item,
                     tg_restore_result *out) {
    TG_ASSERT(s->state != TG_SLOT_SCORING);
    *out = (tg_restore_result){.slot = item->slot, .episode = item->episode};
    out->message = out->sample_id = "";
    tg_reset_item reset = {.slot = item->slot,
                           .episode = item->episode,
                           .seed = item->seed,
                           .split = item->split,
                           .has_sample = true,
                           .sample = item->sample};
    tg_error err = {0};
    tg_status st = tg_slot_begin(env, s, &reset, &err);
    if (st == TG_OK && s->reset_digest != item->reset_digest) {
        refuse(s, TG_CODE_EPISODE_ABORTED,
               "the episode begins otherwise here: another configuration, tokenizer or data", out);
        return;
    }
    if (st == TG_OK) st = replay(env, s, item->tokens, item->rewards, item->n_tokens, &err);
    if (st != TG_OK) {
        refuse(s, tg_env_code(st), err.msg, out);
        return;
    }
    out->state_digest = s->digest;
    if (s->digest != item->state_digest) {
        refuse(s, TG_CODE_EPISODE_ABORTED, "tokens and rewards of the log do not give its digest",
               out);
        return;
    }
    keep_reply(env, s, item->n_tokens);
    tg_snapshot now;
    tg_slot_snapshot(env, s, &now);
    out->sample_id = now.sample_id;
    out->prompt = now.prompt, out->n_prompt = now.n_prompt;
    out->stop = now.stop, out->reward_status = now.reward_status;
}

void tg_slot_snapshot(const tg_env *env, const tg_slot *s, tg_snapshot *out) {
    *out = (tg_snapshot){.slot = s->id, .split = TG_SPLIT_TRAIN, .sample_id = ""};
    if (s->state == TG_SLOT_FREE) return;
    bool scoring = s->state == TG_SLOT_SCORING;
    tg_slot_state state = scoring ? s->before : s->state;
    out->live = true;
    out->episode = s->reset.episode;
    out->seed = s->reset.seed;
    out->split = s->reset.split;
    out->sample = s->sample_index;
    out->sample_id = s->sample.id;
    out->prompt = s->prompt.data, out->n_prompt = s->prompt.n;
    out->n_tokens = scoring ? s->pending.step : tg_slot_length(env, s);
    if (out->n_tokens) {
        out->tokens = s->context.data + env->context_start.n;
        out->rewards = s->rewards;
        out->reward_status = s->reply.status;
    }
    out->state_digest = s->digest;
    out->terminated = state == TG_SLOT_TERMINATED;
    out->truncated = state == TG_SLOT_TRUNCATED;
    out->stop = out->truncated                             ? TG_STOP_LENGTH
                : !out->terminated                         ? TG_STOP_NONE
                : tg_slot_ends(env, s) == TG_STOP_SEQUENCE ? TG_STOP_SEQUENCE
                                                           : TG_STOP_EOS;
}

/* Reads of s only what scoring does not write: the context, and rewards of earlier steps. */
tg_status tg_slot_give_up(const tg_env *env, const tg_slot *s, tg_slot *fresh, tg_step_result *out,
                          tg_error *err) {
    const tg_slot_reply *p = &s->pending;
    tg_reset_item reset = s->reset;
    reset.has_sample = true; /* the same sample, however it was chosen */
    reset.sample = s->sample_index;
    tg_status st = tg_slot_begin(env, fresh, &reset, err);
    if (st == TG_OK)
        st = replay(env, fresh, s->context.data + env->context_start.n, s->rewards, p->step, err);
    if (st == TG_OK) st = tg_slot_reserve(fresh, p->step + p->n_applied, err);
    const int32_t *tokens = s->context.data + env->context_start.n + p->step;
    for (size_t i = 0; i < p->n_applied && st == TG_OK; i++) {
        if (!tg_ids_push(&fresh->context, tokens[i])) st = tg_fail_nomem(err, sizeof *tokens);
        fresh->rewards[p->step + i] = (double)NAN;
        fresh->digest = tg_slot_chain(fresh->digest, tokens[i], (double)NAN);
    }
    if (st != TG_OK) return st;
    fresh->reset = s->reset;
    fresh->reply = (tg_slot_reply){.valid = true,
                                   .step = p->step,
                                   .n_sent = p->n_sent,
                                   .n_applied = p->n_applied,
                                   .tokens_hash = p->tokens_hash,
                                   .stop = p->stop,
                                   .code = TG_CODE_REWARD_TIMEOUT,
                                   .status = TG_REWARD_TIMEOUT,
                                   .digest = fresh->digest};
    for (size_t k = 0; k < env->n_rewards; k++) {
        fresh->components[k] = (tg_component){env->rewards[k].name, (double)NAN, TG_REWARD_TIMEOUT};
    }
    fresh->n_components = env->n_rewards;
    snprintf(fresh->reward_message, sizeof fresh->reward_message,
             "the reward was not there before the deadline");
    tg_slot_set_state(fresh, p->stop);
    tg_slot_answer(env, fresh, s->want_text, false, out);
    return TG_OK;
}
