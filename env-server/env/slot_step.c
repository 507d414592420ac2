/* The step of a slot as a state machine. Nothing is changed until everything that can fail has been done, so an
 * answer OVERLOADED (no memory) leaves the slot as it was and the same call may be made again. */
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/text/stop_strings.h"
#include "env-server/env/slot_internal.h"
#include "proto/limits.h"

#include <stdio.h>

static bool ended(const tg_slot *s) {
    return s->state == TG_SLOT_TERMINATED || s->state == TG_SLOT_TRUNCATED;
}

/* ---- identity ------------------------------------------------------------------------------ */

static tg_code refuse(tg_slot *s, tg_step_result *out, tg_code code, const char *why) {
    snprintf(s->message, sizeof s->message, "%.250s", why);
    out->code = code;
    out->message = s->message;
    return code;
}

/* CODE_OK: execute. With *replay set: answer again. Else the reason to refuse. */
static tg_code identify(const tg_env *env, tg_slot *s, const tg_step_item *item, uint64_t hash,
                        bool *replay, tg_step_result *out) {
    *replay = false;
    if (s->state == TG_SLOT_FREE) return refuse(s, out, TG_CODE_FAILED_STATE, "step before reset");
    if (s->reset.episode != item->episode)
        return refuse(s, out, TG_CODE_STALE, "the slot is in another episode");
    if (s->state == TG_SLOT_SCORING) {
        out->code = TG_CODE_OVERLOADED;
        out->message = "the slot's last step is still being scored";
        return out->code;
    }
    size_t next = tg_slot_length(env, s);
    if (tg_slot_is_restored_step(env, s, item)) {
        tg_slot_recall(env, s, item, hash);
        *replay = true;
        return TG_CODE_OK;
    }
    if (s->reply.valid && item->step == s->reply.step) {
        *replay = hash == s->reply.tokens_hash && item->n_tokens == s->reply.n_sent;
        return *replay ? TG_CODE_OK
                       : refuse(s, out, TG_CODE_CONFLICT, "this step was made with other tokens");
    }
    if (item->step < next)
        return refuse(s, out, TG_CODE_STALE, "this step is older than the last one");
    /* RL4LMs lets one step on after the end; the context keeps moving. */
    if ((ended(s) && !env->settings->context.compat) || next >= TG_LIMIT_TOKENS)
        return refuse(s, out, TG_CODE_FAILED_STATE, "step after the episode's end");
    if (item->step > next) {
        out->expected_step = (uint32_t)next;
        return refuse(s, out, TG_CODE_GAP, "steps are missing before this one");
    }
    return TG_CODE_OK;
}

static tg_code check_tokens(const tg_env *env, tg_slot *s, const tg_step_item *item,
                            tg_step_result *out) {
    if (item->n_tokens == 0)
        return refuse(s, out, TG_CODE_INVALID_ARGUMENT, "a step needs at least one token");
    for (size_t i = 0; i < item->n_tokens; i++) {
        if (item->tokens[i] >= 0 && item->tokens[i] < (int64_t)env->spec.vocab_size) continue;
        snprintf(s->message, sizeof s->message, "token %d is not in the vocabulary of %u tokens",
                 item->tokens[i], env->spec.vocab_size);
        out->message = s->message;
        return out->code = TG_CODE_INVALID_ARGUMENT;
    }
    return TG_CODE_OK;
}

/* ---- answer -------------------------------------------------------------------------------- */

void tg_slot_answer(const tg_env *env, tg_slot *s, bool want_text, bool replayed,
                    tg_step_result *out) {
    const tg_slot_reply *r = &s->reply;
    tg_error err = {0};
    out->code = r->code;
    out->message = r->code == TG_CODE_OK ? "" : s->reward_message;
    out->n_applied = r->n_applied;
    out->rewards = s->rewards + r->step;
    out->reward_status = r->status;
    out->stop = r->stop;
    out->terminated = r->stop == TG_STOP_EOS || r->stop == TG_STOP_SEQUENCE;
    out->truncated = r->stop == TG_STOP_LENGTH;
    out->replayed = replayed;
    out->state_digest = r->digest;
    out->components = s->components;
    out->n_components = s->n_components;
    if ((want_text || ended(s)) && tg_slot_text(env, s, tg_slot_length(env, s), &err) == TG_OK)
        out->text = tg_slot_text_for_wire(s);
}

/* ---- execution ----------------------------------------------------------------------------- */

tg_stop tg_slot_ends(const tg_env *env, const tg_slot *s) {
    const int32_t *actions = s->context.data + env->context_start.n;
    const size_t n = tg_slot_length(env, s);
    bool eos = env->spec.has_eos && actions[n - 1] == (int32_t)env->spec.eos_id;
    if (eos && env->spec.terminate_on_eos) return TG_STOP_EOS;
    if (env->stops && tg_stop_strings_hit(env->stops, actions, (int)n)) return TG_STOP_SEQUENCE;
    return n == env->spec.max_episode_length ? TG_STOP_LENGTH : TG_STOP_NONE;
}

bool tg_slot_step_begin(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                        tg_step_result *out) {
    *out = (tg_step_result){.slot = item->slot, .episode = item->episode, .step = item->step};
    out->message = out->text = "";
    uint64_t hash = tg_hash64(item->tokens, item->n_tokens * sizeof *item->tokens);
    bool replay;
    if (identify(env, s, item, hash, &replay, out) != TG_CODE_OK) return false;
    if (replay) {
        tg_slot_answer(env, s, want_text, true, out);
        return false;
    }
    if (check_tokens(env, s, item, out) != TG_CODE_OK) return false;

    tg_error err = {0};
    tg_stop stop = TG_STOP_NONE;
    size_t length = tg_slot_length(env, s), n = 0;
    tg_status st = tg_slot_reserve(s, length + item->n_tokens, &err);
    while (st == TG_OK && n < item->n_tokens && stop == TG_STOP_NONE) {
        if (tg_ids_push(&s->context, item->tokens[n++]))
            stop = tg_slot_ends(env, s);
        else
            st = tg_fail_nomem(&err, sizeof *item->tokens);
    }
    if (st != TG_OK) {
        s->context.n = env->context_start.n + length;
        refuse(s, out, tg_env_code(st), err.msg);
        return false;
    }
    s->pending =
        (tg_slot_reply){.valid = true, .step = item->step, .tokens_hash = hash, .stop = stop};
    s->pending.n_sent = (uint32_t)item->n_tokens, s->pending.n_applied = (uint32_t)n;
    s->want_text = want_text;
    s->before = s->state;
    s->state = TG_SLOT_SCORING;
    return true;
}

void tg_slot_step_end(const tg_env *env, tg_slot *s, tg_step_result *out) {
    TG_ASSERT(s->state == TG_SLOT_SCORING);
    if (s->scored != TG_OK) { /* no memory, no room in a queue: as if the step had not been made */
        s->context.n = env->context_start.n + s->pending.step;
        s->text_tokens = s->streamed = SIZE_MAX;
        s->state = s->before;
        s->reply.valid = false; /* its components are overwritten */
        refuse(s, out, TG_CODE_OVERLOADED,
               s->scored == TG_BUSY ? "too many rewards are waiting; try again"
                                    : "out of memory while scoring; try again");
        return;
    }
    s->reply = s->pending;
    s->digest = s->reply.digest;
    switch (s->reply.status) {
    case TG_REWARD_OK:
    case TG_REWARD_PENDING: s->reply.code = TG_CODE_OK; break;
    case TG_REWARD_TIMEOUT: s->reply.code = TG_CODE_REWARD_TIMEOUT; break;
    case TG_REWARD_INVALID: s->reply.code = TG_CODE_REWARD_INVALID; break;
    default: s->reply.code = TG_CODE_REWARD_FAILED; break;
    }
    tg_slot_set_state(s, s->reply.stop);
    tg_slot_answer(env, s, s->want_text, false, out);
}

void tg_slot_step(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                  tg_step_result *out) {
    if (!tg_slot_step_begin(env, s, item, want_text, out)) return;
    tg_slot_score(env, s);
    tg_slot_step_end(env, s, out);
}
