/* Hello and Welcome, both ways: who is let in, who comes back. On the loop's thread.
 *
 * Invariants: a Hello is answered exactly once, by Welcome or Error; a resumption needs the token and the tenant, and an
 * answer never says which of session and token was wrong; the older connection of a resumed session is nobody any more. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const char SOFTWARE[] = "textgen " TG_VERSION;

/* ---- Hello, as heard by a listening link ---------------------------------------------------- */

static void name_roles(unsigned roles, char out[64]) {
    static const char *const names[] = {[TG_ROLE_CLIENT] = "clients",
                                        [TG_ROLE_WORKER] = "workers",
                                        [TG_ROLE_BROKER] = "brokers",
                                        [TG_ROLE_REWARD] = "reward workers"};
    size_t len = 0;
    out[0] = '\0';
    for (unsigned role = TG_ROLE_CLIENT; role <= TG_ROLE_REWARD; role++) {
        if (roles & TG_ROLE_BIT(role))
            len += (size_t)snprintf(out + len, 64 - len, "%s%s", len ? ", " : "", names[role]);
    }
}

static const char *role_name(tg_role role) {
    return role == TG_ROLE_WORKER ? "worker" : role == TG_ROLE_REWARD ? "reward" : "client";
}

/* Who says Hello is who its key says, in a role that the key may have. */
static tg_code check_user(const tg_link *link, const tg_hello *hello, tg_user *user,
                          char why[TG_LINK_WHY]) {
    bool known = tg_endpoint_user(link->ep, user);
    if (!tg_endpoint_is_secured(link->ep)) return TG_CODE_OK;
    if (!known || !tg_allow_has(tg_security_allow(tg_net_security(link->net)), user)) {
        snprintf(why, TG_LINK_WHY, "the key is not in the allow-list");
        return TG_CODE_PERMISSION_DENIED;
    }
    if (!tg_user_may(user, hello->role)) {
        snprintf(why, TG_LINK_WHY, "a key of role %s may not be a %s", user->role,
                 role_name(hello->role));
        return TG_CODE_PERMISSION_DENIED;
    }
    return TG_CODE_OK;
}

static tg_code check_hello(const tg_link *link, const tg_hello *hello, char why[TG_LINK_WHY]) {
    if (hello->proto_major != TG_PROTO_MAJOR) {
        snprintf(why, TG_LINK_WHY, "protocol version %u.%u; this side speaks %d.0 to %d.%d",
                 hello->proto_major, hello->proto_minor, TG_PROTO_MAJOR, TG_PROTO_MAJOR,
                 TG_PROTO_MINOR);
        return TG_CODE_UNSUPPORTED_VERSION;
    }
    if (!(link->opts.peer_roles & TG_ROLE_BIT(hello->role))) {
        char roles[64];
        name_roles(link->opts.peer_roles, roles);
        snprintf(why, TG_LINK_WHY, "this address takes %s", roles);
        return TG_CODE_INVALID_ARGUMENT;
    }
    if (hello->role == TG_ROLE_WORKER && !hello->has_spec) {
        snprintf(why, TG_LINK_WHY, "a worker's Hello must describe its environment");
        return TG_CODE_INVALID_ARGUMENT;
    }
    if (hello->role == TG_ROLE_REWARD && hello->n_functions == 0) {
        snprintf(why, TG_LINK_WHY, "a reward worker's Hello must name its functions");
        return TG_CODE_INVALID_ARGUMENT;
    }
    return TG_CODE_OK;
}

static uint32_t agree_heartbeat(const tg_link *link, uint32_t wanted) {
    uint32_t own = (uint32_t)link->opts.heartbeat_ms;
    return wanted == 0 ? own : TG_MAX(TG_MIN(own, wanted), 10);
}

static bool send_welcome(tg_session *s, const tg_frame *hello, bool resumed) {
    const tg_link *link = s->link;
    tg_welcome w = {
        .proto_minor = s->minor,
        .heartbeat_ms = s->heartbeat_ms,
        .lease_ms = s->lease_ms,
        .session = s->id,
        .epoch = s->epoch,
        .limits = link->opts.limits,
        .software = SOFTWARE,
        .has_spec = link->opts.spec != NULL,
    };
    if (link->opts.spec) w.spec = *link->opts.spec;
    if (s->minor >=
        1) { /* to minor 0 each of these would be an unknown field, and those are counted */
        w.has_resume_token = s->has_token;
        memcpy(w.resume_token, s->token, sizeof w.resume_token);
        w.resumed = resumed;
        w.credits = s->credits;
        w.functions = link->opts.functions;
        w.n_functions = link->opts.n_functions;
    }
    tg_error err;
    tg_frame head = {TG_MSG_WELCOME, TG_FRAME_REPLY, 0, hello->seq};
    return tg_session_send(s, &head, &w, &err) == TG_OK;
}

/* What a session knows of its peer, from the Hello it keeps. */
static void read_hello(tg_session *s, const tg_hello *hello) {
    s->spec = hello->has_spec ? &hello->spec : NULL;
    s->software = hello->software;
    s->functions = hello->functions;
    s->n_functions = hello->n_functions;
    s->role = hello->role;
    s->minor = TG_MIN(hello->proto_minor, (uint32_t)TG_PROTO_MINOR);
    s->heartbeat_ms = agree_heartbeat(s->link, hello->heartbeat_ms);
    tg_link_tick_for(s->link, s->heartbeat_ms);
}

/* Only clients come back; the others begin anew with another uuid. */
static bool give_token(tg_session *s) {
    const tg_link *link = s->link;
    if (s->role != TG_ROLE_CLIENT || s->minor < 1 || link->opts.lease_ms <= 0 ||
        !link->opts.ops->on_detach)
        return true;
    s->lease_ms = (uint32_t)link->opts.lease_ms;
    s->has_token = getrandom(s->token, sizeof s->token, 0) == sizeof s->token;
    return s->has_token;
}

static void refuse(tg_link *link, tg_peer peer, const tg_frame *head, tg_code code,
                   const char *why) {
    link->stats.refused++;
    tg_log_warn("net", "%s: Hello refused: %s: %s", link->address, tg_code_name(code), why);
    tg_link_send_error(link, peer, head, code, why);
}

static void open_session(tg_link *link, tg_session *s, const tg_frame *hello, tg_peer peer) {
    char why[TG_LINK_WHY] = "";
    tg_code code = link->opts.ops->on_open(link->opts.arg, s, why);
    if (code != TG_CODE_OK) {
        tg_session_drop(s, why);
        refuse(link, peer, hello, code, why);
        return;
    }
    tg_session_taken(s);
    tg_strangers_meet(&link->strangers, s->fd);
    if (!send_welcome(s, hello, false)) {
        tg_session_drop(s, "gone before Welcome");
        return;
    }
    link->stats.opened++;
    if (link->opts.ops->on_ready) link->opts.ops->on_ready(link->opts.arg, s);
}

static bool same_token(const uint8_t a[16], const uint8_t b[16]) {
    unsigned differ = 0; /* every byte is looked at: the time tells nothing */
    for (int i = 0; i < 16; i++) differ |= a[i] ^ b[i];
    return differ == 0;
}

/* The session that this Hello may take over. */
static tg_session *find_resumable(tg_link *link, const tg_hello *hello) {
    if (hello->resume_session == 0 || !hello->has_resume_token) return NULL;
    tg_session *s = tg_session_table_get(&link->by_id, hello->resume_session);
    return s && s->taken && s->has_token && same_token(s->token, hello->resume_token) ? s : NULL;
}

/* Takes over hello. */
static void resume_session(tg_link *link, tg_session *s, tg_peer peer, const tg_frame *head,
                           tg_hello *hello, const tg_user *user) {
    if (!s->detached) tg_session_detach(s, "resumed from another connection");
    if (link->closed) {
        tg_msg_free(hello);
        return;
    }
    if (!tg_session_set_uuid(s, hello->peer_uuid) ||
        !tg_session_attach(s, peer, tg_endpoint_fd(link->ep), hello)) {
        tg_link_count_pressure(link, TG_PRESSURE_MEMORY);
        tg_link_send_error(link, peer, head, TG_CODE_OVERLOADED, "out of memory");
        tg_msg_free(hello);
        return;
    }
    s->peer_user = *user; /* another key of the same tenant, perhaps */
    read_hello(s, hello);
    tg_strangers_meet(&link->strangers, s->fd);
    link->stats.resumed++;
    if (!send_welcome(s, head, true)) return; /* gone again: the loop finds it */
    tg_log_info("net", "%s: session %llx resumed, epoch %llu", link->address,
                (unsigned long long)s->id, (unsigned long long)s->epoch);
    link->opts.ops->on_resume(link->opts.arg, s);
}

/* The same process under another connection, not asking for its session: it has given that up. The uuid is only
 * what a peer says; the key must be the same too. */
static void drop_older_self(tg_link *link, const uint8_t uuid[16], const tg_user *user) {
    tg_session *s = tg_session_of_uuid(link, uuid);
    if (s && s->peer_user.key_id == user->key_id) tg_session_drop(s, "the peer connected again");
}

/* Takes over hello. */
static void new_session(tg_link *link, tg_peer peer, const tg_frame *head, tg_hello *hello,
                        const tg_user *user) {
    tg_session *s = tg_session_create(link, peer, link->next_session,
                                      agree_heartbeat(link, hello->heartbeat_ms), hello);
    if (!s) {
        tg_link_count_pressure(link, TG_PRESSURE_MEMORY);
        tg_link_send_error(link, peer, head, TG_CODE_OVERLOADED, "out of memory");
        tg_msg_free(hello);
        return;
    }
    link->next_session++;
    s->fd = tg_endpoint_fd(link->ep);
    s->peer_user = *user;
    s->credits = link->opts.credits;
    read_hello(s, hello);
    if (!give_token(s) || !tg_session_set_uuid(s, hello->peer_uuid)) {
        tg_session_drop(s, "out of memory or random bytes");
        tg_link_count_pressure(link, TG_PRESSURE_MEMORY);
        tg_link_send_error(link, peer, head, TG_CODE_OVERLOADED, "out of memory");
        return;
    }
    open_session(link, s, head, peer);
}

static tg_code check_room(tg_link *link, const tg_user *user, char why[TG_LINK_WHY]) {
    size_t limit = link->opts.max_tenant_sessions, n = 0;
    if (link->n_sessions >= link->opts.max_sessions) {
        snprintf(why, TG_LINK_WHY, "%zu sessions are open already", link->n_sessions);
        return TG_CODE_OVERLOADED;
    }
    if (tg_memory_limit_is_tight(&link->memory, tg_clock_ms())) {
        snprintf(why, TG_LINK_WHY, "more than four fifths of the %llu MB allowed are in use",
                 (unsigned long long)(link->memory.limit >> 20));
        return TG_CODE_OVERLOADED;
    }
    if (limit == 0 || user->tenant[0] == '\0') return TG_CODE_OK;
    for (const tg_session *s = link->sessions; s && n < limit; s = s->next)
        n += !strcmp(s->peer_user.tenant, user->tenant);
    if (n < limit) return TG_CODE_OK;
    snprintf(why, TG_LINK_WHY, "tenant %s has %zu sessions open already", user->tenant, n);
    return TG_CODE_OVERLOADED;
}

void tg_link_hello(tg_link *link, tg_peer peer, const tg_frame *head, tg_hello *hello) {
    char why[TG_LINK_WHY] = "";
    tg_session *old = tg_session_of_peer(link, peer);
    if (old) { /* asked again on the same connection: the first Welcome may have been lost */
        send_welcome(old, head, old->epoch > 1);
        tg_msg_free(hello);
        return;
    }
    tg_user user;
    tg_code code = check_user(link, hello, &user, why);
    if (code == TG_CODE_OK) code = check_hello(link, hello, why);
    tg_session *back = code == TG_CODE_OK ? find_resumable(link, hello) : NULL;
    if (back && strcmp(back->peer_user.tenant, user.tenant) != 0) {
        code = TG_CODE_PERMISSION_DENIED;
        snprintf(why, sizeof why, "the session belongs to another tenant");
    } else if (back && back->role == hello->role) {
        resume_session(link, back, peer, head, hello, &user);
        return;
    }
    if (code == TG_CODE_OK) drop_older_self(link, hello->peer_uuid, &user);
    if (code == TG_CODE_OK && (code = check_room(link, &user, why)) != TG_CODE_OK)
        tg_link_count_pressure(link, TG_PRESSURE_SESSIONS);
    if (code == TG_CODE_OK && !link->closed) {
        new_session(link, peer, head, hello, &user);
        return;
    }
    if (!link->closed) refuse(link, peer, head, code, why);
    tg_msg_free(hello);
}

/* ---- Hello and Welcome of a dialling link --------------------------------------------------- */

tg_status tg_link_say_hello(tg_link *link, tg_error *err) {
    const tg_session *waiting = link->sessions; /* detached: at most this one */
    tg_hello hello = {
        .proto_major = TG_PROTO_MAJOR,
        .proto_minor = TG_PROTO_MINOR,
        .heartbeat_ms = (uint32_t)link->opts.heartbeat_ms,
        .role = link->opts.role,
        .software = SOFTWARE,
        .has_spec = link->opts.spec != NULL,
        .functions = link->opts.functions,
        .n_functions = link->opts.n_functions,
    };
    memcpy(hello.peer_uuid, link->uuid, 16);
    if (link->opts.spec) hello.spec = *link->opts.spec;
    hello.resume_session = waiting ? waiting->id : link->opts.resume_session;
    hello.has_resume_token = hello.resume_session != 0;
    memcpy(hello.resume_token, waiting ? waiting->token : link->resume_token, 16);
    tg_frame head = {.type = TG_MSG_HELLO, .seq = ++link->hello_seq};
    return tg_endpoint_send(link->ep, 0, &head, &hello, err);
}

static uint32_t smaller(uint32_t told, uint32_t own) {
    return told > 0 && told < own ? told : own; /* 0: not said */
}

static void read_limits(tg_session *s, const tg_limits *told) {
    s->limits.max_message = TG_MAX(smaller(told->max_message, TG_LIMIT_MESSAGE), TG_FRAME_HEADER);
    s->limits.max_slots = smaller(told->max_slots, TG_LIMIT_SLOTS);
    s->limits.max_batch = smaller(told->max_batch, TG_LIMIT_BATCH);
    s->limits.max_tokens = smaller(told->max_tokens, TG_LIMIT_TOKENS);
    tg_endpoint_limit_send(s->link->ep, s->limits.max_message);
}

static void read_welcome(tg_session *s, const tg_welcome *w) {
    s->spec = w->has_spec ? &w->spec : NULL;
    s->software = w->software;
    s->functions = w->functions;
    s->n_functions = w->n_functions;
    s->role = w->has_spec || w->n_functions == 0 ? TG_ROLE_WORKER : TG_ROLE_REWARD;
    s->minor = TG_MIN(w->proto_minor, (uint32_t)TG_PROTO_MINOR);
    s->epoch = w->epoch;
    s->credits = w->credits;
    s->lease_ms = w->lease_ms;
    s->has_token = w->has_resume_token;
    memcpy(s->token, w->resume_token, sizeof s->token);
    read_limits(s, &w->limits);
    s->heartbeat_ms = agree_heartbeat(s->link, w->heartbeat_ms);
    tg_link_tick_for(s->link, s->heartbeat_ms);
}

/* Takes over welcome. */
static void resumed(tg_link *link, tg_session *s, tg_welcome *welcome) {
    if (!tg_session_attach(s, 0, -1, welcome)) {
        tg_msg_free(welcome);
        tg_link_redial(link, "out of memory");
        return;
    }
    read_welcome(s, welcome);
    link->stats.resumed++;
    link->backoff_ms = TG_LINK_BACKOFF_MS;
    link->opts.ops->on_resume(link->opts.arg, s);
}

static tg_code admit(tg_link *link, tg_session *s, char why[TG_LINK_WHY]) {
    if (link->opts.role == TG_ROLE_CLIENT && !s->spec && !link->opts.spec_optional) {
        snprintf(why, TG_LINK_WHY, "a worker's Welcome must describe its environment");
        return TG_CODE_INVALID_ARGUMENT;
    }
    return link->opts.ops->on_open(link->opts.arg, s, why);
}

void tg_link_welcome(tg_link *link, tg_welcome *welcome) {
    if (!link->waiting) { /* a second one */
        tg_msg_free(welcome);
        return;
    }
    link->waiting = false;
    tg_session *old = link->sessions;
    if (old && welcome->resumed && welcome->session == old->id) {
        resumed(link, old, welcome);
        return;
    }
    if (old) tg_session_drop(old, "the session could not be resumed");
    char why[TG_LINK_WHY] = "";
    tg_session *s = link->closed
                        ? NULL
                        : tg_session_create(link, 0, welcome->session,
                                            agree_heartbeat(link, welcome->heartbeat_ms), welcome);
    if (!s) {
        tg_msg_free(welcome);
        tg_link_redial(link, "out of memory");
        return;
    }
    read_welcome(s, welcome);
    link->opts.resume_session = 0; /* served its purpose */
    tg_code code = admit(link, s, why);
    if (code != TG_CODE_OK) {
        link->stats.refused++;
        tg_log_warn("net", "%s: refused: %s: %s", link->address, tg_code_name(code), why);
        link->backoff_ms = TG_LINK_MISFIT_MS;
        tg_session_end(s, code, why);
        return;
    }
    tg_session_taken(s);
    link->stats.opened++;
    link->backoff_ms = TG_LINK_BACKOFF_MS;
    if (link->opts.ops->on_ready) link->opts.ops->on_ready(link->opts.arg, s);
}
