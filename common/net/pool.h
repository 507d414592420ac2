/* The client's side of a pool of environment workers: slots that can be reset and stepped, wherever
 * they live.
 *
 *     tg_pool *pool;
 *     tg_pool_open(&pool, &opts, err);                 // binds or connects; waits for min_workers
 * until the deadline tg_pool_open_slots(pool, n_envs, err); tg_pool_reset(pool, resets, n, err); //
 * queues; returns at once tg_pool_step(pool, steps, n, err);               // queues; a slot has at
 * most one call under way tg_pool_wait(pool, &event, timeout_ms, err);     // next finished call,
 * in any order tg_pool_close(&pool);
 *
 * An own thread runs the libuv loop and the ZeroMQ sockets, so heartbeats are answered while the
 * caller computes. The caller uses a pool from one thread. Every call ends: with a result, a typed
 * error, or TG_TIMEOUT at its deadline.
 *
 * Lost workers: slots are sticky to a worker; when it dies (local: its process ends; remote:
 * silence beyond the limit) its slots are opened on another worker, their episodes rebuilt by
 * replaying Reset and the token log, checked by the state digest, and the unanswered call is sent
 * again. The caller does not notice, except in tg_pool_stats. With no worker left, calls wait for
 * one until their deadline. */
#ifndef TG_NET_POOL_H
#define TG_NET_POOL_H

#include "common/base/status.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_pool tg_pool;

typedef struct tg_pool_opts {
    const char *bind;       /* workers connect here (ipc://… or tcp://…), or NULL */
    const char *connect;    /* comma-separated workers (or broker) to connect to, or NULL */
    int min_workers;        /* wait for this many before tg_pool_open returns; default 1 */
    int open_timeout_ms;    /* default 60000 */
    int call_timeout_ms;    /* default 60000: reset, step, score */
    int heartbeat_ms;       /* default 1000 */
    uint64_t config_digest; /* refuse workers of another config; 0: take the first worker's */
} tg_pool_opts;

typedef struct tg_pool_event {
    enum { TG_POOL_RESET, TG_POOL_STEP } kind;
    tg_reset_result reset; /* borrowed until the next tg_pool_wait */
    tg_step_result step;
} tg_pool_event;

typedef struct tg_pool_stats {
    int workers; /* alive now */
    uint64_t workers_lost;
    uint64_t episodes_rebuilt;
    uint64_t messages_sent, messages_received;
} tg_pool_stats;

tg_status tg_pool_open(tg_pool **out, const tg_pool_opts *opts, tg_error *err) TG_MUST_CHECK;
void tg_pool_close(tg_pool **pool); /* says Bye; never blocks longer than 2 s */

const tg_env_spec *tg_pool_spec(const tg_pool *pool); /* of the workers; all agree */
void tg_pool_get_stats(tg_pool *pool, tg_pool_stats *out);

tg_status tg_pool_open_slots(tg_pool *pool, int n, tg_error *err)
    TG_MUST_CHECK; /* slots 0 .. n-1, spread over the workers */
tg_status tg_pool_reset(tg_pool *pool, const tg_reset_item *items, size_t n,
                        tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_step(tg_pool *pool, const tg_step_item *items, size_t n,
                       tg_error *err) TG_MUST_CHECK;
/* TG_TIMEOUT: nothing finished in time (timeout_ms 0: only look). TG_UNAVAILABLE: a call failed for
 * good; err says why. */
tg_status tg_pool_wait(tg_pool *pool, tg_pool_event *event, int timeout_ms,
                       tg_error *err) TG_MUST_CHECK;
int tg_pool_pending(const tg_pool *pool); /* calls not yet returned by tg_pool_wait */

/* Blocking calls to any one worker (sent again to another if it dies). Replies are owned:
 * tg_msg_free. */
tg_status tg_pool_samples(tg_pool *pool, tg_split split, uint64_t first, uint32_t n,
                          tg_samples **out, tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_metric(tg_pool *pool, const tg_metric_request *req, tg_metric_reply **out,
                         int timeout_ms, tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_score(tg_pool *pool, const tg_score_request *req, tg_score_reply **out,
                        int timeout_ms, tg_error *err) TG_MUST_CHECK;

#endif
