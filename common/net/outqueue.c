/* A list of peers with a backlog (few), each with a list of messages. Used on the loop's thread
 * only. */
#include "common/net/outqueue.h"

#include "common/base/alloc.h"

#include <string.h>

tg_outpeer *tg_outqueue_find(const tg_outqueue *q, uint64_t peer) {
    for (tg_outpeer *p = q->peers; p; p = p->next) {
        if (p->peer == peer) return p;
    }
    return NULL;
}

static tg_outpeer *find_or_add(tg_outqueue *q, uint64_t peer) {
    tg_outpeer *p = tg_outqueue_find(q, peer);
    if (p) return p;
    p = tg_alloc(sizeof *p);
    if (!p) return NULL;
    p->peer = peer;
    p->next = q->peers;
    return q->peers = p;
}

tg_outqueue_result tg_outqueue_push(tg_outqueue *q, uint64_t peer, const void *bytes, size_t len) {
    const tg_outpeer *full = tg_outqueue_find(q, peer);
    if (full && (full->count >= q->max_count || full->bytes + len > q->max_bytes))
        return TG_OUTQUEUE_FULL;
    tg_outmsg *m = tg_alloc(sizeof *m + len);
    if (!m) return TG_OUTQUEUE_NOMEM;
    tg_outpeer *p = find_or_add(q, peer);
    if (!p) {
        tg_free(m);
        return TG_OUTQUEUE_NOMEM;
    }
    m->len = len;
    memcpy(m->bytes, bytes, len);
    if (p->last) {
        p->last->next = m;
    } else {
        p->first = m;
    }
    p->last = m;
    p->count++;
    p->bytes += len;
    return TG_OUTQUEUE_OK;
}

static void unlink_peer(tg_outqueue *q, tg_outpeer *p) {
    for (tg_outpeer **at = &q->peers; *at; at = &(*at)->next) {
        if (*at != p) continue;
        *at = p->next;
        tg_free(p);
        return;
    }
}

void tg_outqueue_pop(tg_outqueue *q, tg_outpeer *p) {
    tg_outmsg *m = p->first;
    p->first = m->next;
    if (!p->first) p->last = NULL;
    p->count--;
    p->bytes -= m->len;
    tg_free(m);
    if (!p->first) unlink_peer(q, p);
}

void tg_outqueue_drop(tg_outqueue *q, uint64_t peer) {
    tg_outpeer *p = tg_outqueue_find(q, peer);
    if (!p) return;
    for (size_t n = p->count; n > 0; n--) tg_outqueue_pop(q, p); /* p goes with the last */
}

void tg_outqueue_unblock(tg_outqueue *q) {
    for (tg_outpeer *p = q->peers; p; p = p->next) p->blocked = false;
}

void tg_outqueue_fini(tg_outqueue *q) {
    while (q->peers) tg_outqueue_drop(q, q->peers->peer);
}
