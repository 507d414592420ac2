/* What the two sides of a scorer share: who asks (score.c) and the lanes that call (score_lane.c). */
#ifndef TG_ENV_SCORE_IMPL_H
#define TG_ENV_SCORE_IMPL_H

#include "env-server/reward/score.h"
#include "env-server/reward/score_cache.h"

#include <pthread.h>

/* Who waits for requests; lives on the asker's stack. */
typedef struct tg_score_waiter {
    pthread_cond_t wake;
    size_t pending;
} tg_score_waiter;

/* One text, or one group of them, on its way. Its memory belongs to the asker and the queue together. */
typedef struct tg_score_ticket {
    struct tg_score_ticket *next; /* in the queue, or of one call */
    int refs;
    bool finished;
    tg_score_waiter *waiter; /* NULL: nobody waits any more */
    uint64_t queued_ns, deadline_ns;
    bool keyed;
    uint64_t key[2];
    tg_arena arena;
    tg_score_text *texts;
    tg_score_result *results;
    size_t n;
} tg_score_ticket;

typedef struct tg_score_lane {
    struct tg_scorer *scorer;
    int index;
    pthread_t thread;
    tg_arena arena; /* of the call under way */
    uint64_t draws; /* of the jitter */
} tg_score_lane;

struct tg_scorer {
    tg_score_opts opts;
    const tg_score_ops *ops;
    void *backend;
    pthread_mutex_t lock;
    pthread_cond_t work; /* something is queued, or the end */
    /* Under the lock. */
    tg_score_ticket *first, *last;
    size_t n_queued; /* texts */
    bool stopping;
    tg_breaker breaker;
    tg_score_cache *cache; /* NULL: none */
    tg_score_stats stats;
    tg_score_lane lanes[TG_SCORE_LANES];
    int n_lanes;
};

/* Lock held. */
void tg_score_ticket_unref(tg_score_ticket *r);
/* Fills every result of the request with a status and a reason. */
void tg_score_ticket_fail(tg_score_ticket *r, tg_reward_status status, const char *why);
/* Lock held: the results are there; the asker is woken, and the queue's hold on the request ends. */
void tg_score_ticket_finish(tg_scorer *s, tg_score_ticket *r);

/* Waits on a condition until a monotonic time. False: it is over. */
bool tg_score_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns);
int tg_score_cond_init(pthread_cond_t *cond); /* on the monotonic clock */

void *tg_score_lane_run(void *lane); /* the thread of a lane */

#endif
