/* Messages over a socket of the file system, on the caller's own thread: what libzmq's ROUTER and DEALER do for ipc:// addresses, with
 * its protocol (zmtp.h), so that its peers are served too. libzmq passes every message through a thread of its own; on one
 * machine those four wakings are most of the time that an answer takes. Internal to common/net.
 *
 *     tg_ipc_open(&ipc, "/run/textgen/env", &opts, err);
 *     // whenever tg_ipc_fd(ipc) is readable:
 *     tg_ipc_drain(ipc, 256);                       // calls opts.on_...
 *     tg_ipc_send(ipc, peer, bytes, len);
 *     tg_ipc_shut(ipc);                             // inside a callback too
 *     tg_ipc_destroy(&ipc);                         // not inside a callback
 *
 * A dialling one connects again by itself whenever there is no connection. Nothing is queued here but the rest of a message that
 * was begun. */
#ifndef TG_NET_IPC_H
#define TG_NET_IPC_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_ipc tg_ipc;

typedef struct tg_ipc_opts {
    bool listen;
    size_t max_message; /* a longer one ends its connection, before anything is allocated for it */
    int handshake_ms;   /* a connection that is none yet after this is ended */
    /* bytes: until the return. whole: false for a message of several parts, of which nothing is given. */
    void (*on_message)(void *arg, uint64_t peer, int fd, const void *bytes, size_t len, bool whole);
    void (*on_accept)(void *arg, int fd);
    void (*on_connect)(void *arg); /* dialling: can be sent to */
    /* ready: there was a whole handshake. fd is closed right after. */
    void (*on_end)(void *arg, uint64_t peer, int fd, bool ready);
    void *arg;
} tg_ipc_opts;

typedef enum tg_ipc_sent {
    TG_IPC_SENT,
    TG_IPC_BLOCKED, /* not now: it does not read, or (dialling) is not there */
    TG_IPC_GONE
} tg_ipc_sent;

/* TG_UNAVAILABLE: cannot listen there. */
tg_status tg_ipc_open(tg_ipc **out, const char *path, const tg_ipc_opts *opts,
                      tg_error *err) TG_MUST_CHECK;
void tg_ipc_shut(tg_ipc *ipc); /* closes everything; no callback comes after this */
void tg_ipc_destroy(tg_ipc **ipc);

/* Readable whenever there is something to do. */
int tg_ipc_fd(const tg_ipc *ipc);
/* Handles what has arrived, about so many messages at most: with more the descriptor stays readable. */
void tg_ipc_drain(tg_ipc *ipc, int budget);
/* peer: of on_message; 0 when dialling. */
tg_ipc_sent tg_ipc_send(tg_ipc *ipc, uint64_t peer, const void *bytes, size_t len);

#endif
