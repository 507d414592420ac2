/* A link's life and the way back after a loss; what happens to each message is link_message.c's. On the loop's thread.
 *
 * Invariants: a session is in the list from its Hello or Welcome to its end; messages of the owner only pass inside a session
 * that on_open took; a dialling link has at most one session, and between two attempts no socket. */
#include "common/net/link.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/address.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* ---- connection lost, connection made ------------------------------------------------------- */

static void on_gone(void *arg, tg_peer peer) {
    tg_link *link = arg;
    tg_session *s = tg_session_of_peer(link, peer);
    if (!s) return;
    s->gone = true;
    tg_link_probe_soon(link);
}

static void on_accept(void *arg, int fd) {
    tg_link *link = arg;
    uint64_t now = tg_clock_ms();
    int limit = TG_MIN(link->opts.handshake_ms, link->opts.hello_ms);
    tg_strangers_accepted(&link->strangers, fd, now + (uint64_t)limit);
    /* libzmq takes some 50 kB for a connection, whatever its Hello would be answered. */
    if (tg_memory_limit_is_tight(&link->memory, now)) {
        link->stats.refused++;
        shutdown(fd, SHUT_RDWR);
    }
}

static void on_disconnect(void *arg, int fd) {
    tg_link *link = arg;
    tg_strangers_remove(&link->strangers, fd);
    link->dropped = true;
    for (tg_session *s = link->sessions; s; s = s->next) {
        if (s->fd != fd && s->fd >= 0) continue;
        s->fd = -1; /* the number may be another connection's next */
        s->probes = TG_LINK_PROBES;
    }
    tg_link_probe_soon(link);
}

/* libzmq tries again by itself, several times a second: one line in ten seconds is enough. */
static void on_denied(void *arg, bool key) {
    tg_link *link = arg;
    if (link->opts.listen) return;
    const char *why = key ? "this key is not in its allow-list"
                          : "the handshake broke off: is --server-key the key of this address?";
    uint64_t now = tg_clock_ms();
    if (link->denied_ms == 0 || now - link->denied_ms > TG_LINK_DENIED_LOG_MS) {
        link->denied_ms = now;
        tg_log_warn("net", "%s: %s", link->address, why);
    }
    if (key && link->opts.ops->on_refused)
        link->opts.ops->on_refused(link->opts.arg, TG_CODE_UNAUTHENTICATED, why);
}

/* Dialling, a moment after the connection's end. */
static void handle_drop(tg_link *link) {
    tg_session *s = link->sessions;
    link->dropped = false;
    if (s && !s->detached) {
        tg_session_lose(s, "disconnected");
    } else if (!link->waiting) {
        return; /* nothing of ours was on that connection; libzmq connects again by itself */
    }
    if (!link->closed) tg_link_redial(link, "disconnected");
}

static void on_probe(uv_timer_t *timer) {
    tg_link *link = timer->data;
    if (--link->probes_left <= 0) uv_timer_stop(timer);
    if (link->ep) tg_endpoint_poll(link->ep);
    if (link->opts.dial && link->ep && link->dropped) handle_drop(link);
    if (link->ep)
        tg_sessions_beat(link, true); /* listening: a send tells whose connection it was */
}

void tg_link_probe_soon(tg_link *link) {
    if (link->closed) return;
    link->probes_left = TG_LINK_PROBES;
    uv_timer_start(&link->probe, on_probe, 3, 40);
}

static void close_endpoint(tg_link *link, int linger_ms) {
    if (!link->ep) return;
    const tg_endpoint_stats *st = tg_endpoint_get_stats(link->ep);
    link->past.sent += st->sent;
    link->past.received += st->received;
    link->past.bad_frames += st->bad_frames;
    link->past.sent_bytes += st->sent_bytes;
    link->past.received_bytes += st->received_bytes;
    link->past.handshakes_failed += st->handshakes_failed;
    link->past.refused += st->refused;
    for (int i = 0; i < TG_CODE_COUNT; i++) link->past.errors[i] += st->errors[i];
    tg_endpoint_close(&link->ep, linger_ms);
}

/* Hello waits for the connection, so that its answer can be given a deadline. */
static void on_connect(void *arg) {
    tg_link *link = arg;
    bool served = link->sessions && !link->sessions->detached;
    if (link->opts.listen || link->waiting || served) return;
    tg_error err;
    if (tg_link_say_hello(link, &err) == TG_OK) {
        link->waiting = true;
        link->hello_sent_ms = tg_clock_ms();
    } else {
        tg_log_warn("net", "%s: Hello was not sent: %s", link->address, err.msg);
        tg_link_redial(link, err.msg);
    }
}

static tg_status open_endpoint(tg_link *link, tg_error *err) {
    tg_endpoint_opts opts = {
        .address = link->address,
        .listen = link->opts.listen != NULL,
        .insecure = link->opts.insecure,
        .max_message = link->opts.limits.max_message,
        .recycle = link->opts.recycle,
        .handshake_ms = link->opts.handshake_ms,
        .on_message = tg_link_message,
        .on_gone = on_gone,
        .on_connect = on_connect,
        .on_accept = on_accept,
        .on_disconnect = on_disconnect,
        .on_denied = on_denied,
        .arg = link,
    };
    link->dropped = false;
    tg_status st = tg_endpoint_open(&link->ep, link->net, link->loop, &opts, err);
    if (st == TG_OK) tg_endpoint_limit_send(link->ep, TG_LIMIT_MESSAGE);
    return st;
}

static void on_reopen(uv_timer_t *timer) {
    tg_link *link = timer->data;
    tg_error err;
    if (open_endpoint(link, &err) == TG_OK) return;
    tg_log_warn("net", "%s: %s", link->address, err.msg);
    tg_link_redial(link, err.msg);
}

void tg_link_redial(tg_link *link, const char *reason) {
    if (!link->opts.dial || link->closed || uv_is_active((uv_handle_t *)&link->reopen)) return;
    tg_log_debug("net", "%s: dialling again in %d ms (%s)", link->address, link->backoff_ms,
                 reason);
    link->waiting = false;
    close_endpoint(link, 0);
    uv_timer_start(&link->reopen, on_reopen, (uint64_t)link->backoff_ms, 0);
    link->backoff_ms = TG_MIN(2 * link->backoff_ms, TG_LINK_BACKOFF_MAX_MS);
}

static void check_hello_answered(tg_link *link) {
    if (link->waiting && tg_clock_ms() - link->hello_sent_ms > TG_LINK_HELLO_MS) {
        tg_link_redial(link, "no answer to Hello");
    }
}

static void on_cutting(uv_timer_t *timer);

/* A few at a time: ending thousands of connections at once would hold up all others. */
static void cut_strangers(tg_link *link) {
    size_t n = tg_strangers_cut(&link->strangers, tg_clock_ms(), TG_LINK_CUTS);
    link->stats.cut += n;
    if (n == TG_LINK_CUTS) uv_timer_start(&link->cutting, on_cutting, TG_LINK_CUTS_MS, 0);
}

static void on_cutting(uv_timer_t *timer) {
    cut_strangers(timer->data);
}

static void on_tick(uv_timer_t *timer) {
    tg_link *link = timer->data;
    uint64_t now = tg_clock_ms(), since = now - link->last_tick_ms;
    link->last_tick_ms = now;
    if (link->ep) tg_endpoint_poll(link->ep); /* what has arrived counts before silence is judged */
    if (link->closed) return;
    if (link->ep) tg_sessions_beat(link, false);
    if (!link->closed) tg_sessions_judge_keys(link);
    if (link->closed) return;
    /* When this loop itself was held up, the others' words may still be under way. */
    if (since < 3 * link->tick_ms) tg_sessions_judge_silence(link);
    if (!link->closed) tg_sessions_expire(link);
    if (!link->closed) check_hello_answered(link);
    if (!link->closed) cut_strangers(link);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void release(tg_link *link) {
    tg_session_table_fini(&link->by_peer);
    tg_session_table_fini(&link->by_id);
    tg_session_table_fini(&link->by_uuid);
    tg_strangers_fini(&link->strangers);
    tg_free(link->address);
    tg_free(link);
}

static void on_closed(uv_handle_t *handle) {
    tg_link *link = handle->data;
    if (--link->handles == 0) release(link);
}

static void start_timers(tg_link *link) {
    uv_timer_init(link->loop, &link->tick);
    uv_timer_init(link->loop, &link->probe);
    uv_timer_init(link->loop, &link->reopen);
    uv_timer_init(link->loop, &link->cutting);
    link->handles = 4;
    link->tick.data = link->probe.data = link->reopen.data = link->cutting.data = link;
    link->tick_ms = (uint64_t)TG_MAX(link->opts.heartbeat_ms / 2, 5);
    link->last_tick_ms = tg_clock_ms();
    uv_timer_start(&link->tick, on_tick, link->tick_ms, link->tick_ms);
}

void tg_link_tick_for(tg_link *link, uint32_t heartbeat_ms) {
    uint64_t wanted = TG_MAX(heartbeat_ms / 2, 5);
    if (wanted >= link->tick_ms) return;
    link->tick_ms = wanted;
    link->last_tick_ms = tg_clock_ms();
    uv_timer_start(&link->tick, on_tick, wanted, wanted);
}

static tg_status draw_identity(tg_link *link, tg_error *err) {
    uint64_t secret;
    if (getrandom(link->uuid, sizeof link->uuid, 0) != sizeof link->uuid ||
        getrandom(&link->next_session, sizeof link->next_session, 0) != sizeof link->next_session ||
        getrandom(&secret, sizeof secret, 0) != sizeof secret) {
        return tg_fail_errno(err, TG_UNAVAILABLE, "no random bytes from the system");
    }
    if (link->opts.uuid) memcpy(link->uuid, link->opts.uuid, sizeof link->uuid);
    link->opts.uuid = NULL;
    if (link->opts.resume_token) memcpy(link->resume_token, link->opts.resume_token, 16);
    link->opts.resume_token = NULL;
    link->by_peer.secret = link->by_id.secret = link->by_uuid.secret = secret;
    link->next_session |= 1; /* never 0; a restarted listener begins elsewhere */
    return TG_OK;
}

static void fill_defaults(tg_link *link) {
    tg_link_opts *o = &link->opts;
    tg_limits *l = &o->limits;
    if (o->heartbeat_ms <= 0) o->heartbeat_ms = 1000;
    if (o->hello_ms <= 0) o->hello_ms = TG_LINK_STRANGER_MS;
    if (o->handshake_ms <= 0) o->handshake_ms = TG_LINK_HANDSHAKE_MS;
    if (o->max_sessions == 0) o->max_sessions = TG_LINK_MAX_SESSIONS;
    if (o->peer_roles == 0)
        o->peer_roles = TG_ROLE_BIT(o->role == TG_ROLE_WORKER ? TG_ROLE_CLIENT : TG_ROLE_WORKER);
    if (o->remote_silence_ms <= 0) o->remote_silence_ms = TG_LINK_REMOTE_SILENCE_MS;
    if (l->max_message == 0) l->max_message = TG_LIMIT_MESSAGE;
    if (l->max_slots == 0) l->max_slots = TG_LIMIT_SLOTS;
    if (l->max_batch == 0) l->max_batch = TG_LIMIT_BATCH;
    if (l->max_tokens == 0) l->max_tokens = TG_LIMIT_TOKENS;
    link->backoff_ms = TG_LINK_BACKOFF_MS;
}

tg_status tg_link_open(tg_link **out, tg_net *net, uv_loop_t *loop, const tg_link_opts *opts,
                       tg_error *err) {
    *out = NULL;
    TG_ASSERT(!opts->listen != !opts->dial && opts->ops &&
              (opts->role != TG_ROLE_WORKER || opts->spec) &&
              !opts->ops->on_detach == !opts->ops->on_resume);
    tg_link *link = tg_alloc(sizeof *link);
    if (!link) return tg_fail_nomem(err, sizeof *link);
    link->net = net;
    link->loop = loop;
    link->opts = *opts;
    fill_defaults(link);
    if (opts->listen) tg_memory_limit_init_own(&link->memory);
    link->address = tg_strdup(opts->listen ? opts->listen : opts->dial);
    tg_status st = link->address ? draw_identity(link, err) : tg_fail_nomem(err, 1);
    if (st == TG_OK) {
        link->local = tg_address_is_local(link->address);
        st = open_endpoint(link, err);
    }
    if (st != TG_OK) {
        release(link);
        return st;
    }
    start_timers(link);
    *out = link;
    return TG_OK;
}

void tg_link_close(tg_link **out, const char *reason) {
    tg_link *link = *out;
    if (!link) return;
    *out = NULL;
    link->closed = true;
    int linger = link->sessions ? TG_LINK_BYE_LINGER_MS : 0;
    while (link->sessions) tg_session_end(link->sessions, TG_CODE_OK, reason);
    close_endpoint(link, linger);
    uv_close((uv_handle_t *)&link->tick, on_closed);
    uv_close((uv_handle_t *)&link->probe, on_closed);
    uv_close((uv_handle_t *)&link->reopen, on_closed);
    uv_close((uv_handle_t *)&link->cutting, on_closed);
}

const char *tg_link_address(const tg_link *link) {
    return link->ep ? tg_endpoint_address(link->ep) : link->address;
}

void tg_link_get_stats(const tg_link *link, tg_link_stats *out) {
    *out = link->stats;
    const tg_endpoint_stats *now = link->ep ? tg_endpoint_get_stats(link->ep) : NULL;
    out->pressure[TG_PRESSURE_READER] = link->past.refused + (now ? now->refused : 0);
    out->credits = link->credits;
    out->unanswered = link->unanswered;
    out->sessions = link->n_sessions;
    out->detached = link->n_detached;
    out->sent = link->past.sent + (now ? now->sent : 0);
    out->received = link->past.received + (now ? now->received : 0);
    out->bad_frames = link->past.bad_frames + (now ? now->bad_frames : 0);
    out->sent_bytes = link->past.sent_bytes + (now ? now->sent_bytes : 0);
    out->received_bytes = link->past.received_bytes + (now ? now->received_bytes : 0);
    out->handshakes_failed = link->past.handshakes_failed + (now ? now->handshakes_failed : 0);
    for (int i = 0; i < TG_CODE_COUNT; i++)
        out->errors[i] = link->past.errors[i] + (now ? now->errors[i] : 0);
}

/* Nothing but counts: they are added as what they are. */
void tg_link_stats_add(tg_link_stats *sum, const tg_link_stats *one) {
    _Static_assert(sizeof(tg_link_stats) % sizeof(uint64_t) == 0 &&
                       sizeof(size_t) == sizeof(uint64_t),
                   "all members have 64 bits");
    uint64_t to[sizeof *sum / sizeof(uint64_t)], from[sizeof *sum / sizeof(uint64_t)];
    memcpy(to, sum, sizeof to);
    memcpy(from, one, sizeof from);
    for (size_t i = 0; i < TG_COUNT_OF(to); i++) to[i] += from[i];
    memcpy(sum, to, sizeof to);
}

const tg_answers *tg_link_answers(const tg_link *link) {
    return &link->answers;
}

void tg_link_count_pressure(tg_link *link, tg_pressure what) {
    link->stats.pressure[what]++;
}

void tg_link_set_spec(tg_link *link, const tg_env_spec *spec) {
    link->opts.spec = spec;
}

void tg_link_set_functions(tg_link *link, const tg_reward_fn *functions, size_t n) {
    link->opts.functions = functions;
    link->opts.n_functions = n;
}
