/* What workers answer: prompts of episodes that were reset, rewards of those that were generated. Nothing is taken from a worker
 * that was not asked for. */
#include "learner/train/collect_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tg_status tg_collect_on_reset(tg_collector *c, const tg_reset_result *r, tg_error *err) {
    tg_collect_slot *s = r->slot < (uint32_t)c->n_slots ? &c->slots[r->slot] : NULL;
    if (!s || s->state != RESETTING || s->episode != r->episode)
        return tg_fail(err, TG_PROTOCOL,
                       "a worker answered a reset of slot %u that was not asked for", r->slot);
    if (r->code != TG_CODE_OK)
        return tg_fail(err, TG_UNAVAILABLE, "episode %llu could not be started: %s (%s)",
                       (unsigned long long)r->episode, r->message, tg_code_name(r->code));
    if (r->n_prompt == 0)
        return tg_fail(
            err, TG_DATA,
            "sample %s has an empty prompt: a causal model needs at least one token; give the "
            "data pool a prompt such as the tokenizer's bos token",
            r->sample_id);
    if (r->n_prompt > (size_t)c->opts.max_prompt)
        return tg_fail(err, TG_PROTOCOL,
                       "a worker sent a prompt of %zu tokens, max_prompt_length is %d", r->n_prompt,
                       c->opts.max_prompt);
    memcpy(s->prompt, r->prompt, r->n_prompt * sizeof *s->prompt);
    s->n_prompt = (int)r->n_prompt;
    s->sample = r->sample;
    s->state = READY;
    if (r->episode % (uint64_t)c->group == 0 && r->episode + 1 == c->next_request)
        c->leader_known = true, c->leader = r->sample;
    return TG_OK;
}

static bool reward_failed(const tg_step_result *r) {
    return r->code == TG_CODE_REWARD_FAILED || r->code == TG_CODE_REWARD_TIMEOUT ||
           r->code == TG_CODE_REWARD_INVALID;
}

/* A reward is a number only if its status is OK and every value is finite; one that is pending lacks its last. */
static bool reward_usable(const tg_step_result *r, bool pending) {
    if (reward_failed(r) || (r->reward_status != TG_REWARD_OK && !pending)) return false;
    for (uint32_t t = 0; t + pending < r->n_applied; t++)
        if (!isfinite(r->rewards[t])) return false;
    return true;
}

static const char *status_name(tg_reward_status status) {
    static const char *const names[] = {"?", "ok", "pending", "failed", "timeout", "invalid"};
    return names[(unsigned)status < TG_COUNT_OF(names) ? (unsigned)status : 0];
}

tg_status tg_collect_note_failure(tg_collector *c, uint64_t episode, tg_reward_status status,
                                  const char *message, tg_error *err) {
    c->failed++;
    snprintf(c->failure, sizeof c->failure, "episode %llu: reward %s%s%.180s",
             (unsigned long long)episode, status_name(status), message[0] ? ": " : "", message);
    if (c->opts.abort_on_failure)
        return tg_fail(err, TG_UNAVAILABLE,
                       "%s (train_evaluation.on_reward_failure: drop would leave it out)",
                       c->failure);
    tg_log_warn("rollout", "%s; the episode is left out", c->failure);
    return TG_OK;
}

static tg_status accept_rewards(tg_collector *c, tg_record *rec, const tg_step_result *r,
                                bool pending, tg_error *err) {
    if (r->n_applied == 0 || r->n_applied > (uint32_t)rec->n_actions ||
        !(r->terminated || r->truncated))
        return tg_fail(
            err, TG_PROTOCOL,
            "episode %llu: %u of %d tokens applied and not ended: max_new_tokens must reach the "
            "environment's max_episode_length",
            (unsigned long long)r->episode, r->n_applied, rec->n_actions);
    rec->n_actions = (int)r->n_applied; /* fewer when a stop sequence ended it */
    memcpy(rec->rewards, r->rewards, r->n_applied * sizeof *rec->rewards);
    rec->terminated = r->terminated;
    rec->truncated = r->truncated;
    rec->ok = !pending;
    if (!pending) return TG_OK;
    if (c->group == 1)
        return tg_fail(err, TG_CONFIG,
                       "reward_fn compares the samples of a prompt: set "
                       "train_evaluation.compare_sample to 2 or more");
    rec->text = tg_strdup(r->text);
    return rec->text ? TG_OK : tg_fail_nomem(err, strlen(r->text));
}

tg_status tg_collect_on_step(tg_collector *c, const tg_step_result *r, tg_error *err) {
    tg_collect_slot *s = r->slot < (uint32_t)c->n_slots ? &c->slots[r->slot] : NULL;
    if (!s || s->state != SCORING || s->episode != r->episode)
        return tg_fail(err, TG_PROTOCOL,
                       "a worker answered a step of slot %u that was not asked for", r->slot);
    s->state = FREE;
    int member = (int)(r->episode - c->first_episode);
    tg_record *rec = &c->records[member];
    bool pending = r->code == TG_CODE_OK && r->reward_status == TG_REWARD_PENDING;
    rec->arrived = true;
    if (!pending) c->finished++;
    if (r->code != TG_CODE_OK && !reward_failed(r))
        return tg_fail(err, TG_UNAVAILABLE, "episode %llu failed in the environment: %s (%s)",
                       (unsigned long long)r->episode, r->message, tg_code_name(r->code));
    tg_status st;
    if (reward_usable(r, pending)) {
        st = accept_rewards(c, rec, r, pending, err);
    } else {
        if (pending) c->finished++;
        st = tg_collect_note_failure(c, r->episode, r->reward_status, r->message, err);
    }
    return st == TG_OK ? tg_collect_check_group(c, member, err) : st;
}
