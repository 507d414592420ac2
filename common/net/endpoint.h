/* One ZeroMQ address on a libuv loop, speaking whole typed messages: tcp:// through libzmq, ipc:// without its thread (ipc.h).
 *
 *     tg_net_create(&net, err);
 *     tg_endpoint_open(&ep, net, loop, &opts, err);   // listens (ROUTER) or dials (DEALER)
 *     tg_endpoint_send(ep, peer, &head, &msg, err);
 *     tg_endpoint_close(&ep, 0);                      // memory goes with the loop's next turn
 *     tg_net_destroy(&net);
 *
 * Everything of an endpoint happens on the loop's thread. Nothing is ever lost silently: a message
 * is sent, queued (bounded per peer), refused with TG_BUSY, or its peer is reported gone. Bad
 * frames are counted and answered with Error PROTOCOL; they never reach on_message. */
#ifndef TG_NET_ENDPOINT_H
#define TG_NET_ENDPOINT_H

#include "common/base/status.h"
#include "common/net/net.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* Who is at the other end of a listening socket; 0 is the one peer of a dialling socket. Never
 * reused while the peer is connected; a peer that connects again is another tg_peer. */
typedef uint64_t tg_peer;

typedef struct tg_endpoint tg_endpoint;

typedef struct tg_endpoint_opts {
    const char *address; /* ipc://PATH or tcp://HOST:PORT */
    bool listen;         /* bind a ROUTER; else connect a DEALER */
    bool insecure;       /* allow listening on a non-loopback tcp address without keys */
    bool recycle;        /* messages are freed on the loop's thread: their memory is used again */
    size_t max_message;  /* 0: TG_LIMIT_MESSAGE */
    /* A connection that is none yet after this is dropped; 0: 5000. Not on a listening tcp socket: its owner cuts whom on_accept told it of. */
    int handshake_ms;
    int high_water;   /* tcp: messages libzmq may hold per peer and direction; 0: 1024 */
    size_t max_queue; /* further messages held per peer that takes no more; 0: 1024, ipc 3072 */
    size_t max_queue_bytes; /* 0: 16 MiB; one message is always held, whatever its size */
    /* msg is the receiver's: tg_msg_free. May close the endpoint. */
    void (*on_message)(void *arg, tg_peer peer, const tg_frame *head, void *msg);
    /* A queued message cannot reach its peer any more: the peer has disconnected. May be NULL. */
    void (*on_gone)(void *arg, tg_peer peer);
    /* A connection is made (dialling: the peer can be sent to). May be NULL. */
    void (*on_connect)(void *arg);
    /* Listening: a connection was made; fd as for on_disconnect. May be NULL. */
    void (*on_accept)(void *arg, int fd);
    /* A transport connection dropped. A ROUTER does not say whose: fd is what tg_endpoint_fd said of its messages; probe
     * those peers with a send. May be NULL. */
    void (*on_disconnect)(void *arg, int fd);
    /* With keys: a handshake failed. key: the other side does not let our key in; else it broke off, as it
     * does when its own key is another one than we expect. libzmq goes on trying. May be NULL. */
    void (*on_denied)(void *arg, bool key);
    void *arg;
} tg_endpoint_opts;

typedef struct tg_endpoint_stats {
    uint64_t sent, received, bad_frames, refused; /* refused: sends answered with TG_BUSY */
    uint64_t sent_bytes, received_bytes;
    uint64_t errors[TG_CODE_COUNT]; /* Errors sent */
    uint64_t handshakes_failed;     /* connections that never became one: no ZeroMQ, wrong keys */
} tg_endpoint_stats;

/* opts is copied (the address too). TG_DENIED: a listening address that would be open to others. */
tg_status tg_endpoint_open(tg_endpoint **out, tg_net *net, uv_loop_t *loop,
                           const tg_endpoint_opts *opts, tg_error *err) TG_MUST_CHECK;
/* The socket is closed at once (libzmq goes on delivering for linger_ms; ipc: what is queued has so long to leave); no callback comes after
 * this. The memory is released by the loop, which must turn once more before uv_loop_close. */
void tg_endpoint_close(tg_endpoint **ep, int linger_ms);

/* Encodes and sends or queues. TG_UNAVAILABLE: no such peer any more; TG_BUSY: its queue is full;
 * TG_DATA: msg is beyond the limits of the protocol. */
tg_status tg_endpoint_send(tg_endpoint *ep, tg_peer peer, const tg_frame *head, const void *msg,
                           tg_error *err) TG_MUST_CHECK;
/* The largest message that may be sent (max_message at first): the other side drops the connection of a peer
 * that sends more than it takes. */
void tg_endpoint_limit_send(tg_endpoint *ep, size_t max_message);
/* Messages to this peer that were not taken yet. */
size_t tg_endpoint_queued(const tg_endpoint *ep, tg_peer peer);
/* Drops what is queued for a peer. */
void tg_endpoint_forget(tg_endpoint *ep, tg_peer peer);
/* Inside on_message only: who sent the message, as its key proved; false without keys. */
bool tg_endpoint_user(const tg_endpoint *ep, tg_user *out);
/* Inside on_message only: the connection's file descriptor, -1 when unknown. Only to be compared: a later connection may
 * have the same. */
int tg_endpoint_fd(const tg_endpoint *ep);
/* Whether this socket is encrypted and every peer proven by its key. */
bool tg_endpoint_is_secured(const tg_endpoint *ep);
/* Handles what has arrived, as the loop would; for callers about to judge silence. */
void tg_endpoint_poll(tg_endpoint *ep);
const tg_endpoint_stats *tg_endpoint_get_stats(const tg_endpoint *ep);
/* The address in use, with the port libzmq chose for tcp://…:*. */
const char *tg_endpoint_address(const tg_endpoint *ep);

#endif
