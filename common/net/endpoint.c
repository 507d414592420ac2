/* An endpoint's life: the socket with its options, the handles on the loop, the end. Everything runs on the loop's thread. ipc://
 * addresses are endpoint_ipc.c's, tcp:// ones libzmq's. */
#include "common/net/endpoint.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/net/address.h"
#include "common/net/endpoint_internal.h"
#include "proto/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HANDSHAKE_MS = 5000, /* a connection that does not speak ZMTP is dropped after this */
    /* The kernel gives a tcp connection up when what was sent is not acknowledged for so long; the link's heartbeats see to
     * it that something is sent. ZeroMQ's own heartbeats would cost a walk over all timers at every message. */
    UNACKNOWLEDGED_MS = 6000,
    /* Of one attempt: the kernel's own pauses between attempts double to more than a minute, and a network that heals would not be
     * noticed for as long. */
    CONNECT_MS = 1500,
    RECONNECT_MS = 100,
    RECONNECT_MAX_MS = 1000,
    BACKLOG =
        4096, /* connections that may arrive at once, e.g. ten thousand clients of a broker that restarts */
    QUEUE = 1024,
    QUEUE_BYTES = 16 << 20,
    N_HANDLES = 5
};

static bool set_int(void *socket, int option, int value) {
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* No ZMQ_HANDSHAKE_IVL for those who come: libzmq 4.3.4 walks over all its timers when one of them is stopped, so ten thousand silent
 * connections would hold up everybody at every handshake.
 *
 * ZMQ_IMMEDIATE stays off: with it, a DEALER loses messages that arrived just before its connection ended (libzmq 4.3.4: one Bye
 * in five). Nothing is queued for a connection not yet made all the same: the owner sends from on_connect on. */
static tg_status configure(tg_endpoint *ep, tg_error *err) {
    int64_t max_message = (int64_t)ep->opts.max_message;
    void *s = ep->socket;
    bool ok = set_int(s, ZMQ_LINGER, 0) && set_int(s, ZMQ_SNDHWM, ep->opts.high_water) &&
              set_int(s, ZMQ_RCVHWM, ep->opts.high_water) &&
              zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_message, sizeof max_message) == 0 &&
              set_int(s, ZMQ_HANDSHAKE_IVL, ep->opts.listen ? 0 : ep->opts.handshake_ms) &&
              set_int(s, ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS) && set_int(s, ZMQ_TCP_KEEPALIVE, 1) &&
              set_int(s, ZMQ_CONNECT_TIMEOUT, CONNECT_MS) &&
              set_int(s, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
              set_int(s, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) &&
              set_int(s, ZMQ_IPV6, strchr(ep->address, '[') != NULL);
    if (ok && ep->opts.listen)
        ok = set_int(s, ZMQ_ROUTER_MANDATORY, 1) && set_int(s, ZMQ_BACKLOG, BACKLOG);
    return ok ? TG_OK
              : tg_fail(err, TG_BUG, "a ZeroMQ option was refused: %s", zmq_strerror(zmq_errno()));
}

static tg_status attach(tg_endpoint *ep, tg_error *err) {
    if (!ep->opts.listen) {
        if (zmq_connect(ep->socket, ep->address) == 0) return TG_OK;
        return tg_fail(err, TG_UNAVAILABLE, "%s: cannot connect: %s", ep->address,
                       zmq_strerror(zmq_errno()));
    }
    if (zmq_bind(ep->socket, ep->address) != 0)
        return tg_fail(err, TG_UNAVAILABLE, "%s: cannot listen: %s", ep->address,
                       zmq_strerror(zmq_errno()));
    size_t size = sizeof ep->bound;
    if (zmq_getsockopt(ep->socket, ZMQ_LAST_ENDPOINT, ep->bound, &size) != 0) ep->bound[0] = '\0';
    return TG_OK;
}

static tg_status open_monitor(tg_endpoint *ep, tg_error *err) {
    char name[64];
    snprintf(name, sizeof name, "inproc://monitor-%" PRIu32, tg_net_serial(ep->net));
    if (zmq_socket_monitor(ep->socket, name,
                           ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_SUCCEEDED | TG_HANDSHAKE_FAILED) == 0) {
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
    if (ep->ipc) tg_ipc_shut(ep->ipc);
}

static void release(tg_endpoint *ep) {
    tg_ipc_destroy(&ep->ipc);
    tg_outqueue_fini(&ep->out);
    tg_buf_fini(&ep->scratch);
    tg_arena_fini(&ep->encode);
    tg_msg_pool_release(&ep->pool);
    tg_free(ep->address);
    tg_free(ep);
}

static uv_os_sock_t socket_fd(void *socket) {
    uv_os_sock_t fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    tg_endpoint_poll(poll->data);
}

/* A process may have thousands of endpoints, and each look costs a system call. */
static void on_prepare(uv_prepare_t *prepare) {
    tg_endpoint *ep = prepare->data;
    if (!ep->settled) tg_endpoint_poll(ep);
}

static bool start_poll(tg_endpoint *ep, uv_loop_t *loop, uv_poll_t *poll, uv_os_sock_t fd) {
    if (uv_poll_init(loop, poll, fd) != 0) return false;
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
    if (ep->ipc) return start_poll(ep, loop, &ep->poll, tg_ipc_fd(ep->ipc));
    uv_prepare_start(&ep->prepare, on_prepare);
    return start_poll(ep, loop, &ep->poll, socket_fd(ep->socket)) &&
           start_poll(ep, loop, &ep->monitor_poll, socket_fd(ep->monitor));
}

static void on_closed(uv_handle_t *handle) {
    tg_endpoint *ep = handle->data;
    if (--ep->handles == 0) release(ep);
}

void tg_endpoint_close(tg_endpoint **out, int linger_ms) {
    tg_endpoint *ep = *out;
    if (!ep) return;
    *out = NULL;
    if (ep->ipc) tg_endpoint_linger_ipc(ep, linger_ms);
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

static tg_status start(tg_endpoint *ep, uv_loop_t *loop, tg_error *err) {
    return start_handles(ep, loop)
               ? TG_OK
               : tg_fail(err, TG_UNAVAILABLE, "%s: the event loop is full", ep->address);
}

static tg_status open_all(tg_endpoint *ep, uv_loop_t *loop, tg_error *err) {
    const tg_security *sec = tg_net_security(ep->net);
    bool open = ep->opts.insecure || sec;
    tg_status st = ep->opts.listen ? tg_address_prepare(ep->address, open, err)
                                   : tg_address_check(ep->address, err);
    if (st != TG_OK) return st;
    if (tg_address_is_ipc(ep->address)) {
        st = tg_endpoint_open_ipc(ep, err);
        return st == TG_OK ? start(ep, loop, err) : st;
    }
    ep->socket = zmq_socket(tg_net_context(ep->net), ep->opts.listen ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!ep->socket)
        return tg_fail(err, TG_UNAVAILABLE, "no ZeroMQ socket: %s", zmq_strerror(zmq_errno()));
    if ((st = configure(ep, err)) != TG_OK) return st;
    st = tg_security_apply(sec, ep->socket, ep->address, ep->opts.listen, &ep->secured, err);
    if (st != TG_OK) return st;
    if ((st = open_monitor(ep, err)) != TG_OK) return st;
    if ((st = attach(ep, err)) != TG_OK) return st;
    return start(ep, loop, err);
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
    ep->send_limit = ep->opts.max_message;
    if (ep->opts.handshake_ms <= 0) ep->opts.handshake_ms = HANDSHAKE_MS;
    if (ep->opts.high_water <= 0) ep->opts.high_water = 1024;
    if (ep->opts.max_queue == 0) /* libzmq holds as many again on both sides */
        ep->opts.max_queue = tg_address_is_ipc(opts->address) ? 3 * QUEUE : QUEUE;
    if (ep->opts.max_queue_bytes == 0) ep->opts.max_queue_bytes = QUEUE_BYTES;
    ep->out.max_count = ep->opts.max_queue;
    ep->out.max_bytes = ep->opts.max_queue_bytes;
    ep->address = tg_strdup(opts->address);
    ep->opts.address = ep->address;
    if (opts->recycle) ep->pool = tg_msg_pool_create(); /* without one: from the heap */
    tg_status st =
        ep->address ? open_all(ep, loop, err) : tg_fail_nomem(err, strlen(opts->address));
    if (st != TG_OK) {
        tg_endpoint_close(&ep, 0);
        return st;
    }
    *out = ep;
    return TG_OK;
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
