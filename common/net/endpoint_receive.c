/* The ZeroMQ socket inside a libuv loop: receiving, and when the loop may sleep.
 *
 * ZMQ_FD is edge triggered and says only "look at ZMQ_EVENTS"; any send or receive may change the state without a new
 * edge. Invariant: before the loop sleeps, ZMQ_EVENTS has been read after the last send and receive and showed
 * nothing to do (uv_prepare), or uv_idle keeps the loop from sleeping. */
#include "common/base/log.h"
#include "common/net/endpoint_internal.h"
#include "common/net/zap.h"
#include "proto/codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RETRY_MS = 50 /* a look at blocked queues even if libzmq never signals */
};

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

void tg_endpoint_handle(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len, bool whole) {
    tg_frame head = {0};
    tg_error err;
    void *msg = NULL;
    tg_status st;
    if (ep->opts.listen && peer == 0) {
        st = tg_fail(&err, TG_PROTOCOL, "routing ids of more than 7 bytes are not accepted");
    } else if (!whole) {
        st = tg_fail(&err, TG_PROTOCOL, "a frame is one message part");
    } else {
        st = tg_frame_decode_from(ep->pool, bytes, len, &head, &msg, &err);
    }
    if (st != TG_OK) {
        handle_bad(ep, peer, &head, &err);
        return;
    }
    ep->stats.received++;
    ep->stats.received_bytes += len;
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
        peer = tg_peer_pack(zmq_msg_data(&part), zmq_msg_size(&part));
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
    ep->at_hand = &part;
    tg_endpoint_handle(ep, peer, zmq_msg_data(&part), zmq_msg_size(&part), whole);
    ep->at_hand = NULL;
    zmq_msg_close(&part);
    return true;
}

bool tg_endpoint_user(const tg_endpoint *ep, tg_user *out) {
    memset(out, 0, sizeof *out);
    if (!ep->secured || !ep->opts.listen || !ep->at_hand) return false;
    const char *user = zmq_msg_gets(ep->at_hand, "User-Id");
    const char *key = zmq_msg_gets(ep->at_hand, TG_ZAP_KEY_ID);
    if (!user || !key || !tg_user_parse(out, user)) return false;
    return sscanf(key, "%" SCNx64, &out->key_id) == 1;
}

int tg_endpoint_fd(const tg_endpoint *ep) {
    if (ep->ipc) return ep->at_hand_fd;
    return ep->at_hand ? zmq_msg_get(ep->at_hand, ZMQ_SRCFD) : -1;
}

/* One event: what happened, to which file descriptor. False: there is none. */
static bool next_event(tg_endpoint *ep, uint16_t *what, int32_t *fd) {
    unsigned char event[6];
    int len = zmq_recv(ep->monitor, event, sizeof event, ZMQ_DONTWAIT), more = 0;
    if (len < 0) return false;
    *what = 0;
    if (len == sizeof event) {
        memcpy(what, event, sizeof *what);
        memcpy(fd, event + 2, sizeof *fd);
    }
    size_t size = sizeof more;
    while (zmq_getsockopt(ep->monitor, ZMQ_RCVMORE, &more, &size) == 0 && more) {
        char address[256];
        if (zmq_recv(ep->monitor, address, sizeof address, ZMQ_DONTWAIT) < 0) break;
    }
    return true;
}

static void drain_monitor(tg_endpoint *ep) {
    const tg_endpoint_opts *o = &ep->opts;
    uint16_t what;
    int32_t fd = -1;
    bool connected = false;
    int failed = 0;
    while (!ep->closed && next_event(ep, &what, &fd)) {
        if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) connected = true;
        if (what == ZMQ_EVENT_ACCEPTED && o->on_accept) o->on_accept(o->arg, fd);
        if (what & TG_HANDSHAKE_FAILED) failed |= what, ep->stats.handshakes_failed++;
        if (what != ZMQ_EVENT_DISCONNECTED || !o->on_disconnect) continue;
        if (connected && o->on_connect) o->on_connect(o->arg);
        connected = false;
        if (!ep->closed) o->on_disconnect(o->arg, fd);
    }
    if (!ep->closed && connected && o->on_connect) o->on_connect(o->arg);
    if (!ep->closed && failed && ep->secured && o->on_denied)
        o->on_denied(o->arg, failed & ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
}

static int socket_events(tg_endpoint *ep) {
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(ep->socket, ZMQ_EVENTS, &events, &size) == 0 ? events : 0;
}

static void on_idle(uv_idle_t *handle) {
    (void)handle; /* its being active is what counts: the loop does not sleep, prepare drains */
}

void tg_endpoint_look_again(tg_endpoint *ep) {
    ep->settled = false;
    if (!ep->draining) uv_idle_start(&ep->idle, on_idle);
}

static void on_retry(uv_timer_t *timer) {
    tg_endpoint_poll(timer->data);
}

void tg_endpoint_retry_queued(tg_endpoint *ep) {
    if (!ep->out.peers) {
        uv_timer_stop(&ep->retry);
    } else if (!uv_is_active((uv_handle_t *)&ep->retry)) {
        uv_timer_start(&ep->retry, on_retry, RETRY_MS, RETRY_MS);
    }
}

static void poll_zmq(tg_endpoint *ep) {
    int budget = TG_ENDPOINT_BUDGET;
    while (budget > 0 && !ep->closed) {
        int events = socket_events(ep);
        bool did = (events & ZMQ_POLLIN) && receive_one(ep);
        if (!ep->closed && (events & ZMQ_POLLOUT) && ep->out.peers)
            did |= tg_endpoint_flush_one(ep);
        if (!did) break;
        budget--;
    }
    ep->settled = budget > 0;
    if (!ep->closed && budget > 0)
        drain_monitor(ep); /* last: what was sent before the end counts; may send, and unsettle */
    if (ep->closed) return;
    if (ep->settled) {
        uv_idle_stop(&ep->idle);
    } else {
        uv_idle_start(&ep->idle, on_idle);
    }
}

void tg_endpoint_poll(tg_endpoint *ep) {
    if (ep->draining || ep->closed) return;
    ep->draining = true;
    tg_outqueue_unblock(&ep->out);
    if (ep->ipc)
        tg_endpoint_poll_ipc(ep);
    else
        poll_zmq(ep);
    ep->draining = false;
    if (!ep->closed) tg_endpoint_retry_queued(ep);
}
