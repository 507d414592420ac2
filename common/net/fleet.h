/* The workers of a pool and the slots that live on them, for one event loop. A slot is reset and stepped wherever
 * it lives; when its worker is lost it is opened on another one, its episode put back from the log of its
 * tokens and rewards (Restore: no reward is computed twice), checked by the state digest, and the unanswered
 * call is sent again. The caller does not notice.
 *
 *     tg_fleet_open(&fleet, net, loop, &opts, err);
 *     tg_fleet_add_slot(fleet, &id, err);             // placed on the least loaded worker, now or later
 *     tg_fleet_reset(fleet, &item, false, deadline, err); // one call per slot at a time
 *     tg_fleet_step(fleet, &item, false, deadline, err);
 *     tg_fleet_kick(fleet);                           // everything queued leaves in few messages
 *     // ... on_reset(result), on_step(result): once for every call, in any order ...
 *     tg_fleet_close(&fleet);
 *
 * Every call ends: with a result, or with the code that says why there is none (DEADLINE_EXCEEDED,
 * EPISODE_ABORTED). Callbacks may queue further calls but not close the fleet. Used on the loop's thread, or
 * under a lock that `enter` and `leave` take around everything the loop does (pool.c). */
#ifndef TG_NET_FLEET_H
#define TG_NET_FLEET_H

#include "common/base/status.h"
#include "common/net/link.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct tg_fleet tg_fleet;
struct tg_fleet_figures;

typedef struct tg_fleet_ops {
    /* Results of code OK are borrowed until on_turn, all others for the call. */
    void (*on_reset)(void *arg, const tg_reset_result *r);
    void (*on_step)(void *arg, const tg_step_result *r);
    void (*on_restore)(void *arg, const tg_restore_result *r); /* may be NULL: never asked for */
    void (*on_change)(void *arg); /* workers or open slots; may be NULL */
    void (*on_turn)(void *arg);   /* the results of one message are handed over; may be NULL */
    void (*enter)(void *arg),
        (*leave)(void *arg); /* around everything the loop does; may be NULL */
} tg_fleet_ops;

typedef struct tg_fleet_opts {
    const char *bind;       /* workers connect here, or NULL */
    const char *connect;    /* comma-separated addresses of workers or brokers, or NULL */
    int heartbeat_ms;       /* 0: the link's default */
    uint64_t config_digest; /* refuse workers of another config; 0: take the first worker's */
    bool insecure;          /* see endpoint.h */
    bool rewards;           /* reward workers may join, too */
    const tg_fleet_ops *ops;
    void *arg;
} tg_fleet_opts;

/* What the episode of a slot is doing. */
typedef enum tg_fleet_slot_state {
    TG_FLEET_IDLE,    /* there is none */
    TG_FLEET_RUNNING, /* begun, not ended */
    TG_FLEET_DONE,    /* ended, the next one not begun */
    TG_FLEET_RECOVERING,
    TG_FLEET_STATES
} tg_fleet_slot_state;

typedef struct tg_fleet_stats {
    int workers, reward_workers; /* alive now */
    uint64_t capacity;           /* slots the workers have room for; saturated */
    uint64_t workers_lost, episodes_rebuilt, episodes_aborted;
    uint64_t messages_sent, messages_received;
    uint64_t replies_dropped; /* duplicate, late or unasked */
    uint64_t resent;          /* requests sent again for want of an answer */
    uint64_t steps;           /* tokens acknowledged */
    uint64_t episodes;        /* that ended */
    size_t slots, slots_open, calls;
    size_t in_state[TG_FLEET_STATES]; /* slots */
    uint64_t deaths[TG_LOSSES];       /* workers_lost, by how; NONE: they said Bye */
} tg_fleet_stats;

/* opts is borrowed for the call, except ops. */
tg_status tg_fleet_open(tg_fleet **out, tg_net *net, uv_loop_t *loop, const tg_fleet_opts *opts,
                        tg_error *err) TG_MUST_CHECK;
/* Bye to the workers; calls and asks under way end without their callbacks. The memory is released by the loop's
 * next turns. */
void tg_fleet_close(tg_fleet **fleet, const char *reason);

const char *tg_fleet_address(const tg_fleet *fleet); /* of the first link: where workers connect */
/* Of the first worker; digests of all agree. NULL before one has joined. */
const tg_env_spec *tg_fleet_spec(const tg_fleet *fleet);
void tg_fleet_get_stats(const tg_fleet *fleet, tg_fleet_stats *out);
/* Adds those of its links. */
void tg_fleet_add_link_stats(const tg_fleet *fleet, tg_link_stats *sum);
/* Where times are shown from now on (fleet_status.h); NULL: nowhere. Borrowed. */
void tg_fleet_show(tg_fleet *fleet, struct tg_fleet_figures *figures);
/* Why the last worker was refused; "" when none was. */
const char *tg_fleet_refused(const tg_fleet *fleet);

/* ---- slots ---------------------------------------------------------------------------------- */

/* A number that was not used before, as far as 65,536 uses of its place go back: a worker that missed the end of an older
 * slot must not take it for this one. The place is the smallest free one, from 0. */
enum { TG_FLEET_PLACES = 65536 };
#define TG_FLEET_PLACE(id) ((id) % TG_FLEET_PLACES)
tg_status tg_fleet_add_slot(tg_fleet *fleet, uint32_t *id, tg_error *err) TG_MUST_CHECK;
/* A call under way is forgotten. */
void tg_fleet_remove_slot(tg_fleet *fleet, uint32_t id);
bool tg_fleet_slot_is_open(const tg_fleet *fleet, uint32_t id); /* on a worker */
/* The tokens acknowledged since the last reset, with their rewards; borrowed until the slot's next call ends. */
typedef struct tg_fleet_log_view {
    const int32_t *tokens;
    const double *rewards; /* NaN: it has none */
    size_t n;
    uint64_t digest;
    tg_reset_item reset; /* with the sample that was drawn */
    bool live;           /* the episode has not ended */
    bool aborted;        /* it cannot be continued; until the next reset */
} tg_fleet_log_view;
tg_fleet_log_view tg_fleet_slot_log(const tg_fleet *fleet, uint32_t id);
bool tg_fleet_slot_is_busy(const tg_fleet *fleet, uint32_t id); /* a call is under way */

/* Queue one call; items are copied; want_text: with the text of prompt or context, as the messages say. deadline_ms is a time of tg_clock_ms. TG_USAGE: no such slot, or it has a
 * call under way, or an empty or too long run of tokens. */
tg_status tg_fleet_reset(tg_fleet *fleet, const tg_reset_item *item, bool want_text,
                         uint64_t deadline_ms, tg_error *err) TG_MUST_CHECK;
tg_status tg_fleet_step(tg_fleet *fleet, const tg_step_item *item, bool want_text,
                        uint64_t deadline_ms, tg_error *err) TG_MUST_CHECK;
tg_status tg_fleet_restore(tg_fleet *fleet, const tg_restore_item *item, uint64_t deadline_ms,
                           tg_error *err) TG_MUST_CHECK;
/* Ends a call with FAILED_STATE; its callback is called before this returns. No call: nothing. */
void tg_fleet_cancel(tg_fleet *fleet, uint32_t id);
/* Sends what was queued since the loop's last turn; on the loop's thread. */
void tg_fleet_kick(tg_fleet *fleet);

/* ---- questions that any worker can answer ---------------------------------------------------- */

/* Samples, metrics, scores. They change nothing in a worker: one that dies or has no room has its question asked of
 * another (a score of a function that is not deterministic only while it was not sent). */
typedef struct tg_fleet_ask {
    tg_msg_type type, reply_type;
    const void *request; /* borrowed until on_done */
    uint64_t deadline_ms;
    /* reply is owned by the receiver (tg_msg_free); NULL unless status is TG_OK. The ask may be freed here. */
    void (*on_done)(struct tg_fleet_ask *ask);
    void *user;
    tg_status status;
    tg_code code; /* of a refusal by the worker, else the nearest code */
    tg_error error;
    void *reply;
    /* private */
    struct tg_fleet_ask *next;
    uint64_t seq, retry_ms;
    struct tg_fleet_worker *worker;
} tg_fleet_ask;

void tg_fleet_ask_begin(tg_fleet *fleet, tg_fleet_ask *ask);
void tg_fleet_ask_cancel(tg_fleet *fleet, tg_fleet_ask *ask); /* on_done is not called */

#endif
