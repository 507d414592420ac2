/* From the fleet's results to the clients' replies: numbers of slots are put back to the client's own, answers to one
 * request are gathered into one message. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "env-server/broker/broker_impl.h"

#include <inttypes.h>

void tg_broker_send(tg_broker *b, uint64_t session_id, const tg_frame *head, const void *msg) {
    tg_session *session = tg_link_find(b->front, session_id);
    if (!session) return; /* it finds its answer by asking again */
    tg_error err = {0};
    b->completed++;
    switch (tg_session_send(session, head, msg, &err)) {
    case TG_OK:
    case TG_UNAVAILABLE: break;
    case TG_DATA:
        tg_session_send_error(session, head, TG_CODE_TOO_LARGE, "the answer is too large: %s",
                              err.msg);
        break;
    case TG_BUSY:
        tg_log_warn("broker", "session %" PRIu64 " does not read its answers: %s", session_id,
                    err.msg);
        break;
    default: tg_session_send_error(session, head, TG_CODE_INTERNAL, "%s", err.msg);
    }
}

void tg_broker_took(tg_broker *b, tg_msg_type type, uint64_t start_ns) {
    tg_answer_figures_took(&b->net_figures.answers, type,
                           (double)(tg_clock_ns() - start_ns) * 1e-9);
}

tg_broker_request *tg_broker_request_begin(tg_broker *b, uint64_t session, uint64_t seq,
                                           size_t items) {
    tg_broker_request *q = b->spare;
    if (q)
        b->spare = q->next;
    else
        q = tg_alloc(sizeof *q);
    if (q) *q = (tg_broker_request){.session = session, .seq = seq, .left = items};
    if (q) q->start_ns = tg_clock_ns();
    return q;
}

void tg_broker_flush(tg_broker *b) {
    tg_broker_batch *x = b->batch;
    tg_broker_request *q = x->request;
    if (x->n == 0) return;
    tg_reset_reply resets = {x->of.resets, x->n};
    tg_step_reply steps = {x->of.steps, x->n};
    tg_restore_reply restores = {x->of.restores, x->n};
    const void *msg = x->type == TG_MSG_RESET_REPLY  ? (const void *)&resets
                      : x->type == TG_MSG_STEP_REPLY ? (const void *)&steps
                                                     : (const void *)&restores;
    tg_frame head = {.type = x->type, .flags = TG_FRAME_REPLY, .seq = q->seq};
    if (q->left) head.flags |= TG_FRAME_MORE;
    tg_broker_send(b, q->session, &head, msg);
    x->n = 0;
    if (q->left) return;
    tg_broker_took(b, x->type, q->start_ns);
    q->next = b->spare;
    b->spare = q;
}

/* The place of the next answer in the batch that it belongs to. */
static size_t next_in_batch(tg_broker *b, tg_broker_request *q, tg_msg_type type) {
    tg_broker_batch *x = b->batch;
    if (x->n == TG_LIMIT_BATCH || x->request != q) tg_broker_flush(b);
    x->request = q, x->type = type;
    q->left--;
    return x->n++;
}

void tg_broker_answer_reset(tg_broker *b, tg_broker_request *q, uint32_t id,
                            const tg_reset_result *r) {
    tg_reset_result *to = &b->batch->of.resets[next_in_batch(b, q, TG_MSG_RESET_REPLY)];
    *to = *r;
    to->slot = id;
    if (r->code != TG_CODE_OK) tg_broker_flush(b); /* its message is borrowed for the moment */
}

void tg_broker_answer_step(tg_broker *b, tg_broker_request *q, uint32_t id,
                           const tg_step_result *r) {
    tg_step_result *to = &b->batch->of.steps[next_in_batch(b, q, TG_MSG_STEP_REPLY)];
    *to = *r;
    to->slot = id;
    if (r->code != TG_CODE_OK) tg_broker_flush(b);
}

void tg_broker_answer_restore(tg_broker *b, tg_broker_request *q, uint32_t id,
                              const tg_restore_result *r) {
    tg_restore_result *to = &b->batch->of.restores[next_in_batch(b, q, TG_MSG_RESTORE_REPLY)];
    *to = *r;
    to->slot = id;
    if (r->code != TG_CODE_OK) tg_broker_flush(b);
}

/* ---- from the fleet ------------------------------------------------------------------------- */

static void on_reset(void *arg, const tg_reset_result *r) {
    tg_broker *b = arg;
    tg_broker_slot *s = b->by_place[TG_FLEET_PLACE(r->slot)];
    tg_broker_slot_keep_reset(s, r);
    tg_broker_answer_reset(b, s->request, s->id, r);
}

static void on_step(void *arg, const tg_step_result *r) {
    tg_broker *b = arg;
    tg_broker_slot *s = b->by_place[TG_FLEET_PLACE(r->slot)];
    tg_broker_slot_keep_step(s, r);
    tg_broker_answer_step(b, s->request, s->id, r);
}

static void on_restore(void *arg, const tg_restore_result *r) {
    tg_broker *b = arg;
    tg_broker_slot *s = b->by_place[TG_FLEET_PLACE(r->slot)];
    tg_broker_slot_keep_restore(s, r);
    tg_broker_answer_restore(b, s->request, s->id, r);
}

static void on_change(void *arg) {
    tg_broker_workers_changed(arg);
}

static void on_turn(void *arg) {
    tg_broker *b = arg;
    tg_broker_flush(b);
    tg_service_call_ended(&b->service);
}

const tg_fleet_ops tg_broker_fleet_ops = {.on_reset = on_reset,
                                          .on_step = on_step,
                                          .on_restore = on_restore,
                                          .on_change = on_change,
                                          .on_turn = on_turn};
