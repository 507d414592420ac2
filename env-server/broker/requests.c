/* What each request of a client does: a table from message type to handler. Every item is answered once: at once, from
 * the answers kept, or when the fleet has a result. */
#include "common/base/clock.h"
#include "env-server/broker/broker_impl.h"
#include "proto/codec.h"

uint64_t tg_broker_deadline(uint32_t wanted_ms, uint32_t otherwise) {
    return tg_clock_ms() + (wanted_ms ? wanted_ms : otherwise);
}

static tg_broker_handler *handler_of(tg_msg_type type) {
    switch (type) {
    case TG_MSG_OPEN_SLOTS: return tg_broker_open_slots;
    case TG_MSG_CLOSE_SLOTS: return tg_broker_close_slots;
    case TG_MSG_RESET: return tg_broker_reset;
    case TG_MSG_STEP: return tg_broker_step;
    case TG_MSG_RESTORE: return tg_broker_restore;
    case TG_MSG_SNAPSHOT: return tg_broker_snapshot;
    case TG_MSG_CANCEL: return tg_broker_cancel;
    default: return NULL;
    }
}

/* The others wait for the fleet. */
static bool at_once(tg_msg_type type) {
    return type == TG_MSG_OPEN_SLOTS || type == TG_MSG_CLOSE_SLOTS || type == TG_MSG_SNAPSHOT ||
           type == TG_MSG_CANCEL;
}

/* What can be done until the end. */
static bool while_draining(tg_msg_type type) {
    return type == TG_MSG_SNAPSHOT || type == TG_MSG_CANCEL || type == TG_MSG_CLOSE_SLOTS;
}

void tg_broker_take(tg_broker *b, tg_session *session, const tg_frame *head, void *msg) {
    tg_broker_handler *handle = handler_of(head->type);
    if (head->type ==
        TG_MSG_ERROR) { /* about an answer that it could not read: errors are never answered */
        tg_msg_free(msg);
    } else if (b->service.draining && !while_draining(head->type)) {
        tg_session_send_error(session, head, TG_CODE_DRAINING, "this broker is shutting down");
        tg_msg_free(msg);
    } else if (handle) {
        uint64_t start = at_once(head->type) ? tg_clock_ns() : 0;
        handle(b, session, tg_session_user(session), head, msg);
        if (start) tg_broker_took(b, head->type, start);
        tg_broker_flush(b); /* refusals borrow from msg */
        tg_msg_free(msg);
    } else if (head->type == TG_MSG_SAMPLE_RANGE) {
        tg_broker_ask(b, session, head, TG_MSG_SAMPLES, 0, msg);
    } else if (head->type == TG_MSG_METRIC) {
        tg_broker_ask(b, session, head, TG_MSG_METRIC_REPLY,
                      ((tg_metric_request *)msg)->deadline_ms, msg);
    } else if (head->type == TG_MSG_SCORE) {
        tg_broker_ask(b, session, head, TG_MSG_SCORE_REPLY, ((tg_score_request *)msg)->deadline_ms,
                      msg);
    } else {
        tg_session_send_error(session, head, TG_CODE_PROTOCOL, "a broker does not take %s",
                              tg_msg_name(head->type));
        tg_msg_free(msg);
    }
    tg_fleet_kick(b->fleet);
}
