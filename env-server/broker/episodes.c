/* Resets, steps and restores of a client: answered from the answers kept, refused, or given to the fleet. */
#include "env-server/broker/broker_impl.h"

enum { CALL_MS = 60000 };
static const char NOT_OPEN[] = "this slot is not open";
static const char UNDER_WAY[] = "the slot's last call is still under way";

/* A request of so many items, each of which will have its answer. NULL: refused, or there is nothing to answer. */
static tg_broker_request *begin(tg_broker *b, tg_session *session, const tg_frame *head, size_t n) {
    tg_broker_request *q =
        n ? tg_broker_request_begin(b, tg_session_id(session), head->seq, n) : NULL;
    if (!n)
        tg_session_send_error(session, head, TG_CODE_INVALID_ARGUMENT, "%s without items",
                              tg_msg_name(head->type));
    else if (!q)
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
    return q;
}

/* A call that the fleet did not take. */
static tg_code code_of(tg_status st) {
    return st == TG_NOMEM   ? TG_CODE_OVERLOADED
           : st == TG_USAGE ? TG_CODE_INVALID_ARGUMENT
                            : TG_CODE_INTERNAL;
}

/* ---- resets --------------------------------------------------------------------------------- */

static bool same_reset(const tg_reset_item *a, const tg_reset_item *b) {
    return a->seed == b->seed && a->split == b->split && a->has_sample == b->has_sample &&
           (!a->has_sample || a->sample == b->sample);
}

static void refuse_reset(tg_broker *b, tg_broker_request *q, const tg_reset_item *x, tg_code code,
                         const char *why) {
    tg_reset_result r = {.slot = x->slot, .episode = x->episode, .code = code, .message = why};
    r.prompt_text = r.sample_id = "";
    tg_broker_answer_reset(b, q, x->slot, &r);
}

/* What was kept of an episode that was aborted since is no answer: a Reset is how to begin it anew. */
static bool was_begun(const tg_broker *b, const tg_broker_slot *s, uint64_t episode) {
    return s->has_reset && s->reset.episode == episode &&
           !tg_fleet_slot_log(b->fleet, s->place).aborted;
}

static void reset_one(tg_broker *b, tg_broker_client *c, tg_broker_request *q,
                      const tg_reset_item *x, bool want_text) {
    tg_broker_slot *s = tg_broker_client_find(c, x->slot);
    tg_error err = {0};
    if (!s) {
        refuse_reset(b, q, x, TG_CODE_NOT_FOUND, NOT_OPEN);
    } else if (tg_fleet_slot_is_busy(b->fleet, s->place)) {
        refuse_reset(b, q, x, TG_CODE_OVERLOADED, UNDER_WAY);
    } else if (was_begun(b, s, x->episode)) {
        if (same_reset(&s->reset, x))
            tg_broker_answer_reset(b, q, x->slot, &s->reset_result);
        else
            refuse_reset(b, q, x, TG_CODE_CONFLICT,
                         "this episode was begun with another seed, split or sample");
    } else {
        tg_reset_item item = *x;
        item.slot = s->place;
        tg_broker_slot_begin(s, x);
        s->request = q;
        tg_status st =
            tg_fleet_reset(b->fleet, &item, want_text, tg_broker_deadline(0, CALL_MS), &err);
        if (st == TG_OK) return;
        s->request = NULL;
        refuse_reset(b, q, x, code_of(st), err.msg);
    }
}

void tg_broker_reset(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                     const void *msg) {
    const tg_reset_batch *batch = msg;
    tg_broker_request *q = begin(b, session, head, batch->n);
    for (size_t i = 0; q && i < batch->n; i++)
        reset_one(b, c, q, &batch->items[i], batch->want_text);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void refuse_step(tg_broker *b, tg_broker_request *q, const tg_step_item *x, tg_code code,
                        const char *why) {
    tg_step_result r = {.slot = x->slot, .episode = x->episode, .step = x->step, .code = code};
    r.message = why, r.text = "";
    tg_broker_answer_step(b, q, x->slot, &r);
}

static void step_again(tg_broker *b, tg_broker_slot *s, tg_broker_request *q, const tg_step_item *x,
                       uint64_t hash) {
    tg_step_result r = s->step_result;
    r.replayed = true;
    if (s->tokens_hash == hash) {
        tg_stat_add(b->replayed, 1);
        tg_broker_answer_step(b, q, x->slot, &r);
    } else
        refuse_step(b, q, x, TG_CODE_CONFLICT, "this step was made with other tokens");
}

static void step_one(tg_broker *b, tg_broker_client *c, tg_broker_request *q, const tg_step_item *x,
                     bool want_text, uint64_t deadline_ms) {
    tg_broker_slot *s = tg_broker_client_find(c, x->slot);
    uint64_t hash = tg_broker_hash_tokens(x->tokens, x->n_tokens);
    tg_error err = {0};
    if (!s) {
        refuse_step(b, q, x, TG_CODE_NOT_FOUND, NOT_OPEN);
    } else if (tg_fleet_slot_is_busy(b->fleet, s->place)) {
        refuse_step(b, q, x, TG_CODE_OVERLOADED, UNDER_WAY);
    } else if (s->has_step && s->step == x->step && s->reset.episode == x->episode) {
        step_again(b, s, q, x, hash);
    } else {
        tg_step_item item = *x;
        item.slot = s->place;
        s->asked_step = x->step, s->asked_hash = hash;
        s->request = q;
        tg_status st = tg_fleet_step(b->fleet, &item, want_text, deadline_ms, &err);
        if (st == TG_OK) return;
        s->request = NULL;
        refuse_step(b, q, x, code_of(st), err.msg);
    }
}

void tg_broker_step(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                    const void *msg) {
    const tg_step_batch *batch = msg;
    tg_broker_request *q = begin(b, session, head, batch->n);
    uint64_t at = tg_broker_deadline(batch->deadline_ms, CALL_MS);
    for (size_t i = 0; q && i < batch->n; i++)
        step_one(b, c, q, &batch->items[i], batch->want_text, at);
}

/* ---- restores ------------------------------------------------------------------------------- */

static void refuse_restore(tg_broker *b, tg_broker_request *q, const tg_restore_item *x,
                           tg_code code, const char *why) {
    tg_restore_result r = {.slot = x->slot, .episode = x->episode, .code = code, .message = why};
    r.sample_id = "";
    tg_broker_answer_restore(b, q, x->slot, &r);
}

static void restore_one(tg_broker *b, tg_broker_client *c, tg_broker_request *q,
                        const tg_restore_item *x) {
    tg_broker_slot *s = tg_broker_client_find(c, x->slot);
    tg_error err = {0};
    if (!s) {
        refuse_restore(b, q, x, TG_CODE_NOT_FOUND, NOT_OPEN);
    } else if (tg_fleet_slot_is_busy(b->fleet, s->place)) {
        refuse_restore(b, q, x, TG_CODE_OVERLOADED, UNDER_WAY);
    } else {
        tg_restore_item item = *x;
        item.slot = s->place;
        tg_broker_slot_begin(s, &(tg_reset_item){.slot = x->slot,
                                                 .episode = x->episode,
                                                 .seed = x->seed,
                                                 .split = x->split,
                                                 .has_sample = true,
                                                 .sample = x->sample});
        s->request = q;
        tg_status st = tg_fleet_restore(b->fleet, &item, tg_broker_deadline(0, CALL_MS), &err);
        if (st == TG_OK) return;
        s->request = NULL;
        refuse_restore(b, q, x, code_of(st), err.msg);
    }
}

void tg_broker_restore(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                       const void *msg) {
    const tg_restore_batch *batch = msg;
    tg_broker_request *q = begin(b, session, head, batch->n);
    for (size_t i = 0; q && i < batch->n; i++) restore_one(b, c, q, &batch->items[i]);
}
