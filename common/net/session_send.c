/* What is sent to one peer of a link: answers, which are counted, errors and the last word. On the loop's thread. */
#include "common/base/log.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"

#include <stdarg.h>
#include <stdio.h>

/* The last message of an answer is on its way. An Error is counted by who knows what it answers. */
static void answered(tg_session *s, const tg_frame *head, const void *msg) {
    tg_link *link = s->link;
    if (head->type != TG_MSG_ERROR)
        tg_answers_add(&link->answers, head->type, tg_answer_code(head->type, msg));
    if (!s->unanswered) return;
    s->unanswered--;
    if (link->opts.listen && s->taken) link->unanswered--;
}

tg_status tg_session_send(tg_session *s, const tg_frame *head, const void *msg, tg_error *err) {
    if (head->flags & TG_FRAME_REPLY && !(head->flags & TG_FRAME_MORE)) answered(s, head, msg);
    if (s->gone || s->detached || !s->link->ep)
        return tg_fail(err, TG_UNAVAILABLE, "the peer is not connected any more");
    tg_frame full = *head;
    full.session = s->id;
    tg_status st = tg_endpoint_send(s->link->ep, s->peer, &full, msg, err);
    if (st == TG_UNAVAILABLE) {
        s->gone = true;
        tg_link_probe_soon(s->link);
    }
    return st;
}

static void send_error(tg_session *s, const tg_frame *request, tg_code code, const char *text) {
    if (request) tg_answers_add(&s->link->answers, request->type, code);
    tg_wire_error e = {.code = code,
                       .message = text,
                       .retryable = code == TG_CODE_OVERLOADED || code == TG_CODE_DRAINING ||
                                    code == TG_CODE_GAP,
                       .retry_after_ms = code == TG_CODE_OVERLOADED ? TG_LINK_RETRY_MS : 0};
    tg_frame head = {TG_MSG_ERROR, TG_FRAME_REPLY, 0, request ? request->seq : 0};
    tg_error err;
    if (tg_session_send(s, &head, &e, &err) != TG_OK)
        tg_log_debug("net", "an Error was not sent: %s", err.msg);
}

void tg_session_send_error(tg_session *s, const tg_frame *request, tg_code code, const char *fmt,
                           ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    send_error(s, request, code, text);
}

void tg_session_send_busy(tg_session *s, const tg_frame *request, tg_pressure what, const char *fmt,
                          ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    tg_link_count_pressure(s->link, what);
    send_error(s, request, TG_CODE_OVERLOADED, text);
}

void tg_session_end(tg_session *s, tg_code code, const char *reason) {
    tg_link *link = s->link;
    if (code == TG_CODE_OK) {
        tg_bye bye = {reason};
        tg_error err;
        if (tg_session_send(s, &(tg_frame){.type = TG_MSG_BYE}, &bye, &err) != TG_OK) {
            tg_log_debug("net", "Bye was not sent: %s", err.msg);
        }
    } else {
        tg_session_send_error(s, NULL, code, "%s", reason);
    }
    tg_session_drop(s, reason);
    tg_link_redial(link, reason);
}
