/* One peer of a link: what it said last, heartbeats to it, its end. On the loop's thread.
 *
 * Callbacks of the owner may end any session, so no loop here holds a session across one. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tg_session *tg_session_create(tg_link *link, tg_peer peer, uint64_t id, uint32_t heartbeat_ms,
                              void *keep) {
    tg_session *s = tg_alloc(sizeof *s);
    if (!s) return NULL;
    if (!tg_session_table_put(&link->by_id, id, s) ||
        !tg_session_table_put(&link->by_peer, peer, s)) {
        tg_session_table_remove(&link->by_id, id, s);
        tg_free(s);
        return NULL;
    }
    s->link = link;
    s->peer = peer;
    s->fd = -1;
    s->id = id;
    s->epoch = 1;
    s->heartbeat_ms = heartbeat_ms;
    s->limits = (tg_limits){TG_LIMIT_MESSAGE, TG_LIMIT_SLOTS, TG_LIMIT_BATCH, TG_LIMIT_TOKENS};
    s->heard_ms = s->beat_ms = tg_clock_ms();
    s->keep = keep;
    s->software = "";
    s->next = link->sessions;
    if (s->next) s->next->before = s;
    link->sessions = s;
    link->n_sessions++;
    tg_link_tick_for(link, heartbeat_ms);
    return s;
}

static uint64_t uuid_key(const uint8_t uuid[16]) {
    uint64_t halves[2];
    memcpy(halves, uuid, sizeof halves);
    return halves[0] ^ (halves[1] << 1 | halves[1] >> 63);
}

bool tg_session_set_uuid(tg_session *s, const uint8_t uuid[16]) {
    tg_session_table *t = &s->link->by_uuid;
    if (!tg_session_table_put(t, uuid_key(uuid), s)) return false;
    if (memcmp(s->uuid, uuid, 16) != 0) tg_session_table_remove(t, uuid_key(s->uuid), s);
    memcpy(s->uuid, uuid, 16);
    return true;
}

tg_session *tg_session_of_uuid(tg_link *link, const uint8_t uuid[16]) {
    tg_session *s = tg_session_table_get(&link->by_uuid, uuid_key(uuid));
    return s && !memcmp(s->uuid, uuid, 16) ? s : NULL;
}

/* Only a listening link gives credits. */
static void count_credits(tg_session *s, bool connected) {
    tg_link *link = s->link;
    if (!link->opts.listen || !s->taken) return;
    if (connected)
        link->credits += s->credits;
    else
        link->credits -= s->credits, link->unanswered -= s->unanswered;
}

void tg_session_taken(tg_session *s) {
    s->taken = true;
    count_credits(s, true);
}

static void unlink_session(tg_session *s) {
    tg_link *link = s->link;
    if (!s->detached) count_credits(s, false);
    if (s->next) s->next->before = s->before;
    if (s->before)
        s->before->next = s->next;
    else
        link->sessions = s->next;
    link->n_sessions--;
    link->n_detached -= s->detached;
    tg_session_table_remove(&link->by_id, s->id, s);
    tg_session_table_remove(&link->by_uuid, uuid_key(s->uuid), s);
    if (!s->detached) tg_session_table_remove(&link->by_peer, s->peer, s);
}

void tg_session_drop(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    unlink_session(s);
    if (link->ep && !s->detached) tg_endpoint_forget(link->ep, s->peer);
    if (!s->detached && !s->gone && s->taken)
        tg_strangers_add(&link->strangers, s->fd, /* it may say Hello again */
                         tg_clock_ms() + (uint64_t)link->opts.hello_ms);
    if (s->taken) {
        tg_log_debug("net", "%s: session %llx ends: %s", link->address, (unsigned long long)s->id,
                     reason);
        link->opts.ops->on_close(link->opts.arg, s, reason);
    }
    tg_msg_free(s->keep);
    tg_free(s);
}

tg_session *tg_session_of_peer(tg_link *link, tg_peer peer) {
    return tg_session_table_get(&link->by_peer, peer);
}

tg_session *tg_link_find(tg_link *link, uint64_t session_id) {
    tg_session *s = link ? tg_session_table_get(&link->by_id, session_id) : NULL;
    return s && s->taken ? s : NULL;
}

/* ---- loss and return ------------------------------------------------------------------------ */

void tg_session_detach(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    tg_session_table_remove(&link->by_peer, s->peer, s);
    if (link->ep) tg_endpoint_forget(link->ep, s->peer);
    count_credits(s, false);
    s->unanswered = 0;
    s->detached = true;
    s->detached_ms = tg_clock_ms();
    if (!s->gone)
        tg_strangers_add(&link->strangers, s->fd, s->detached_ms + (uint64_t)link->opts.hello_ms);
    s->gone = false;
    s->fd = -1;
    s->probes = 0;
    link->n_detached++;
    link->opts.ops->on_detach(link->opts.arg, s, reason);
}

bool tg_session_attach(tg_session *s, tg_peer peer, int fd, void *keep) {
    tg_link *link = s->link;
    if (!tg_session_table_put(&link->by_peer, peer, s)) return false;
    s->peer = peer;
    s->fd = fd;
    s->detached = false;
    link->n_detached--;
    s->epoch++;
    s->unanswered = 0;
    s->missed = 0;
    s->loss = TG_LOSS_NONE;
    count_credits(s, true);
    s->heard_ms = s->beat_ms = tg_clock_ms();
    tg_msg_free(s->keep);
    s->keep = keep;
    return true;
}

void tg_session_lose(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    bool returns = s->taken && s->has_token && link->opts.ops->on_detach &&
                   (link->opts.listen || link->opts.resume);
    link->stats.lost++;
    if (s->loss == TG_LOSS_NONE) s->loss = TG_LOSS_DISCONNECTED;
    if (returns)
        tg_session_detach(s, reason);
    else
        tg_session_drop(s, reason);
    tg_link_redial(link, reason);
}

bool tg_link_evict(tg_link *link) {
    tg_session *oldest = NULL;
    for (tg_session *s = link->n_detached ? link->sessions : NULL; s; s = s->next) {
        if (s->detached && (!oldest || s->detached_ms < oldest->detached_ms)) oldest = s;
    }
    if (!oldest) return false;
    link->stats.expired++;
    tg_session_drop(oldest, "its place was needed");
    return true;
}

/* ---- liveness ------------------------------------------------------------------------------- */

typedef bool condition(const tg_session *s, uint64_t now);
typedef void ending(tg_session *s, uint64_t now);

/* Ends each session of which the condition holds. Found by number, since an owner's callback may end any of them. */
static void end_all(tg_link *link, condition *holds, ending *end) {
    enum { AT_ONCE = 256 };
    uint64_t ids[AT_ONCE], now = tg_clock_ms();
    size_t n;
    do {
        n = 0;
        for (tg_session *s = link->sessions; s && n < AT_ONCE; s = s->next) {
            if (holds(s, now)) ids[n++] = s->id;
        }
        for (size_t i = 0; i < n; i++) {
            tg_session *s = tg_session_table_get(&link->by_id, ids[i]);
            if (s && holds(s, now)) end(s, now);
            if (link->closed) return;
        }
    } while (n == AT_ONCE);
}

static bool is_gone(const tg_session *s, uint64_t now) {
    (void)now;
    return s->gone && !s->detached;
}

static void end_gone(tg_session *s, uint64_t now) {
    (void)now;
    tg_session_lose(s, "disconnected");
}

static uint64_t silence_limit(const tg_session *s) {
    uint64_t limit = (uint64_t)TG_LINK_BEATS * s->heartbeat_ms;
    uint64_t remote = (uint64_t)s->link->opts.remote_silence_ms;
    return s->link->local || limit > remote ? limit : remote;
}

static bool is_silent(const tg_session *s, uint64_t now) {
    return !s->detached && now > s->heard_ms && now - s->heard_ms > silence_limit(s);
}

static void end_silent(tg_session *s, uint64_t now) {
    char reason[80];
    snprintf(reason, sizeof reason, "silent for %llu ms", (unsigned long long)(now - s->heard_ms));
    s->loss = TG_LOSS_SILENT;
    tg_session_lose(s, reason);
}

static bool is_expired(const tg_session *s, uint64_t now) {
    return s->detached && now > s->detached_ms && now - s->detached_ms >= s->lease_ms;
}

static void end_expired(tg_session *s, uint64_t now) {
    (void)now;
    s->link->stats.expired++;
    tg_session_drop(s, "the lease has ended");
}

static bool is_removed(const tg_session *s, uint64_t now) {
    (void)now;
    return s->peer_user.key_id &&
           !tg_allow_has(tg_security_allow(tg_net_security(s->link->net)), &s->peer_user);
}

static void end_removed(tg_session *s, uint64_t now) {
    (void)now;
    tg_log_warn("net", "%s: session %llx of %s:%s ends: its key was removed", s->link->address,
                (unsigned long long)s->id, s->peer_user.role, s->peer_user.tenant);
    tg_session_end(s, TG_CODE_PERMISSION_DENIED, "the key is not in the allow-list any more");
}

void tg_sessions_judge_keys(tg_link *link) {
    tg_allow *allow = tg_security_allow(tg_net_security(link->net));
    if (!allow || tg_allow_generation(allow) == link->allow_generation) return;
    link->allow_generation = tg_allow_generation(allow);
    end_all(link, is_removed, end_removed);
}

void tg_sessions_judge_silence(tg_link *link) {
    end_all(link, is_silent, end_silent);
}

void tg_sessions_expire(tg_link *link) {
    if (link->n_detached) end_all(link, is_expired, end_expired);
}

/* One is missed when it is late by half the interval. */
static void count_missed(tg_link *link, tg_session *s, uint64_t now) {
    uint64_t silence = now > s->heard_ms ? now - s->heard_ms : 0, half = s->heartbeat_ms / 2;
    uint32_t missed = silence > half ? (uint32_t)((silence - half) / s->heartbeat_ms) : 0;
    /* a worker that dialled does not learn what it reached, but it serves somebody */
    tg_role role = link->opts.dial && link->opts.role != TG_ROLE_CLIENT ? TG_ROLE_CLIENT : s->role;
    if (missed > s->missed) link->stats.missed[role] += missed - s->missed;
    s->missed = missed;
}

void tg_sessions_beat(tg_link *link, bool probe) {
    uint64_t now = tg_clock_ms();
    for (tg_session *s = link->sessions; s; s = s->next) {
        if (s->taken && !s->detached) count_missed(link, s, now);
        bool due = probe ? s->probes > 0 : now - s->beat_ms >= s->heartbeat_ms;
        if (!s->taken || s->gone || s->detached || !due) continue;
        if (probe) s->probes--;
        tg_heartbeat beat = {.epoch = s->epoch};
        if (link->opts.ops->on_beat) link->opts.ops->on_beat(link->opts.arg, &beat);
        s->beat_ms = now;
        tg_error err;
        tg_frame head = {.type = TG_MSG_HEARTBEAT};
        if (tg_session_send(s, &head, &beat, &err) == TG_NOMEM)
            tg_log_warn("net", "no heartbeat: %s", err.msg);
    }
    end_all(link, is_gone, end_gone);
}

/* ---- what the owner calls ------------------------------------------------------------------- */

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

uint64_t tg_session_id(const tg_session *s) {
    return s->id;
}

uint64_t tg_session_epoch(const tg_session *s) {
    return s->epoch;
}

bool tg_session_detached(const tg_session *s) {
    return s->detached;
}

tg_loss tg_session_loss(const tg_session *s) {
    return s->loss;
}

tg_role tg_session_peer_role(const tg_session *s) {
    return s->role;
}

uint32_t tg_session_minor(const tg_session *s) {
    return s->minor;
}

const char *tg_session_tenant(const tg_session *s) {
    return s->peer_user.tenant;
}

const uint8_t *tg_session_resume_token(const tg_session *s) {
    return s->has_token ? s->token : NULL;
}

uint32_t tg_session_credits(const tg_session *s) {
    return s->credits;
}

const tg_reward_fn *tg_session_functions(const tg_session *s, size_t *n) {
    *n = s->n_functions;
    return s->functions;
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

const tg_limits *tg_session_limits(const tg_session *s) {
    return &s->limits;
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
