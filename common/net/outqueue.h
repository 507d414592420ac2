/* Messages that were not taken yet, bounded for each peer. Internal to common/net. */
#ifndef TG_NET_OUTQUEUE_H
#define TG_NET_OUTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_outmsg {
    struct tg_outmsg *next;
    size_t len;
    unsigned char bytes[];
} tg_outmsg;

/* What waits for one peer; exists only while something does. */
typedef struct tg_outpeer {
    struct tg_outpeer *next;
    uint64_t peer;
    tg_outmsg *first, *last;
    size_t count, bytes;
    bool blocked; /* tried in this round, not taken */
} tg_outpeer;

typedef struct tg_outqueue {
    tg_outpeer *peers;
    size_t max_count, max_bytes; /* per peer */
} tg_outqueue;

typedef enum tg_outqueue_result {
    TG_OUTQUEUE_OK,
    TG_OUTQUEUE_FULL,
    TG_OUTQUEUE_NOMEM
} tg_outqueue_result;

tg_outqueue_result tg_outqueue_push(tg_outqueue *q, uint64_t peer, const void *bytes, size_t len);
tg_outpeer *tg_outqueue_find(const tg_outqueue *q, uint64_t peer);
void tg_outqueue_pop(tg_outqueue *q,
                     tg_outpeer *p); /* the first message; p is gone with its last one */
void tg_outqueue_drop(tg_outqueue *q, uint64_t peer); /* all of a peer */
void tg_outqueue_unblock(tg_outqueue *q);
void tg_outqueue_fini(tg_outqueue *q);

#endif
