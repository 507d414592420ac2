/* A reward worker for tests, in a thread of its own: judges by length, or goes wrong as told. */
#ifndef TG_TEST_REWARD_WORKER_H
#define TG_TEST_REWARD_WORKER_H

#include <stdbool.h>

typedef enum judge_fault {
    JUDGE_WELL,
    JUDGE_ERROR,      /* every request is answered with Error INTERNAL */
    JUDGE_ITEM_ERROR, /* every text has the status FAILED */
    JUDGE_NAN,
    JUDGE_NEVER, /* heartbeats, but no answer */
    JUDGE_SHORT, /* a result too few */
    JUDGE_TWICE, /* the first text's result twice, the second's never */
    JUDGE_DIE, /* the connection goes in the middle of the first call, without Bye; it comes back judging well */
    JUDGE_BUSY,   /* the first request is refused with OVERLOADED */
    JUDGE_WITHOUT /* it has no function, as it says; every request is answered with NOT_FOUND */
} judge_fault;

typedef struct reward_worker reward_worker;

/* Serves the function "length"; its own account of determinism is as given. */
reward_worker *reward_worker_start(const char *address, bool listen, judge_fault fault,
                                   bool deterministic);
void reward_worker_stop(reward_worker **w);
int reward_worker_requests(const reward_worker *w);
const char *reward_worker_address(const reward_worker *w);

#endif
