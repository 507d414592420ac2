/* What the files of the pool share: pool.c (opening, the thread), pool_calls.c (slots, calls), pool_events.c (what has
 * finished) and pool_asks.c (blocking questions). The fleet runs on an own thread; the mutex is held by whoever touches it. */
#ifndef TG_NET_POOL_INTERNAL_H
#define TG_NET_POOL_INTERNAL_H

#include "common/base/buf.h"
#include "common/net/fleet.h"
#include "common/net/pool.h"

#include <pthread.h>
#include <uv.h>

/* A finished call on its way to the caller, with copies of what the event points to. Nodes are used again. */
typedef struct tg_pool_node {
    struct tg_pool_node *next;
    tg_pool_event event;
    tg_buf bytes;
} tg_pool_node;

struct tg_pool {
    tg_pool_opts opts;
    tg_net *net;
    uv_loop_t loop;
    uv_async_t wake;
    pthread_t thread;
    bool loop_ready, thread_started;

    /* shared */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop, news; /* news: events since the last turn */
    tg_fleet *fleet;
    uint32_t want_slots, n_slots;
    uint32_t *ids;          /* (TG_FLEET_PLACES) the fleet's numbers; the caller's are the places */
    tg_status slots_status; /* of the last change of n_slots */
    tg_error slots_error;
    tg_pool_node *events, *last_event, *shown, *spare;
    size_t n_events, n_nodes; /* nodes: in all lists together */
};

/* pool_events.c; mutex held */
void tg_pool_post_reset(void *pool, const tg_reset_result *r);
void tg_pool_post_step(void *pool, const tg_step_result *r);
void tg_pool_events_free(tg_pool *p);

void tg_pool_lock(const tg_pool *p);
void tg_pool_unlock(const tg_pool *p);
/* Mutex held. Waits for a change; false when the (monotonic) time is over. */
bool tg_pool_wait_until(tg_pool *p, uint64_t deadline_ms);
tg_fleet_stats tg_pool_stats_of(const tg_pool *p);

#endif
