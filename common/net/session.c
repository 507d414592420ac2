/* One peer of a link: what it said last, heartbeats to it, its end. On the loop's thread.
 *
 * Callbacks of the owner may end any session, so no loop here holds a session across one. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tg_session *tg_session_create(tg_link *link, tg_peer peer, uint64_t id, uint32_t heartbeat_ms,
                              void *keep) {
    tg_session *s = tg_alloc(sizeof *s);
    if (!s) return NULL;
    s->link = link;
    s->peer = peer;
    s->id = id;
    s->heartbeat_ms = heartbeat_ms;
    s->heard_ms = s->beat_ms = tg_clock_ms();
    s->keep = keep;
    s->software = "";
    s->next = link->sessions;
    link->sessions = s;
    link->n_sessions++;
    tg_link_tick_for(link, heartbeat_ms);
    return s;
}

void tg_session_drop(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    for (tg_session **at = &link->sessions; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        link->n_sessions--;
        break;
    }
    if (link->ep) tg_endpoint_forget(link->ep, s->peer);
    if (s->taken) {
        tg_log_debug("net", "%s: session %llx ends: %s", link->address, (unsigned long long)s->id,
                     reason);
        link->opts.ops->on_close(link->opts.arg, s, reason);
    }
    tg_msg_free(s->keep);
    tg_free(s);
}

tg_session *tg_session_of_peer(tg_link *link, tg_peer peer) {
    for (tg_session *s = link->sessions; s; s = s->next) {
        if (s->peer == peer) return s;
    }
    return NULL;
}

tg_session *tg_link_find(tg_link *link, uint64_t session_id) {
    for (tg_session *s = link->sessions; s; s = s->next) {
        if (s->id == session_id && s->taken) return s;
    }
    return NULL;
}

/* ---- liveness ------------------------------------------------------------------------------- */

static void lose(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    link->stats.lost++;
    tg_session_drop(s, reason);
    tg_link_redial(link, reason);
}

static void end_gone(tg_link *link) {
    for (tg_session *s = link->sessions; s;) {
        if (s->gone) {
            lose(s, "disconnected");
            if (link->closed) return;
            s = link->sessions; /* the list may have changed */
        } else {
            s = s->next;
        }
    }
}

void tg_sessions_beat(tg_link *link, bool all) {
    uint64_t now = tg_clock_ms();
    for (tg_session *s = link->sessions; s; s = s->next) {
        if (!s->taken || s->gone || (!all && now - s->beat_ms < s->heartbeat_ms)) continue;
        tg_heartbeat beat = {0};
        if (link->opts.ops->on_beat) link->opts.ops->on_beat(link->opts.arg, &beat);
        s->beat_ms = now;
        tg_error err;
        tg_frame head = {.type = TG_MSG_HEARTBEAT};
        if (tg_session_send(s, &head, &beat, &err) == TG_NOMEM)
            tg_log_warn("net", "no heartbeat: %s", err.msg);
    }
    end_gone(link);
}

static uint64_t silence_limit(const tg_session *s) {
    uint64_t limit = (uint64_t)TG_LINK_BEATS * s->heartbeat_ms;
    uint64_t remote = (uint64_t)s->link->opts.remote_silence_ms;
    return s->link->local || limit > remote ? limit : remote;
}

void tg_sessions_judge_silence(tg_link *link) {
    uint64_t now = tg_clock_ms();
    for (tg_session *s = link->sessions; s;) {
        if (now - s->heard_ms > silence_limit(s)) {
            char reason[80];
            snprintf(reason, sizeof reason, "silent for %llu ms",
                     (unsigned long long)(now - s->heard_ms));
            lose(s, reason);
            if (link->closed) return;
            s = link->sessions;
        } else {
            s = s->next;
        }
    }
}

void tg_sessions_judge_keys(tg_link *link) {
    tg_allow *allow = tg_security_allow(tg_net_security(link->net));
    if (!allow || tg_allow_generation(allow) == link->allow_generation) return;
    link->allow_generation = tg_allow_generation(allow);
    for (tg_session *s = link->sessions; s;) {
        if (s->peer_user.key_id && !tg_allow_has(allow, &s->peer_user)) {
            tg_log_warn("net", "%s: session %llx of %s:%s ends: its key was removed", link->address,
                        (unsigned long long)s->id, s->peer_user.role, s->peer_user.tenant);
            tg_session_end(s, TG_CODE_PERMISSION_DENIED,
                           "the key is not in the allow-list any more");
            if (link->closed) return;
            s = link->sessions;
        } else {
            s = s->next;
        }
    }
}

/* ---- what the owner calls ------------------------------------------------------------------- */

tg_status tg_session_send(tg_session *s, const tg_frame *head, const void *msg, tg_error *err) {
    if (s->gone || !s->link->ep)
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

void tg_session_send_error(tg_session *s, const tg_frame *request, tg_code code, const char *fmt,
                           ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    tg_wire_error e = {.code = code,
                       .message = text,
                       .retryable = code == TG_CODE_OVERLOADED || code == TG_CODE_DRAINING ||
                                    code == TG_CODE_GAP};
    tg_frame head = {TG_MSG_ERROR, TG_FRAME_REPLY, 0, request ? request->seq : 0};
    tg_error err;
    if (tg_session_send(s, &head, &e, &err) != TG_OK)
        tg_log_debug("net", "an Error was not sent: %s", err.msg);
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

uint64_t tg_session_id(const tg_session *s) {
    return s->id;
}

const tg_env_spec *tg_session_spec(const tg_session *s) {
    return s->spec;
}

const uint8_t *tg_session_peer_uuid(const tg_session *s) {
    return s->uuid;
}

const tg_user *tg_session_peer_user(const tg_session *s) {
    return &s->peer_user;
}

const char *tg_session_peer_software(const tg_session *s) {
    return s->software;
}

const tg_heartbeat *tg_session_last_beat(const tg_session *s) {
    return &s->last_beat;
}

uint64_t tg_session_idle_ms(const tg_session *s) {
    return tg_clock_ms() - s->heard_ms;
}

void tg_session_set_user(tg_session *s, void *user) {
    s->user = user;
}

void *tg_session_user(const tg_session *s) {
    return s->user;
}
