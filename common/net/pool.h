/* The client's side of a pool of environment workers: slots that can be reset and stepped, wherever
 * they live.
 *
 *     tg_pool_open(&pool, &opts, err);              // waits for min_workers
 *     tg_pool_open_slots(pool, n_envs, err);
 *     tg_pool_reset(pool, resets, n, err);          // queues; returns at once
 *     tg_pool_step(pool, steps, n, err);            // queues; one call per slot at a time
 *     tg_pool_wait(pool, &event, timeout_ms, err);  // next finished call, in any order
 *     tg_pool_close(&pool);
 *
 * An own thread runs the libuv loop and the ZeroMQ sockets, so heartbeats are answered while the
 * caller computes. The caller uses a pool from one thread. Every reset and step ends as one event:
 * with a result, or with the code that says why there is none (DEADLINE_EXCEEDED, EPISODE_ABORTED).
 * After a deadline the same step may be asked for again.
 *
 * Lost workers: slots are sticky to a worker; when it is gone (its connection ends; or silence for
 * three heartbeats and, from another machine, 30 s) its slots are opened on another worker, their
 * episodes rebuilt by replaying Reset and the token log, checked by the state digest, and the
 * unanswered call is sent again. The caller does not notice, except in tg_pool_stats. With no worker
 * left, calls wait for one until their deadline. An episode that cannot be rebuilt (another digest,
 * or an environment that is not deterministic) ends with EPISODE_ABORTED, never with a made-up
 * result. The order of events depends on timing; nothing else does. */
#ifndef TG_NET_POOL_H
#define TG_NET_POOL_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/net/security.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_pool tg_pool;
struct tg_fleet_stats;   /* fleet.h */
struct tg_fleet_figures; /* fleet_status.h */
struct tg_net_figures;

typedef struct tg_pool_opts {
    const char *bind;       /* workers connect here (ipc://… or tcp://…), or NULL */
    const char *connect;    /* comma-separated workers (or broker) to connect to, or NULL */
    int min_workers;        /* wait for this many before tg_pool_open returns; default 1 */
    int open_timeout_ms;    /* default 60000 */
    int call_timeout_ms;    /* default 60000: reset, step, score */
    int heartbeat_ms;       /* default 1000 */
    uint64_t config_digest; /* refuse workers of another config; 0: take the first worker's */
    bool (*stop)(
        const void
            *arg); /* asked while a blocking call waits: TG_INTERRUPTED; NULL: nobody stops it */
    const void *stop_arg;
    bool insecure;         /* bind where other machines can connect, without keys */
    tg_security *security; /* keys; borrowed for the pool's life; NULL: none */
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
    uint64_t replies_dropped; /* duplicate, late or unasked */
} tg_pool_stats;

/* opts is borrowed for the call only. TG_UNAVAILABLE: too few workers joined in time. */
tg_status tg_pool_open(tg_pool **out, const tg_pool_opts *opts, tg_error *err) TG_MUST_CHECK;
void tg_pool_close(tg_pool **pool); /* says Bye; never blocks longer than 2 s */

const tg_env_spec *
tg_pool_spec(const tg_pool *pool); /* of the first worker; digests of all agree */
void tg_pool_get_stats(tg_pool *pool, tg_pool_stats *out);
/* For those who watch, from any thread: all figures of its workers, and members of /status (fleet_status.h). */
void tg_pool_watch(tg_pool *pool, struct tg_fleet_stats *stats, tg_buf *json);
/* Where times are shown from now on; NULL: nowhere. Borrowed. */
void tg_pool_show(tg_pool *pool, struct tg_fleet_figures *figures);
/* Sets what /metrics shows of its workers and connections. */
void tg_pool_collect(tg_pool *pool, struct tg_fleet_figures *fleet, struct tg_net_figures *net);

/* Slots 0 .. n-1, spread over the workers; may be called again, with another n, while no call is
 * under way. Returns when all are open; TG_UNAVAILABLE: the workers gave no room for them within
 * call_timeout_ms. */
tg_status tg_pool_open_slots(tg_pool *pool, int n, tg_error *err) TG_MUST_CHECK;
/* Items are copied. TG_USAGE: no such slot, a slot with a call under way, an empty or too long run of
 * tokens; then nothing was queued. */
tg_status tg_pool_reset(tg_pool *pool, const tg_reset_item *items, size_t n,
                        tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_step(tg_pool *pool, const tg_step_item *items, size_t n,
                       tg_error *err) TG_MUST_CHECK;
/* TG_TIMEOUT: nothing finished in time (timeout_ms 0: only look), or nothing is under way. */
tg_status tg_pool_wait(tg_pool *pool, tg_pool_event *event, int timeout_ms,
                       tg_error *err) TG_MUST_CHECK;
int tg_pool_pending(const tg_pool *pool); /* calls not yet returned by tg_pool_wait */

/* Blocking calls to any one worker (sent again to another if it dies). Replies are owned:
 * tg_msg_free; NULL on failure. timeout_ms 0: call_timeout_ms. TG_INTERRUPTED: opts.stop said so; a worker that is at it goes on, and its
 * reply is dropped. */
tg_status tg_pool_samples(tg_pool *pool, tg_split split, uint64_t first, uint32_t n,
                          tg_samples **out, tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_metric(tg_pool *pool, const tg_metric_request *req, tg_metric_reply **out,
                         int timeout_ms, tg_error *err) TG_MUST_CHECK;
tg_status tg_pool_score(tg_pool *pool, const tg_score_request *req, tg_score_reply **out,
                        int timeout_ms, tg_error *err) TG_MUST_CHECK;

#endif
