/* What each request does: a table from message type to handler. A handler answers exactly once, with
 * its reply, with per-item codes in it, or with Error. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "env-server/server/server_impl.h"
#include "proto/codec.h"

#include <inttypes.h>

void tg_server_reply(tg_server *s, tg_session *session, const tg_frame *request, tg_msg_type type,
                     const void *msg) {
    tg_error err = {0};
    uint16_t flags = TG_FRAME_REPLY | (request->flags & TG_FRAME_MORE);
    tg_frame head = {.type = type, .flags = flags, .seq = request->seq};
    if (!(flags & TG_FRAME_MORE)) s->completed++;
    tg_figures_reply(&s->figures, type, msg);
    switch (tg_session_send(session, &head, msg, &err)) {
    case TG_OK:
    case TG_UNAVAILABLE: break; /* the client is gone; it finds its answer by asking again */
    case TG_DATA:
        tg_session_send_error(session, request, TG_CODE_TOO_LARGE, "the answer is too large: %s",
                              err.msg);
        break;
    case TG_BUSY:
        tg_log_warn("env", "session %" PRIu64 " does not read its answers: %s",
                    tg_session_id(session), err.msg);
        break;
    default: tg_session_send_error(session, request, TG_CODE_INTERNAL, "%s", err.msg);
    }
}

static tg_client_slot *find_slot(tg_server *s, tg_client *client, uint32_t id, tg_code *code,
                                 const char **message) {
    tg_client_slot *slot = tg_client_find(client, id);
    if (!slot) {
        *code = TG_CODE_NOT_FOUND, *message = "this slot is not open";
    } else if (slot->batch == s->batches) {
        *code = TG_CODE_INVALID_ARGUMENT, *message = "the slot is named twice in one batch";
    } else {
        slot->batch = s->batches;
        return slot;
    }
    return NULL;
}

tg_client_slot *tg_server_slot(tg_server *s, tg_client *client, uint32_t id, tg_code *code,
                               const char **message) {
    tg_client_slot *slot = find_slot(s, client, id, code, message);
    if (!slot || !slot->call) return slot;
    *code = TG_CODE_OVERLOADED, *message = "the slot's last call is still under way";
    return NULL;
}

bool tg_server_outdated(const tg_session *session, const tg_client_slot *slot,
                        const tg_frame *head) {
    return slot->epoch == tg_session_epoch(session) && head->seq < slot->seq;
}

static void stamp(const tg_session *session, tg_client_slot *slot, const tg_frame *head) {
    slot->epoch = tg_session_epoch(session);
    slot->seq = head->seq;
}

tg_client_slot *tg_server_slot_anew(tg_server *s, tg_session *session, tg_client *client,
                                    const tg_frame *head, uint32_t id, uint64_t episode,
                                    tg_code *code, const char **message) {
    tg_client_slot *slot = find_slot(s, client, id, code, message);
    if (!slot) return NULL;
    if (tg_server_outdated(session, slot, head)) {
        *code = TG_CODE_STALE, *message = "the slot was given another episode since";
        return NULL;
    }
    if (!slot->slot) slot->slot = tg_client_new_episode(s->env, id);
    bool same = slot->slot && slot->call && slot->slot->reset.episode == episode;
    if (slot->slot && (same || tg_server_cancel(s, slot))) {
        stamp(session, slot, head);
        return slot;
    }
    *code = TG_CODE_OVERLOADED, *message = "out of memory";
    return NULL;
}

void tg_server_recount(tg_server *s, tg_client_slot *slot) {
    tg_slot_phase now = TG_PHASE_IDLE;
    switch (slot->slot ? slot->slot->state : TG_SLOT_FREE) {
    case TG_SLOT_FREE: break;
    case TG_SLOT_READY:
    case TG_SLOT_RUNNING:
    case TG_SLOT_SCORING: now = TG_PHASE_RUNNING; break;
    case TG_SLOT_TERMINATED:
    case TG_SLOT_TRUNCATED: now = TG_PHASE_DONE; break;
    }
    s->figures.n_slots[slot->phase]--;
    s->figures.n_slots[now]++;
    slot->phase = now;
}

typedef void handler(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                     const void *msg);

static void count_opened(tg_server *s, size_t n) {
    s->n_slots += n;
    s->figures.n_slots[TG_PHASE_IDLE] += n;
}

static void open_slots(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                       const void *msg) {
    const tg_slot_list *list = msg;
    size_t before = client->slots.n, new_ones = 0;
    for (size_t i = 0; i < list->n; i++) new_ones += !tg_client_find(client, list->slots[i]);
    if (client->slots.n + new_ones > s->max_slots) {
        tg_session_send_busy(session, head, TG_PRESSURE_SLOTS,
                             "a client may have %zu slots, %zu are open", s->max_slots,
                             client->slots.n);
        return;
    }
    while (s->n_slots + new_ones > s->spec.capacity && tg_link_evict(s->link)) continue;
    if (s->n_slots + new_ones > s->spec.capacity) {
        tg_session_send_busy(session, head, TG_PRESSURE_SLOTS,
                             "%zu slots are open, %u is the limit", s->n_slots, s->spec.capacity);
        return;
    }
    tg_error err = {0};
    for (size_t i = 0; i < list->n; i++) {
        tg_status st = tg_client_open_slot(client, list->slots[i], &err);
        tg_client_slot *slot = tg_client_find(client, list->slots[i]);
        if (st == TG_OK && slot->seq == 0) stamp(session, slot, head);
        if (st == TG_OK) continue;
        count_opened(s, client->slots.n - before);
        tg_session_send_error(session, head, tg_env_code(st), "%s", err.msg);
        return;
    }
    count_opened(s, client->slots.n - before);
    tg_server_reply(s, session, head, TG_MSG_SLOTS_OPENED, list);
}

/* No reply: the client does not use these numbers any more. */
static void close_slots(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                        const void *msg) {
    const tg_slot_list *list = msg;
    size_t before = client->slots.n;
    for (size_t i = 0; i < list->n; i++) {
        tg_client_slot *slot = tg_client_find(client, list->slots[i]);
        if (!slot || tg_server_outdated(session, slot, head)) continue;
        if (!tg_server_cancel(s, slot))
            tg_session_send_busy(session, head, TG_PRESSURE_MEMORY,
                                 "slot %u has a call under way and stays open", list->slots[i]);
        else {
            s->figures.n_slots[slot->phase]--;
            tg_client_close_slot(client, list->slots[i]);
        }
    }
    s->n_slots -= before - client->slots.n;
    s->completed++;
}

static void reset(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                  const void *msg) {
    const tg_reset_batch *batch = msg;
    tg_reset_result *results = tg_arena_array(&s->scratch, batch->n + 1, sizeof *results);
    if (!results) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    s->batches++;
    for (size_t i = 0; i < batch->n; i++) {
        const tg_reset_item *item = &batch->items[i];
        tg_reset_result *r = &results[i];
        *r = (tg_reset_result){.slot = item->slot, .episode = item->episode};
        r->prompt_text = r->sample_id = r->message = "";
        tg_client_slot *slot = tg_server_slot_anew(s, session, client, head, item->slot,
                                                   item->episode, &r->code, &r->message);
        if (!slot) continue;
        tg_slot_reset(s->env, slot->slot, item, batch->want_text, r);
        tg_server_recount(s, slot);
    }
    tg_reset_reply reply = {results, batch->n};
    tg_server_reply(s, session, head, TG_MSG_RESET_REPLY, &reply);
}

static void step(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                 const void *msg) {
    const tg_step_batch *batch = msg;
    s->batches++;
    if (s->env->slow_rewards) {
        tg_server_step_slow(s, session, client, head, batch);
        return;
    }
    tg_step_result *results = tg_arena_array(&s->scratch, batch->n + 1, sizeof *results);
    if (!results) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < batch->n; i++) {
        const tg_step_item *item = &batch->items[i];
        tg_step_result *r = &results[i];
        *r = (tg_step_result){.slot = item->slot, .episode = item->episode, .step = item->step};
        r->text = r->message = "";
        tg_client_slot *slot = tg_server_slot(s, client, item->slot, &r->code, &r->message);
        if (slot && slot->slot)
            tg_slot_step(s->env, slot->slot, item, batch->want_text, r);
        else if (slot)
            r->code = TG_CODE_FAILED_STATE, r->message = "step before reset";
        if (!r->replayed) s->steps += r->n_applied;
        if (slot) tg_server_recount(s, slot);
    }
    tg_step_reply reply = {results, batch->n};
    tg_server_reply(s, session, head, TG_MSG_STEP_REPLY, &reply);
}

static const struct {
    tg_msg_type type;
    handler *handle; /* NULL: on the job pool */
} table[] = {
    {TG_MSG_OPEN_SLOTS, open_slots},
    {TG_MSG_CLOSE_SLOTS, close_slots},
    {TG_MSG_RESET, reset},
    {TG_MSG_STEP, step},
    {TG_MSG_RESTORE, tg_server_restore},
    {TG_MSG_SNAPSHOT, tg_server_snapshot},
    {TG_MSG_CANCEL, tg_server_cancel_slots},
    {TG_MSG_SAMPLE_RANGE, NULL},
    {TG_MSG_METRIC, NULL},
    {TG_MSG_SCORE, NULL},
};

/* What may still be asked of a worker that is leaving. */
static bool while_draining(tg_msg_type type) {
    return type == TG_MSG_SNAPSHOT || type == TG_MSG_CANCEL || type == TG_MSG_CLOSE_SLOTS;
}

void tg_server_message(tg_server *s, tg_session *session, const tg_frame *frame, void *msg) {
    tg_client *client = tg_session_user(session);
    tg_frame head = *frame;
    head.flags &= TG_FRAME_REPLY;
    size_t i = 0;
    while (i < TG_COUNT_OF(table) && table[i].type != head.type) i++;
    if (head.type == TG_MSG_ERROR) {
        const tg_wire_error *e = msg;
        tg_log_warn("env", "session %" PRIu64 ": %s: %s", tg_session_id(session),
                    tg_code_name(e->code), e->message);
    } else if (i == TG_COUNT_OF(table) || head.flags & TG_FRAME_REPLY) {
        tg_session_send_error(session, &head, TG_CODE_PROTOCOL, "an environment does not take %s",
                              tg_msg_name(head.type));
    } else if (s->service.draining && !while_draining(head.type)) {
        tg_session_send_error(session, &head, TG_CODE_DRAINING, "this worker is shutting down");
    } else if (!table[i].handle) {
        tg_server_ask(s, session, &head, msg);
        return;
    } else {
        table[i].handle(s, session, client, &head, msg);
        tg_arena_reset(&s->scratch);
    }
    tg_msg_free(msg);
}
