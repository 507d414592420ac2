/* What the files of the endpoint share: endpoint.c (its life), endpoint_send.c, endpoint_receive.c (and the loop). */
#ifndef TG_NET_ENDPOINT_INTERNAL_H
#define TG_NET_ENDPOINT_INTERNAL_H

#include "common/net/endpoint.h"
#include "common/net/outqueue.h"

#include <zmq.h>

struct tg_endpoint {
    tg_net *net;
    tg_endpoint_opts opts;
    char *address; /* as asked for; opts.address points here */
    char bound[256];
    void *socket, *monitor;
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
/* Our own send may have made the socket readable without an edge: the loop must look again before it sleeps. */
void tg_endpoint_look_again(tg_endpoint *ep);

#endif
