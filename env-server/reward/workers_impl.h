/* What the files of the reward workers' client share.
 *
 *   workers.c         opening, the loop and its thread
 *   workers_calls.c   calls and their answers
 *   workers_judges.c  who is connected, and what they send
 *
 * Calls live on the stack of who waits for them. Lists, and calls in them, are touched under the lock only; sessions and
 * links on the loop's thread only. A call leaves its list before its caller may go on. */
#ifndef TG_ENV_REWARD_WORKERS_IMPL_H
#define TG_ENV_REWARD_WORKERS_IMPL_H

#include "common/net/link.h"
#include "env-server/reward/workers.h"

#include <pthread.h>

enum { TG_REWARD_LINKS = 64 };

/* A reward worker, or a broker with some behind it. Loop thread only. */
typedef struct tg_reward_judge {
    struct tg_reward_judge *next;
    tg_session *session;
    size_t in_flight; /* calls of ours */
    bool has_fn;      /* it says so, or was dialled and may have workers behind it */
    bool sure;        /* it says so */
    bool deterministic;
} tg_reward_judge;

typedef struct tg_reward_waiting {
    struct tg_reward_waiting *next;
    const tg_score_call *call;
    tg_score_result *results;
    tg_score_fault *fault;
    tg_error *err;
    tg_status status;
    bool sent, done;
    uint64_t seq, session;  /* where it was sent */
    bool repeatable;        /* sent to a function that says it is deterministic */
    uint64_t not_before_ms; /* refused for now: when to ask again */
    pthread_cond_t wake;
} tg_reward_waiting;

struct tg_reward_workers {
    char *fn, *bind_address;
    bool deterministic;
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t timer; /* runs while a refused call waits */
    pthread_t thread;
    tg_net *net;
    tg_link *links[TG_REWARD_LINKS];
    size_t n_links;
    tg_reward_judge *judges;
    uint64_t next_seq;
    pthread_mutex_t lock;
    tg_reward_waiting *calls; /* under the lock */
    bool stopping, closing;   /* likewise */
};

/* workers_calls.c */
/* Sends what waits for a worker. Loop thread. */
void tg_reward_workers_dispatch(tg_reward_workers *j);
/* A reply or an Error of a session; k: who it is, or NULL. Borrows msg. */
void tg_reward_workers_take_answer(tg_reward_workers *j, const tg_reward_judge *k, uint64_t session,
                                   const tg_frame *head, const void *msg);
/* The session is gone: its calls go to another worker where that is harmless, else they fail. */
void tg_reward_workers_lose(tg_reward_workers *j, uint64_t session, const char *reason);
void tg_reward_workers_fail_all(tg_reward_workers *j);

/* workers_judges.c */
extern const tg_link_ops tg_reward_workers_link_ops;
/* Who the next call goes to; NULL: nobody has the function. Loop thread. */
tg_reward_judge *tg_reward_workers_choose(tg_reward_workers *j);

#endif
