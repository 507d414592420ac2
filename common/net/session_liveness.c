/* When sessions end by themselves: disconnected, silent, expired, or with a key that was removed; and the heartbeats that show it. On the
 * loop's thread. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"

#include <stdio.h>

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
