/* Reward workers over the wire protocol: links to them, and calls that go to the least loaded one that has the function.
 *
 *     tg_reward_workers_open(&workers, &opts, err);
 *     tg_reward_workers_call(workers, &call, results, &fault, err);      // any thread; waits
 *     tg_reward_workers_close(&workers);
 *
 * An own thread runs the loop and the sockets. Workers may come and go: a call without a worker waits for one until its
 * deadline; one whose worker is lost goes to another if that is harmless, else it fails. */
#ifndef TG_ENV_REWARD_WORKERS_H
#define TG_ENV_REWARD_WORKERS_H

#include "env-server/reward/score.h"

struct tg_security;
typedef struct tg_reward_workers tg_reward_workers;

typedef struct tg_reward_workers_opts {
    const char *fn;             /* name of the function */
    const char *const *connect; /* n_connect addresses of reward workers or brokers to dial */
    size_t n_connect;
    const char *bind; /* where reward workers dial in; NULL: nowhere */
    int heartbeat_ms; /* 0: the default */
    bool deterministic;
    bool insecure;
    struct tg_security *security; /* borrowed; NULL: no keys */
} tg_reward_workers_opts;

/* opts is borrowed for the call only. Does not wait for workers. */
tg_status tg_reward_workers_open(tg_reward_workers **out, const tg_reward_workers_opts *opts,
                                 tg_error *err) TG_MUST_CHECK;
void tg_reward_workers_close(tg_reward_workers **workers);
/* As the call of tg_score_ops. */
tg_status tg_reward_workers_call(tg_reward_workers *workers, const tg_score_call *call,
                                 tg_score_result *results, tg_score_fault *fault,
                                 tg_error *err) TG_MUST_CHECK;
/* Every call under way, and every later one, fails at once. */
void tg_reward_workers_interrupt(tg_reward_workers *workers);
const char *
tg_reward_workers_address(const tg_reward_workers *workers); /* bound; "" when none is */

#endif
