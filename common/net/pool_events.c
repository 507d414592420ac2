/* Finished calls on their way to the caller. A node for its event is set aside when a call begins, so no event can be
 * lost for want of memory; what the event points to is copied, and where that fails the event says so instead. Mutex held. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/net/pool_internal.h"
#include "common/net/result.h"

static tg_pool_node *take_node(tg_pool *p) {
    tg_pool_node *n = p->spare;
    TG_ASSERT(n); /* set aside when the slots were opened */
    p->spare = n->next;
    return n;
}

static void append(tg_pool *p, tg_pool_node *n) {
    n->next = NULL;
    if (p->last_event) {
        p->last_event->next = n;
    } else {
        p->events = n;
    }
    p->last_event = n;
    p->n_events++;
    p->news = true;
}

void tg_pool_post_reset(void *pool, const tg_reset_result *r) {
    tg_pool *p = pool;
    tg_pool_node *n = take_node(p);
    n->event.kind = TG_POOL_RESET;
    (void)tg_reset_result_copy(&n->event.reset, &n->bytes, r); /* or a result that says it failed */
    n->event.reset.slot = TG_FLEET_PLACE(r->slot);
    append(p, n);
}

void tg_pool_post_step(void *pool, const tg_step_result *r) {
    tg_pool *p = pool;
    tg_pool_node *n = take_node(p);
    n->event.kind = TG_POOL_STEP;
    (void)tg_step_result_copy(&n->event.step, &n->bytes, r);
    n->event.step.slot = TG_FLEET_PLACE(r->slot);
    append(p, n);
}

static void free_list(tg_pool_node *n) {
    while (n) {
        tg_pool_node *next = n->next;
        tg_buf_fini(&n->bytes);
        tg_free(n);
        n = next;
    }
}

void tg_pool_events_free(tg_pool *p) {
    free_list(p->events);
    free_list(p->shown);
    free_list(p->spare);
}
