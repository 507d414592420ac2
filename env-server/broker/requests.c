/* What each request of a client does: a table from message type to handler. Every item is answered once: at once, from
 * the answers kept, or when the fleet has a result. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "env-server/broker/broker_impl.h"
#include "proto/codec.h"

enum { CALL_MS = 60000, ASK_MS = 600000 };
static const char NOT_OPEN[] = "this slot is not open";
static const char UNDER_WAY[] = "the slot's last call is still under way";

/* Reset, Restore, questions without a deadline of their own. */
static uint64_t deadline(uint32_t wanted_ms, uint32_t otherwise) {
    return tg_clock_ms() + (wanted_ms ? wanted_ms : otherwise);
}

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

/* ---- slots ---------------------------------------------------------------------------------- */

void tg_broker_close_slot(tg_broker *b, tg_broker_client *c, tg_broker_slot *s) {
    tg_fleet_cancel(b->fleet, s->place); /* so that its request has all its answers */
    tg_fleet_remove_slot(b->fleet, s->place);
    b->by_place[TG_FLEET_PLACE(s->place)] = NULL;
    tg_broker_client_remove(c, s);
}

static tg_status open_slot(tg_broker *b, tg_broker_client *c, uint32_t id, tg_error *err) {
    uint32_t place;
    tg_broker_slot *s;
    tg_status st = tg_fleet_add_slot(b->fleet, &place, err);
    if (st != TG_OK) return st;
    st = tg_broker_client_add(c, id, place, &s, err);
    if (st != TG_OK)
        tg_fleet_remove_slot(b->fleet, place);
    else
        b->by_place[TG_FLEET_PLACE(place)] = s;
    return st;
}

/* As many as there is room for, in the order asked. */
static void open_slots(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                       const void *msg) {
    const tg_slot_list *list = msg;
    tg_fleet_stats st;
    tg_error err = {0};
    size_t given = 0;
    tg_fleet_get_stats(b->fleet, &st);
    for (; given < list->n; given++) {
        if (tg_broker_client_find(c, list->slots[given])) continue;
        if (st.slots >= st.capacity || c->slots.n >= (size_t)b->opts.limits.max_slots) break;
        if (open_slot(b, c, list->slots[given], &err) != TG_OK) break;
        st.slots++;
    }
    if (given == 0 && list->n > 0) {
        tg_session_send_busy(session, head, TG_PRESSURE_SLOTS,
                             "no room for further slots: %zu are open, the workers have room for "
                             "%llu, a client may have %lld",
                             st.slots, (unsigned long long)st.capacity,
                             (long long)b->opts.limits.max_slots);
        return;
    }
    tg_slot_list opened = {list->slots, given};
    tg_frame reply = {.type = TG_MSG_SLOTS_OPENED, .flags = TG_FRAME_REPLY, .seq = head->seq};
    tg_broker_send(b, c->session, &reply, &opened);
}

static void close_slots(tg_broker *b, tg_session *session, tg_broker_client *c,
                        const tg_frame *head, const void *msg) {
    const tg_slot_list *list = msg;
    (void)session, (void)head;
    for (size_t i = 0; i < list->n; i++) {
        tg_broker_slot *s = tg_broker_client_find(c, list->slots[i]);
        if (s) tg_broker_close_slot(b, c, s);
    }
}

static void cancel(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                   const void *msg) {
    const tg_slot_list *list = msg;
    (void)session, (void)head;
    for (size_t i = 0; i < list->n; i++) {
        tg_broker_slot *s = tg_broker_client_find(c, list->slots[i]);
        if (s) tg_fleet_cancel(b->fleet, s->place);
    }
}

/* ---- resets --------------------------------------------------------------------------------- */

/* A call that the fleet did not take. */
static tg_code code_of(tg_status st) {
    return st == TG_NOMEM   ? TG_CODE_OVERLOADED
           : st == TG_USAGE ? TG_CODE_INVALID_ARGUMENT
                            : TG_CODE_INTERNAL;
}

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

static void reset_one(tg_broker *b, tg_broker_client *c, tg_broker_request *q,
                      const tg_reset_item *x, bool want_text) {
    tg_broker_slot *s = tg_broker_client_find(c, x->slot);
    tg_error err = {0};
    if (!s) {
        refuse_reset(b, q, x, TG_CODE_NOT_FOUND, NOT_OPEN);
    } else if (tg_fleet_slot_is_busy(b->fleet, s->place)) {
        refuse_reset(b, q, x, TG_CODE_OVERLOADED, UNDER_WAY);
    } else if (s->has_reset && s->reset.episode == x->episode) {
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
        tg_status st = tg_fleet_reset(b->fleet, &item, want_text, deadline(0, CALL_MS), &err);
        if (st == TG_OK) return;
        s->request = NULL;
        refuse_reset(b, q, x, code_of(st), err.msg);
    }
}

static void reset(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
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

static void step(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                 const void *msg) {
    const tg_step_batch *batch = msg;
    tg_broker_request *q = begin(b, session, head, batch->n);
    uint64_t at = deadline(batch->deadline_ms, CALL_MS);
    for (size_t i = 0; q && i < batch->n; i++)
        step_one(b, c, q, &batch->items[i], batch->want_text, at);
}

/* ---- restores and snapshots ----------------------------------------------------------------- */

static void refuse_restore(tg_broker *b, tg_broker_request *q, const tg_restore_item *x,
                           tg_code code, const char *why) {
    tg_restore_result r = {.slot = x->slot, .episode = x->episode, .code = code, .message = why};
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
        tg_status st = tg_fleet_restore(b->fleet, &item, deadline(0, CALL_MS), &err);
        if (st == TG_OK) return;
        s->request = NULL;
        refuse_restore(b, q, x, code_of(st), err.msg);
    }
}

static void restore(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                    const void *msg) {
    const tg_restore_batch *batch = msg;
    tg_broker_request *q = begin(b, session, head, batch->n);
    for (size_t i = 0; q && i < batch->n; i++) restore_one(b, c, q, &batch->items[i]);
}

static tg_snapshot snapshot_of(const tg_broker *b, const tg_broker_slot *s) {
    tg_fleet_log_view log = tg_fleet_slot_log(b->fleet, s->place);
    tg_snapshot x = {.slot = s->id, .live = s->has_reset, .sample_id = ""};
    if (!s->has_reset) return x;
    x.episode = log.reset.episode, x.seed = log.reset.seed, x.split = log.reset.split;
    x.sample = log.reset.sample, x.sample_id = s->reset_result.sample_id;
    x.prompt = s->reset_result.prompt, x.n_prompt = s->reset_result.n_prompt;
    x.tokens = log.tokens, x.rewards = log.rewards, x.n_tokens = log.n;
    x.state_digest = log.digest;
    if (!s->has_step) return x;
    x.terminated = s->step_result.terminated, x.truncated = s->step_result.truncated;
    x.stop = s->step_result.stop, x.reward_status = s->step_result.reward_status;
    return x;
}

static void snapshot(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                     const void *msg) {
    const tg_slot_list *list = msg;
    size_t n = 0, most = list->n ? list->n : c->slots.n;
    tg_snapshot *items = tg_alloc_array(most + 1, sizeof *items);
    if (!items) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < most; i++) {
        const tg_broker_slot *s =
            list->n ? tg_broker_client_find(c, list->slots[i]) : tg_by_id_at(&c->slots, i);
        if (s) items[n++] = snapshot_of(b, s);
    }
    tg_snapshot_reply reply = {items, n};
    tg_frame to = {.type = TG_MSG_SNAPSHOT_REPLY, .flags = TG_FRAME_REPLY, .seq = head->seq};
    tg_broker_send(b, c->session, &to, &reply);
    tg_free(items);
}

/* ---- questions ------------------------------------------------------------------------------ */

typedef struct question {
    tg_fleet_ask ask; /* first: an ask is its question */
    tg_broker *broker;
    uint64_t session;
    tg_frame head;
    uint64_t start_ns;
    void *msg; /* owned: the request */
} question;

static void on_answer(tg_fleet_ask *ask) {
    question *q = (question *)ask;
    tg_broker *b = q->broker;
    tg_session *session = tg_link_find(b->front, q->session);
    tg_frame to = {.type = ask->reply_type, .flags = TG_FRAME_REPLY, .seq = q->head.seq};
    if (ask->status == TG_OK)
        tg_broker_send(b, q->session, &to, ask->reply);
    else if (session)
        tg_session_send_error(session, &q->head, ask->code, "%s", ask->error.msg);
    tg_broker_took(b, q->head.type, q->start_ns);
    tg_msg_free(ask->reply);
    tg_msg_free(q->msg);
    tg_free(q);
    b->n_asks--;
}

/* Takes msg. */
static void ask(tg_broker *b, tg_session *session, const tg_frame *head, tg_msg_type reply,
                uint32_t deadline_ms, void *msg) {
    question *q = tg_alloc(sizeof *q);
    if (!q) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        tg_msg_free(msg);
        return;
    }
    q->broker = b, q->session = tg_session_id(session), q->head = *head, q->msg = msg;
    q->start_ns = tg_clock_ns();
    q->ask = (tg_fleet_ask){.type = head->type,
                            .reply_type = reply,
                            .request = msg,
                            .deadline_ms = deadline(deadline_ms, ASK_MS),
                            .on_done = on_answer};
    b->n_asks++;
    tg_fleet_ask_begin(b->fleet, &q->ask);
}

/* ---- the table ------------------------------------------------------------------------------ */

typedef void handler(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                     const void *msg);

static handler *handler_of(tg_msg_type type) {
    switch (type) {
    case TG_MSG_OPEN_SLOTS: return open_slots;
    case TG_MSG_CLOSE_SLOTS: return close_slots;
    case TG_MSG_RESET: return reset;
    case TG_MSG_STEP: return step;
    case TG_MSG_RESTORE: return restore;
    case TG_MSG_SNAPSHOT: return snapshot;
    case TG_MSG_CANCEL: return cancel;
    default: return NULL;
    }
}

/* The others wait for the fleet. */
static bool at_once(tg_msg_type type) {
    return type == TG_MSG_OPEN_SLOTS || type == TG_MSG_CLOSE_SLOTS || type == TG_MSG_SNAPSHOT ||
           type == TG_MSG_CANCEL;
}

void tg_broker_take(tg_broker *b, tg_session *session, const tg_frame *head, void *msg) {
    handler *handle = handler_of(head->type);
    if (head->type ==
        TG_MSG_ERROR) { /* about an answer that it could not read: errors are never answered */
        tg_msg_free(msg);
    } else if (b->service.draining && head->type != TG_MSG_SNAPSHOT) {
        tg_session_send_error(session, head, TG_CODE_DRAINING, "this broker is shutting down");
        tg_msg_free(msg);
    } else if (handle) {
        uint64_t start = at_once(head->type) ? tg_clock_ns() : 0;
        handle(b, session, tg_session_user(session), head, msg);
        if (start) tg_broker_took(b, head->type, start);
        tg_broker_flush(b); /* refusals borrow from msg */
        tg_msg_free(msg);
    } else if (head->type == TG_MSG_SAMPLE_RANGE) {
        ask(b, session, head, TG_MSG_SAMPLES, 0, msg);
    } else if (head->type == TG_MSG_METRIC) {
        ask(b, session, head, TG_MSG_METRIC_REPLY, ((tg_metric_request *)msg)->deadline_ms, msg);
    } else if (head->type == TG_MSG_SCORE) {
        ask(b, session, head, TG_MSG_SCORE_REPLY, ((tg_score_request *)msg)->deadline_ms, msg);
    } else {
        tg_session_send_error(session, head, TG_CODE_PROTOCOL, "a broker does not take %s",
                              tg_msg_name(head->type));
        tg_msg_free(msg);
    }
    tg_fleet_kick(b->fleet);
}
