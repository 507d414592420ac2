/* What ipc.c (the address and its connections) and ipc_conn.c (one connection) share. */
#ifndef TG_NET_IPC_INTERNAL_H
#define TG_NET_IPC_INTERNAL_H

#include "common/base/buf.h"
#include "common/net/ipc.h"

#include <sys/types.h>

enum { TG_IPC_READ = 32768 }; /* bytes of one read */

typedef enum tg_ipc_stage { TG_IPC_GREETING, TG_IPC_HANDSHAKE, TG_IPC_READY } tg_ipc_stage;

typedef struct tg_ipc_conn {
    tg_ipc *ipc;
    uint64_t id; /* number of the connection << 32 | place */
    int fd;
    tg_ipc_stage stage;
    bool parts;  /* in the midst of a message of several parts */
    bool waits;  /* for room to write */
    bool broken; /* a write failed; its end is about to be read */
    uint64_t since_ms;
    tg_buf in;  /* the beginning of a frame; empty most of the time */
    tg_buf out; /* what the kernel did not take, from out_at on */
    size_t out_at;
} tg_ipc_conn;

struct tg_ipc {
    tg_ipc_opts opts;
    char *path;
    int epoll, listener, timer,
        reserve; /* reserve: to be closed when there are no descriptors left */
    dev_t dev;   /* of the file we made */
    ino_t ino;
    bool shut;
    int budget;
    tg_ipc_conn **conns; /* by place; NULL: free */
    size_t n_conns, cap_conns, first_free;
    size_t unready; /* connections without a whole handshake */
    uint32_t serial;
    int backoff_ms;
    uint64_t dial_ms; /* not before */
    uint64_t refused; /* connections, for want of descriptors */
    tg_buf spare;     /* memory of the last conn->in, for the next */
    unsigned char room[TG_IPC_READ];
};

/* ipc.c */
void tg_ipc_end(tg_ipc_conn *c); /* with its callback; c is gone */
void tg_ipc_ready(tg_ipc_conn *c);
void tg_ipc_watch(tg_ipc_conn *c, bool write); /* for room to write too */

/* ipc_conn.c */
void tg_ipc_greet(tg_ipc_conn *c);
void tg_ipc_readable(tg_ipc_conn *c); /* c may be gone afterwards */
void tg_ipc_writable(tg_ipc_conn *c);
tg_ipc_sent tg_ipc_write(tg_ipc_conn *c, const void *bytes, size_t len);

#endif
