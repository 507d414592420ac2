/* What the files of the endpoint share: endpoint.c (its life), endpoint_send.c, endpoint_receive.c (and the loop), endpoint_ipc.c (what
 * is different on sockets of the file system). */
#ifndef TG_NET_ENDPOINT_INTERNAL_H
#define TG_NET_ENDPOINT_INTERNAL_H

#include "common/net/endpoint.h"
#include "common/net/ipc.h"
#include "common/net/outqueue.h"

#include <zmq.h>

struct tg_endpoint {
    tg_net *net;
    tg_endpoint_opts opts;
    char *address; /* as asked for; opts.address points here */
    char bound[256];
    tg_ipc *ipc;            /* ipc:// addresses; then there is no ZeroMQ socket */
    void *socket, *monitor; /* tcp:// addresses */
    bool secured;
    uv_poll_t poll, monitor_poll;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t retry;
    int handles; /* open ones; the last to close frees the endpoint */
    bool draining, closed;
    bool settled; /* there was nothing to do, and nothing was sent or received since */
    tg_outqueue out;
    tg_buf scratch;
    size_t send_limit;
    tg_arena encode;   /* of the message being sent */
    tg_msg_pool *pool; /* NULL: messages come from the heap */
    tg_endpoint_stats stats;
    zmq_msg_t *at_hand; /* the message being handled; NULL outside on_message */
    int at_hand_fd;     /* (ipc) of its connection; -1 outside on_message */
};

enum {
    TG_HANDSHAKE_FAILED = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

/* endpoint_send.c */
/* A routing id of up to 7 bytes as a number (libzmq makes ids of 5): length in the top byte. 0: too long for us. */
tg_peer tg_peer_pack(const void *id, size_t len);
/* Sends one queued message of some peer; false when none can be sent now. */
bool tg_endpoint_flush_one(tg_endpoint *ep);

/* endpoint_receive.c */
enum {
    TG_ENDPOINT_BUDGET = 256
}; /* messages handled before timers and other sockets get their turn */
/* One message, decoded and handed on, or answered with Error. whole: it was one part. */
void tg_endpoint_handle(tg_endpoint *ep, tg_peer peer, const void *bytes, size_t len, bool whole);
/* After a look at the socket: another one soon while messages are queued. */
void tg_endpoint_retry_queued(tg_endpoint *ep);
/* Our own send may have made the socket readable without an edge: the loop must look again before it sleeps. */
void tg_endpoint_look_again(tg_endpoint *ep);

/* endpoint_ipc.c */
tg_status tg_endpoint_open_ipc(tg_endpoint *ep, tg_error *err) TG_MUST_CHECK;
void tg_endpoint_poll_ipc(tg_endpoint *ep);
/* Gives what is queued so many ms to leave. */
void tg_endpoint_linger_ipc(tg_endpoint *ep, int ms);

#endif
