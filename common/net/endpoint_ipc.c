/* An endpoint on a socket of the file system: the same promises, kept without libzmq. On the loop's thread. */
#include "common/base/clock.h"
#include "common/net/endpoint_internal.h"

#include <poll.h>
#include <string.h>

enum { PATH_AT = 6 /* strlen("ipc://") */, LINGER_STEP_MS = 10 };

static void on_message(void *arg, uint64_t peer, int fd, const void *bytes, size_t len,
                       bool whole) {
    tg_endpoint *ep = arg;
    ep->at_hand_fd = fd;
    tg_endpoint_handle(ep, peer, bytes, len, whole);
    ep->at_hand_fd = -1;
}

static void on_accept(void *arg, int fd) {
    const tg_endpoint_opts *o = &((tg_endpoint *)arg)->opts;
    if (o->on_accept) o->on_accept(o->arg, fd);
}

static void on_connect(void *arg) {
    const tg_endpoint_opts *o = &((tg_endpoint *)arg)->opts;
    if (o->on_connect) o->on_connect(o->arg);
}

/* What was queued for it is lost, and said to be. */
static void on_end(void *arg, uint64_t peer, int fd, bool ready) {
    tg_endpoint *ep = arg;
    const tg_endpoint_opts *o = &ep->opts;
    if (!ready) ep->stats.handshakes_failed++;
    bool lost = ready && tg_outqueue_find(&ep->out, peer);
    if (lost) tg_outqueue_drop(&ep->out, peer);
    if (lost && o->on_gone) o->on_gone(o->arg, peer);
    if (!ep->closed && o->on_disconnect) o->on_disconnect(o->arg, fd);
}

tg_status tg_endpoint_open_ipc(tg_endpoint *ep, tg_error *err) {
    tg_ipc_opts o = {.listen = ep->opts.listen,
                     .max_message = ep->opts.max_message,
                     .handshake_ms = ep->opts.handshake_ms,
                     .on_message = on_message,
                     .on_accept = on_accept,
                     .on_connect = on_connect,
                     .on_end = on_end,
                     .arg = ep};
    ep->at_hand_fd = -1;
    return tg_ipc_open(&ep->ipc, ep->address + PATH_AT, &o, err);
}

static void flush(tg_endpoint *ep) {
    int budget = TG_ENDPOINT_BUDGET;
    while (!ep->closed && ep->out.peers && budget-- > 0 && tg_endpoint_flush_one(ep)) continue;
}

void tg_endpoint_poll_ipc(tg_endpoint *ep) {
    tg_ipc_drain(ep->ipc, TG_ENDPOINT_BUDGET);
    flush(ep);
}

void tg_endpoint_linger_ipc(tg_endpoint *ep, int ms) {
    uint64_t end = tg_clock_ms() + (uint64_t)ms;
    while (ep->out.peers && tg_clock_ms() < end) {
        tg_outqueue_unblock(&ep->out);
        while (tg_endpoint_flush_one(ep)) continue;
        if (ep->out.peers) poll(NULL, 0, LINGER_STEP_MS);
    }
}
