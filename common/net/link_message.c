/* What a link does with each message: those of its own (Error, Heartbeat, Bye), strangers', and requests within their limits, which go to
 * the owner. Hello and Welcome are link_hello.c's. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"

#include <stdio.h>
#include <string.h>

void tg_link_send_error(tg_link *link, tg_peer peer, const tg_frame *about, tg_code code,
                        const char *why) {
    tg_answers_add(&link->answers, about->type, code);
    if (!link->ep) return; /* a callback closed the link */
    bool busy = code == TG_CODE_OVERLOADED;
    tg_wire_error e = {.code = code,
                       .message = why,
                       .retryable = busy,
                       .retry_after_ms = busy ? TG_LINK_RETRY_MS : 0};
    tg_frame head = {TG_MSG_ERROR, TG_FRAME_REPLY, about->session, about->seq};
    tg_error err;
    if (tg_endpoint_send(link->ep, peer, &head, &e, &err) != TG_OK) {
        tg_log_debug("net", "an Error was not sent: %s", err.msg);
    }
}

/* Not in a session. Whoever believes to be in one is told that it is over. */
static void handle_stranger(tg_link *link, tg_peer peer, const tg_frame *head, void *msg) {
    if (link->waiting && head->type == TG_MSG_ERROR) { /* our Hello was refused */
        const tg_wire_error *e = msg;
        link->waiting = false;
        link->stats.refused++;
        tg_log_warn("net", "%s: refused: %s: %s", link->address, tg_code_name(e->code), e->message);
        if (link->opts.ops->on_refused)
            link->opts.ops->on_refused(link->opts.arg, e->code, e->message);
        if (!link->closed) tg_link_redial(link, "refused");
    } else if (!link->opts.dial && head->type != TG_MSG_ERROR && head->type != TG_MSG_BYE) {
        const tg_session *named = tg_session_table_get(&link->by_id, head->session);
        tg_user user;
        tg_endpoint_user(link->ep, &user);
        if (named && strcmp(named->peer_user.tenant, user.tenant) != 0)
            tg_link_send_error(link, peer, head, TG_CODE_PERMISSION_DENIED,
                               "the session belongs to another tenant");
        else
            tg_link_send_error(link, peer, head, TG_CODE_FENCED, "no such session: say Hello");
    }
    tg_msg_free(msg);
}

static void handle_error(tg_link *link, tg_session *s, const tg_frame *head, void *msg) {
    const tg_wire_error *e = msg;
    bool over = e->code == TG_CODE_FENCED || e->code == TG_CODE_CONFIG_MISMATCH;
    if (link->opts.dial && over && head->session == s->id) {
        char reason[TG_LINK_WHY];
        snprintf(reason, sizeof reason, "ended by the other side: %s", e->message);
        if (e->code == TG_CODE_CONFIG_MISMATCH) link->backoff_ms = TG_LINK_MISFIT_MS;
        tg_msg_free(msg);
        tg_session_drop(s, reason);
        tg_link_redial(link, reason);
        return;
    }
    link->opts.ops->on_message(link->opts.arg, s, head, msg);
}

/* Requests cost a credit until they are answered. */
static bool is_request(tg_msg_type type) {
    switch (type) {
    case TG_MSG_OPEN_SLOTS:
    case TG_MSG_RESET:
    case TG_MSG_STEP:
    case TG_MSG_SAMPLE_RANGE:
    case TG_MSG_METRIC:
    case TG_MSG_SCORE:
    case TG_MSG_RESTORE:
    case TG_MSG_SNAPSHOT: return true;
    default: return false;
    }
}

static size_t items_of(tg_msg_type type, const void *msg) {
    switch (type) {
    case TG_MSG_RESET: return ((const tg_reset_batch *)msg)->n;
    case TG_MSG_STEP: return ((const tg_step_batch *)msg)->n;
    case TG_MSG_RESTORE: return ((const tg_restore_batch *)msg)->n;
    case TG_MSG_SCORE: return ((const tg_score_request *)msg)->n;
    default: return 0;
    }
}

static void handle_request(tg_link *link, tg_session *s, const tg_frame *head, void *msg) {
    if (link->opts.listen && items_of(head->type, msg) > link->opts.limits.max_batch) {
        tg_link_send_error(link, s->peer, head, TG_CODE_TOO_LARGE,
                           "more items than Welcome.limits.max_batch allows");
        tg_msg_free(msg);
        return;
    }
    if (link->opts.listen && s->credits && is_request(head->type)) {
        if (s->unanswered >= s->credits) {
            tg_link_count_pressure(link, TG_PRESSURE_CREDITS);
            tg_link_send_error(link, s->peer, head, TG_CODE_OVERLOADED,
                               "more requests are unanswered than Welcome.credits allows");
            tg_msg_free(msg);
            return;
        }
        s->unanswered++;
        link->unanswered++;
    }
    if (head->type == TG_MSG_CLOSE_SLOTS || head->type == TG_MSG_CANCEL) /* have no answer */
        tg_answers_add(&link->answers, head->type, TG_CODE_OK);
    link->opts.ops->on_message(link->opts.arg, s, head, msg);
}

static void handle_in_session(tg_link *link, tg_session *s, const tg_frame *head, void *msg) {
    s->heard_ms = tg_clock_ms();
    if (head->session != s->id && head->type != TG_MSG_ERROR) {
        tg_link_send_error(link, s->peer, head, TG_CODE_PERMISSION_DENIED,
                           "the session belongs to another connection");
        tg_msg_free(msg);
        return;
    }
    switch (head->type) {
    case TG_MSG_HEARTBEAT:
        s->last_beat = *(tg_heartbeat *)msg;
        tg_msg_free(msg);
        break;
    case TG_MSG_BYE: {
        char reason[TG_LINK_WHY];
        snprintf(reason, sizeof reason, "Bye: %s", ((tg_bye *)msg)->reason);
        tg_msg_free(msg);
        tg_session_drop(s, reason);
        tg_link_redial(link, reason);
        break;
    }
    case TG_MSG_ERROR: handle_error(link, s, head, msg); break;
    default: handle_request(link, s, head, msg); break;
    }
}

void tg_link_message(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    tg_link *link = arg;
    tg_session *s = tg_session_of_peer(link, peer);
    if (head->type == TG_MSG_HELLO && link->opts.listen) {
        tg_link_hello(link, peer, head, msg);
    } else if (head->type == TG_MSG_WELCOME && link->opts.dial) {
        tg_link_welcome(link, msg);
    } else if (s && s->taken) {
        handle_in_session(link, s, head, msg);
    } else {
        handle_stranger(link, peer, head, msg);
    }
}
