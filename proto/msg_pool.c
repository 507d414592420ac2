/* Where decoded messages live. A block knows its pool, so that tg_msg_free needs no other argument; the pool goes with the
 * last of its blocks.
 *
 * Invariant: at most KEPT idle blocks of at most TG_MSG_KEEP_BYTES each, so one large message costs nothing for ever. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "proto/codec_family.h"

enum { KEPT = 8, FIRST_BYTES = 4096 };

typedef struct block {
    tg_msg_pool *pool; /* NULL: the heap's */
    size_t size;       /* of what follows */
} block;
_Static_assert(sizeof(block) == 16, "keeps what follows aligned");

struct tg_msg_pool {
    block *idle[KEPT];
    size_t n_idle, n_out; /* n_out: blocks with somebody */
    bool released;
    tg_arena scratch;
};

tg_msg_pool *tg_msg_pool_create(void) {
    return tg_alloc(sizeof(tg_msg_pool));
}

static void destroy_if_over(tg_msg_pool *p) {
    if (!p->released || p->n_out) return;
    for (size_t i = 0; i < p->n_idle; i++) tg_free(p->idle[i]);
    tg_arena_fini(&p->scratch);
    tg_free(p);
}

void tg_msg_pool_release(tg_msg_pool **pool) {
    if (!*pool) return;
    (*pool)->released = true;
    destroy_if_over(*pool);
    *pool = NULL;
}

tg_arena *tg_msg_pool_scratch(tg_msg_pool *p) {
    if (!p) return NULL;
    tg_arena_reset(&p->scratch);
    return &p->scratch;
}

static block *take_idle(tg_msg_pool *p, size_t bytes) {
    for (size_t i = p->n_idle; i-- > 0;) {
        block *b = p->idle[i];
        if (b->size < bytes) continue;
        p->idle[i] = p->idle[--p->n_idle];
        return b;
    }
    if (p->n_idle == KEPT) tg_free(p->idle[--p->n_idle]); /* too small: make room for larger ones */
    return NULL;
}

void *tg_msg_alloc(tg_msg_pool *p, size_t bytes) {
    block *b = p ? take_idle(p, bytes) : NULL;
    if (!b) {
        size_t size = bytes;
        if (p && size <= TG_MSG_KEEP_BYTES) /* sizes that later messages will fit into */
            for (size = FIRST_BYTES; size < bytes;) size *= 2;
        b = tg_alloc(sizeof *b + size);
        if (!b) return NULL;
        *b = (block){p, size};
    }
    if (p) p->n_out++;
    return b + 1;
}

void tg_msg_free(void *msg) {
    if (!msg) return;
    block *b = (block *)msg - 1;
    tg_msg_pool *p = b->pool;
    if (!p) {
        tg_free(b);
        return;
    }
    TG_ASSERT(p->n_out > 0);
    p->n_out--;
    if (p->n_idle < KEPT && b->size <= TG_MSG_KEEP_BYTES)
        p->idle[p->n_idle++] = b;
    else
        tg_free(b);
    destroy_if_over(p);
}
