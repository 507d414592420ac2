/* Sending: at once, or queued behind what already waits for that peer. On the loop's thread. */
#include "common/base/check.h"
#include "common/net/endpoint_internal.h"

#include <errno.h>
#include <string.h>

enum { KEEP_BYTES = 1 << 20 }; /* of the buffers, after a message */

tg_peer tg_peer_pack(const void *id, size_t len) {
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

static sent send_ipc(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len) {
    switch (tg_ipc_send(ep->ipc, peer, bytes, len)) {
    case TG_IPC_SENT: return SENT;
    case TG_IPC_BLOCKED: return BLOCKED;
    case TG_IPC_GONE: break;
    }
    return GONE;
}

static sent send_zmq(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len) {
    if (ep->opts.listen) {
        unsigned char id[8];
        size_t id_len = peer_unpack(peer, id);
        if (zmq_send(ep->socket, id, id_len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
            return errno == EAGAIN ? BLOCKED : GONE;
    }
    if (zmq_send(ep->socket, bytes, len, ZMQ_DONTWAIT) < 0) return errno == EAGAIN ? BLOCKED : GONE;
    return SENT;
}

static sent send_now(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len) {
    sent result = ep->ipc ? send_ipc(ep, peer, bytes, len) : send_zmq(ep, peer, bytes, len);
    ep->stats.sent += result == SENT;
    ep->stats.sent_bytes += result == SENT ? len : 0;
    return result;
}

void tg_endpoint_limit_send(tg_endpoint *ep, size_t max_message) {
    ep->send_limit = max_message;
}

/* The frame in ep->scratch: sent, or queued. */
static tg_status post(tg_endpoint *ep, tg_peer peer, tg_error *err) {
    if (!ep->ipc) tg_endpoint_look_again(ep);
    if (!tg_outqueue_find(&ep->out, peer)) { /* else it must wait behind those */
        sent result = send_now(ep, peer, ep->scratch.data, ep->scratch.len);
        if (result == SENT) return TG_OK;
        if (result == GONE)
            return tg_fail(err, TG_UNAVAILABLE, "the peer is not connected any more");
    }
    switch (tg_outqueue_push(&ep->out, peer, ep->scratch.data, ep->scratch.len)) {
    case TG_OUTQUEUE_OK: tg_endpoint_retry_queued(ep); return TG_OK;
    case TG_OUTQUEUE_NOMEM: return tg_fail_nomem(err, ep->scratch.len);
    case TG_OUTQUEUE_FULL: break;
    }
    ep->stats.refused++;
    return tg_fail(err, TG_BUSY, "the peer takes no more messages (%zu wait)", ep->opts.max_queue);
}

static void count_error(tg_endpoint *ep, const tg_wire_error *e) {
    if ((unsigned)e->code < TG_CODE_COUNT) ep->stats.errors[e->code]++;
}

tg_status tg_endpoint_send(tg_endpoint *ep, tg_peer peer, const tg_frame *head, const void *msg,
                           tg_error *err) {
    TG_ASSERT(!ep->closed);
    tg_buf_reset(&ep->scratch);
    tg_status st = tg_frame_encode_in(&ep->encode, head, msg, &ep->scratch, err);
    if (st == TG_OK && ep->scratch.len > ep->send_limit)
        st = tg_fail(err, TG_DATA,
                     "%s of %zu bytes, at most %zu can be sent; where the other side was started, "
                     "--max-message allows more",
                     tg_msg_name(head->type), ep->scratch.len, ep->send_limit);
    if (st == TG_OK && head->type == TG_MSG_ERROR) count_error(ep, msg);
    if (st == TG_OK) st = post(ep, peer, err);
    if (ep->scratch.len > KEEP_BYTES) { /* a rare giant: its memory is not kept */
        tg_buf_fini(&ep->scratch);
        tg_arena_fini(&ep->encode);
    }
    return st;
}

bool tg_endpoint_flush_one(tg_endpoint *ep) {
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

size_t tg_endpoint_queued(const tg_endpoint *ep, tg_peer peer) {
    const tg_outpeer *p = tg_outqueue_find(&ep->out, peer);
    return p ? p->count : 0;
}

void tg_endpoint_forget(tg_endpoint *ep, tg_peer peer) {
    tg_outqueue_drop(&ep->out, peer);
}
