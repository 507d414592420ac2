/* The ZeroMQ socket inside a libuv loop. Everything here runs on the loop's thread.
 *
 * ZMQ_FD is edge triggered and says only "look at ZMQ_EVENTS"; any send or receive may change the
 * state without a new edge. Invariant: before the loop sleeps, ZMQ_EVENTS has been read after the
 * last send and receive and showed nothing to do (uv_prepare), or uv_idle keeps the loop from
 * sleeping. */
#include "common/net/endpoint.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/address.h"
#include "common/net/outqueue.h"
#include "common/net/zap.h"
#include "proto/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

enum {
    DRAIN_BUDGET = 256,  /* messages handled before timers and other sockets get their turn */
    RETRY_MS = 50,       /* a look at blocked queues even if libzmq never signals */
    HANDSHAKE_MS = 5000, /* a connection that does not speak ZMTP is dropped after this */
    BEAT_MS = 2000,      /* transport heartbeats: the peer's I/O thread lives */
    BEAT_TIMEOUT_MS = 6000,
    RECONNECT_MS = 100,
    RECONNECT_MAX_MS = 1000,
    N_HANDLES = 5,
    HANDSHAKE_FAILED = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

struct tg_endpoint {
    tg_net *net;
    tg_endpoint_opts opts;
    char *address; /* as asked for; opts.address points here */
    char bound[256];
    void *socket, *monitor;
    bool secured;
    zmq_msg_t *current; /* the message being handled */
    uv_poll_t poll, monitor_poll;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t retry;
    int handles; /* open ones; the last to close frees the endpoint */
    bool draining, closed;
    tg_outqueue out;
    tg_buf scratch;
    tg_endpoint_stats stats;
};

static void drain(tg_endpoint *ep);

/* ---- sending -------------------------------------------------------------------------------- */

/* A routing id of up to 7 bytes as a number (libzmq makes ids of 5): length in the top byte. 0: too
 * long for us. */
static tg_peer peer_pack(const void *id, size_t len) {
    if (len == 0 || len > 7) return 0;
    tg_peer peer = 0;
    memcpy(&peer, id, len);
    return peer | (uint64_t)len << 56;
}

static size_t peer_unpack(tg_peer peer, unsigned char id[8]) {
    memcpy(id, &peer, 8);
    return (size_t)(peer >> 56);
}

typedef enum sent { SENT, BLOCKED, GONE } sent;

static sent send_now(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len) {
    if (ep->opts.listen) {
        unsigned char id[8];
        size_t id_len = peer_unpack(peer, id);
        if (zmq_send(ep->socket, id, id_len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
            return errno == EAGAIN ? BLOCKED : GONE;
    }
    if (zmq_send(ep->socket, bytes, len, ZMQ_DONTWAIT) < 0) return errno == EAGAIN ? BLOCKED : GONE;
    ep->stats.sent++;
    ep->stats.sent_bytes += len;
    return SENT;
}

/* Our own send may have made the socket readable without an edge: the loop must look again before
 * it sleeps. */
static void look_again(tg_endpoint *ep);

tg_status tg_endpoint_send(tg_endpoint *ep, tg_peer peer, const tg_frame *head, const void *msg,
                           tg_error *err) {
    TG_ASSERT(!ep->closed);
    tg_buf_reset(&ep->scratch);
    tg_status st = tg_frame_encode(head, msg, &ep->scratch, err);
    if (st != TG_OK) return st;
    if (ep->scratch.len > ep->opts.max_message) {
        return tg_fail(err, TG_DATA, "%s of %zu bytes, at most %zu can be sent",
                       tg_msg_name(head->type), ep->scratch.len, ep->opts.max_message);
    }
    look_again(ep);
    if (!tg_outqueue_find(&ep->out, peer)) { /* else it must wait behind those */
        sent result = send_now(ep, peer, ep->scratch.data, ep->scratch.len);
        if (result == SENT) return TG_OK;
        if (result == GONE)
            return tg_fail(err, TG_UNAVAILABLE, "the peer is not connected any more");
    }
    switch (tg_outqueue_push(&ep->out, peer, ep->scratch.data, ep->scratch.len)) {
    case TG_OUTQUEUE_OK: return TG_OK;
    case TG_OUTQUEUE_NOMEM: return tg_fail_nomem(err, ep->scratch.len);
    case TG_OUTQUEUE_FULL: break;
    }
    ep->stats.refused++;
    return tg_fail(err, TG_BUSY, "the peer takes no more messages (%zu wait)", ep->opts.max_queue);
}

/* Sends one queued message of some peer; false when none can be sent now. */
static bool flush_one(tg_endpoint *ep) {
    for (tg_outpeer *p = ep->out.peers; p; p = p->next) {
        if (p->blocked) continue;
        switch (send_now(ep, p->peer, p->first->bytes, p->first->len)) {
        case SENT: tg_outqueue_pop(&ep->out, p); return true;
        case BLOCKED: p->blocked = true; break;
        case GONE: {
            tg_peer peer = p->peer;
            tg_outqueue_drop(&ep->out, peer);
            if (ep->opts.on_gone) ep->opts.on_gone(ep->opts.arg, peer);
            return true;
        }
        }
    }
    return false;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void answer_error(tg_endpoint *ep, tg_peer peer, const tg_frame *head, tg_code code,
                         const char *why) {
    if (head->type == TG_MSG_ERROR || (ep->opts.listen && peer == 0))
        return; /* errors are never answered */
    tg_wire_error e = {.code = code, .message = why, .retryable = code == TG_CODE_OVERLOADED};
    tg_frame reply = {TG_MSG_ERROR, TG_FRAME_REPLY, head->session, head->seq};
    if (tg_endpoint_send(ep, peer, &reply, &e, NULL) != TG_OK)
        tg_log_debug("net", "an Error could not be sent");
}

static void handle_bad(tg_endpoint *ep, tg_peer peer, const tg_frame *head, const tg_error *err) {
    if (err->status == TG_NOMEM) {
        tg_log_error("net", "%s: a message was refused: %s", ep->address, err->msg);
        answer_error(ep, peer, head, TG_CODE_OVERLOADED, err->msg);
        return;
    }
    uint64_t n = ++ep->stats.bad_frames;
    if ((n & (n - 1)) == 0)
        tg_log_warn("net", "%s: bad frame (%llu so far): %s", ep->address, (unsigned long long)n,
                    err->msg);
    answer_error(ep, peer, head, TG_CODE_PROTOCOL, err->msg);
}

static void handle_frame(tg_endpoint *ep, tg_peer peer, zmq_msg_t *part, bool whole) {
    tg_frame head = {0};
    tg_error err;
    void *msg = NULL;
    tg_status st;
    if (ep->opts.listen && peer == 0) {
        st = tg_fail(&err, TG_PROTOCOL, "routing ids of more than 7 bytes are not accepted");
    } else if (!whole) {
        st = tg_fail(&err, TG_PROTOCOL, "a frame is one message part");
    } else {
        st = tg_frame_decode(zmq_msg_data(part), zmq_msg_size(part), &head, &msg, &err);
    }
    if (st != TG_OK) {
        handle_bad(ep, peer, &head, &err);
        return;
    }
    ep->stats.received++;
    ep->stats.received_bytes += zmq_msg_size(part);
    ep->opts.on_message(ep->opts.arg, peer, &head, msg);
}

/* One whole multipart; false when there was none. */
static bool receive_one(tg_endpoint *ep) {
    zmq_msg_t part;
    tg_peer peer = 0;
    zmq_msg_init(&part);
    if (zmq_msg_recv(&part, ep->socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&part);
        return false;
    }
    bool more = zmq_msg_more(&part);
    if (ep->opts.listen && more) {
        peer = peer_pack(zmq_msg_data(&part), zmq_msg_size(&part));
        if (zmq_msg_recv(&part, ep->socket, ZMQ_DONTWAIT) < 0) { /* parts arrive together */
            zmq_msg_close(&part);
            return true;
        }
        more = zmq_msg_more(&part);
    }
    bool whole = !more;
    for (zmq_msg_t rest; more; zmq_msg_close(&rest)) {
        zmq_msg_init(&rest);
        more = zmq_msg_recv(&rest, ep->socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&rest);
    }
    ep->current = &part;
    handle_frame(ep, peer, &part, whole);
    ep->current = NULL;
    zmq_msg_close(&part);
    return true;
}

static void drain_monitor(tg_endpoint *ep) {
    unsigned char event[6];
    bool dropped = false, connected = false;
    int failed = 0;
    for (;;) {
        int len = zmq_recv(ep->monitor, event, sizeof event, ZMQ_DONTWAIT);
        if (len < 0) break;
        uint16_t what;
        memcpy(&what, event, sizeof what);
        if (len == 6 && what == ZMQ_EVENT_DISCONNECTED) dropped = true;
        if (len == 6 && what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) connected = true;
        if (len == 6 && (what & HANDSHAKE_FAILED)) failed |= what, ep->stats.handshakes_failed++;
        int more = 0;
        size_t size = sizeof more;
        while (zmq_getsockopt(ep->monitor, ZMQ_RCVMORE, &more, &size) == 0 && more) {
            char address[256];
            if (zmq_recv(ep->monitor, address, sizeof address, ZMQ_DONTWAIT) < 0) break;
        }
    }
    if (connected && ep->opts.on_connect) ep->opts.on_connect(ep->opts.arg);
    if (!ep->closed && failed && ep->secured && ep->opts.on_denied)
        ep->opts.on_denied(ep->opts.arg, failed & ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (!ep->closed && dropped && ep->opts.on_disconnect) ep->opts.on_disconnect(ep->opts.arg);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int socket_events(tg_endpoint *ep) {
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(ep->socket, ZMQ_EVENTS, &events, &size) == 0 ? events : 0;
}

static void on_idle(uv_idle_t *handle) {
    (void)handle; /* its being active is what counts: the loop does not sleep, prepare drains */
}

static void look_again(tg_endpoint *ep) {
    if (!ep->draining) uv_idle_start(&ep->idle, on_idle);
}

static void on_retry(uv_timer_t *timer) {
    drain(timer->data);
}

static void drain(tg_endpoint *ep) {
    if (ep->draining || ep->closed) return;
    ep->draining = true;
    tg_outqueue_unblock(&ep->out);
    int budget = DRAIN_BUDGET;
    while (budget > 0 && !ep->closed) {
        int events = socket_events(ep);
        bool did = (events & ZMQ_POLLIN) && receive_one(ep);
        if (!ep->closed && (events & ZMQ_POLLOUT) && ep->out.peers) did |= flush_one(ep);
        if (!did) break;
        budget--;
    }
    if (!ep->closed && budget > 0)
        drain_monitor(ep); /* last: what was sent before the end counts */
    ep->draining = false;
    if (ep->closed) return;
    if (budget == 0) {
        uv_idle_start(&ep->idle, on_idle);
    } else {
        uv_idle_stop(&ep->idle);
    }
    if (!ep->out.peers) {
        uv_timer_stop(&ep->retry);
    } else if (!uv_is_active((uv_handle_t *)&ep->retry)) {
        uv_timer_start(&ep->retry, on_retry, RETRY_MS, RETRY_MS);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    drain(poll->data);
}

static void on_prepare(uv_prepare_t *prepare) {
    drain(prepare->data);
}

void tg_endpoint_poll(tg_endpoint *ep) {
    drain(ep);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static bool set_int(void *socket, int option, int value) {
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* ZMQ_IMMEDIATE stays off: with it, a DEALER loses messages that arrived just before its connection ended (libzmq 4.3.4: one Bye
 * in five). Nothing is queued for a connection not yet made all the same: the owner sends from on_connect on. */
static tg_status configure(tg_endpoint *ep, tg_error *err) {
    int64_t max_message = (int64_t)ep->opts.max_message;
    void *s = ep->socket;
    bool ok = set_int(s, ZMQ_LINGER, 0) && set_int(s, ZMQ_SNDHWM, ep->opts.high_water) &&
              set_int(s, ZMQ_RCVHWM, ep->opts.high_water) &&
              zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_message, sizeof max_message) == 0 &&
              set_int(s, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
              set_int(s, ZMQ_HEARTBEAT_IVL, BEAT_MS) &&
              set_int(s, ZMQ_HEARTBEAT_TIMEOUT, BEAT_TIMEOUT_MS) &&
              set_int(s, ZMQ_HEARTBEAT_TTL, BEAT_TIMEOUT_MS) &&
              set_int(s, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
              set_int(s, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) &&
              set_int(s, ZMQ_IPV6, strchr(ep->address, '[') != NULL);
    if (ok && ep->opts.listen) ok = set_int(s, ZMQ_ROUTER_MANDATORY, 1);
    return ok ? TG_OK
              : tg_fail(err, TG_BUG, "a ZeroMQ option was refused: %s", zmq_strerror(zmq_errno()));
}

static tg_status attach(tg_endpoint *ep, tg_error *err) {
    if (!ep->opts.listen) {
        if (zmq_connect(ep->socket, ep->address) == 0) return TG_OK;
        return tg_fail(err, TG_UNAVAILABLE, "%s: cannot connect: %s", ep->address,
                       zmq_strerror(zmq_errno()));
    }
    /* Connecting to a socket file needs write permission: 0600 keeps other users out whatever the
     * folder's mode. */
    mode_t before = umask(0177);
    int rc = zmq_bind(ep->socket, ep->address);
    int why = zmq_errno();
    umask(before);
    if (rc != 0)
        return tg_fail(err, TG_UNAVAILABLE, "%s: cannot listen: %s", ep->address,
                       zmq_strerror(why));
    size_t size = sizeof ep->bound;
    if (zmq_getsockopt(ep->socket, ZMQ_LAST_ENDPOINT, ep->bound, &size) != 0) ep->bound[0] = '\0';
    return TG_OK;
}

static tg_status open_monitor(tg_endpoint *ep, tg_error *err) {
    char name[64];
    snprintf(name, sizeof name, "inproc://monitor-%" PRIu32, tg_net_serial(ep->net));
    if (zmq_socket_monitor(ep->socket, name,
                           ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                               HANDSHAKE_FAILED) == 0) {
        ep->monitor = zmq_socket(tg_net_context(ep->net), ZMQ_PAIR);
        if (ep->monitor && set_int(ep->monitor, ZMQ_LINGER, 0) &&
            zmq_connect(ep->monitor, name) == 0)
            return TG_OK;
    }
    return tg_fail(err, TG_UNAVAILABLE, "%s: cannot watch the connections: %s", ep->address,
                   zmq_strerror(zmq_errno()));
}

static void close_sockets(tg_endpoint *ep, int linger_ms) {
    if (ep->monitor) {
        zmq_socket_monitor(ep->socket, NULL, 0);
        zmq_close(ep->monitor);
    }
    if (ep->socket) {
        set_int(ep->socket, ZMQ_LINGER, linger_ms);
        zmq_close(ep->socket);
    }
    ep->monitor = ep->socket = NULL;
}

static void release(tg_endpoint *ep) {
    tg_outqueue_fini(&ep->out);
    tg_buf_fini(&ep->scratch);
    tg_free(ep->address);
    tg_free(ep);
}

static uv_os_sock_t socket_fd(void *socket) {
    uv_os_sock_t fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

static bool start_poll(tg_endpoint *ep, uv_loop_t *loop, uv_poll_t *poll, void *socket) {
    if (uv_poll_init(loop, poll, socket_fd(socket)) != 0) return false;
    ep->handles++;
    poll->data = ep;
    return uv_poll_start(poll, UV_READABLE, on_poll) == 0; /* never UV_WRITABLE: it would spin */
}

/* The plain handles first, since they cannot fail: what is open is then a prefix of this order. */
static bool start_handles(tg_endpoint *ep, uv_loop_t *loop) {
    uv_prepare_init(loop, &ep->prepare);
    uv_idle_init(loop, &ep->idle);
    uv_timer_init(loop, &ep->retry);
    ep->handles = 3;
    ep->prepare.data = ep->idle.data = ep->retry.data = ep;
    uv_prepare_start(&ep->prepare, on_prepare);
    return start_poll(ep, loop, &ep->poll, ep->socket) &&
           start_poll(ep, loop, &ep->monitor_poll, ep->monitor);
}

static void on_closed(uv_handle_t *handle) {
    tg_endpoint *ep = handle->data;
    if (--ep->handles == 0) release(ep);
}

void tg_endpoint_close(tg_endpoint **out, int linger_ms) {
    tg_endpoint *ep = *out;
    if (!ep) return;
    *out = NULL;
    ep->closed = true;
    if (ep->handles == 0) {
        close_sockets(ep, linger_ms);
        release(ep);
        return;
    }
    uv_handle_t *all[N_HANDLES] = {(uv_handle_t *)&ep->prepare, (uv_handle_t *)&ep->idle,
                                   (uv_handle_t *)&ep->retry, (uv_handle_t *)&ep->poll,
                                   (uv_handle_t *)&ep->monitor_poll};
    for (int i = 0, n = ep->handles; i < n; i++)
        uv_close(all[i], on_closed); /* polls stop before their fd goes */
    close_sockets(ep, linger_ms);
}

static tg_status open_all(tg_endpoint *ep, uv_loop_t *loop, tg_error *err) {
    const tg_security *sec = tg_net_security(ep->net);
    bool open = ep->opts.insecure || sec;
    tg_status st = ep->opts.listen ? tg_address_prepare(ep->address, open, err)
                                   : tg_address_check(ep->address, err);
    if (st != TG_OK) return st;
    ep->socket = zmq_socket(tg_net_context(ep->net), ep->opts.listen ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!ep->socket)
        return tg_fail(err, TG_UNAVAILABLE, "no ZeroMQ socket: %s", zmq_strerror(zmq_errno()));
    if ((st = configure(ep, err)) != TG_OK) return st;
    st = tg_security_apply(sec, ep->socket, ep->address, ep->opts.listen, &ep->secured, err);
    if (st != TG_OK) return st;
    if ((st = open_monitor(ep, err)) != TG_OK) return st;
    if ((st = attach(ep, err)) != TG_OK) return st;
    return start_handles(ep, loop)
               ? TG_OK
               : tg_fail(err, TG_UNAVAILABLE, "%s: the event loop is full", ep->address);
}

tg_status tg_endpoint_open(tg_endpoint **out, tg_net *net, uv_loop_t *loop,
                           const tg_endpoint_opts *opts, tg_error *err) {
    *out = NULL;
    TG_ASSERT(opts->address && opts->on_message);
    tg_endpoint *ep = tg_alloc(sizeof *ep);
    if (!ep) return tg_fail_nomem(err, sizeof *ep);
    ep->net = net;
    ep->opts = *opts;
    if (ep->opts.max_message == 0) ep->opts.max_message = TG_LIMIT_MESSAGE;
    if (ep->opts.high_water <= 0) ep->opts.high_water = 1024;
    if (ep->opts.max_queue == 0) ep->opts.max_queue = 1024;
    if (ep->opts.max_queue_bytes == 0) ep->opts.max_queue_bytes = 2 * ep->opts.max_message;
    ep->out.max_count = ep->opts.max_queue;
    ep->out.max_bytes = ep->opts.max_queue_bytes;
    ep->address = tg_strdup(opts->address);
    ep->opts.address = ep->address;
    tg_status st =
        ep->address ? open_all(ep, loop, err) : tg_fail_nomem(err, strlen(opts->address));
    if (st != TG_OK) {
        tg_endpoint_close(&ep, 0);
        return st;
    }
    *out = ep;
    return TG_OK;
}

size_t tg_endpoint_queued(const tg_endpoint *ep, tg_peer peer) {
    const tg_outpeer *p = tg_outqueue_find(&ep->out, peer);
    return p ? p->count : 0;
}

void tg_endpoint_forget(tg_endpoint *ep, tg_peer peer) {
    tg_outqueue_drop(&ep->out, peer);
}

const tg_endpoint_stats *tg_endpoint_get_stats(const tg_endpoint *ep) {
    return &ep->stats;
}

const char *tg_endpoint_address(const tg_endpoint *ep) {
    return ep->bound[0] ? ep->bound : ep->address;
}

bool tg_endpoint_is_secured(const tg_endpoint *ep) {
    return ep->secured;
}

bool tg_endpoint_user(const tg_endpoint *ep, tg_user *out) {
    memset(out, 0, sizeof *out);
    if (!ep->secured || !ep->opts.listen || !ep->current) return false;
    const char *user = zmq_msg_gets(ep->current, "User-Id");
    const char *key = zmq_msg_gets(ep->current, TG_ZAP_KEY_ID);
    if (!user || !key || !tg_user_parse(out, user)) return false;
    return sscanf(key, "%" SCNx64, &out->key_id) == 1;
}
