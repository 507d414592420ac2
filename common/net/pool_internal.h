/* What the files of the pool share. One mutex guards everything below "shared"; the I/O thread takes it in its callbacks,
 * the caller in its calls. Links and sessions are touched by the I/O thread only.
 *
 *   pool.c        the caller's side: opening, queueing calls, waiting
 *   pool_io.c     the I/O thread: loop, links, workers that come and go, deadlines
 *   pool_slots.c  a slot: where it lives, rebuilding, what to send next, what a reply means
 *   pool_asks.c   questions to any worker */
#ifndef TG_NET_POOL_INTERNAL_H
#define TG_NET_POOL_INTERNAL_H

#include "common/net/link.h"
#include "common/net/pool.h"

#include <pthread.h>
#include <uv.h>

enum { TG_POOL_TICK_MS = 20, TG_POOL_RETRY_MS = 50, TG_POOL_WHY = 256 };

typedef struct tg_pool_worker {
    struct tg_pool_worker *next;
    tg_session *session;
    uint32_t load, capacity; /* slots */
    bool draining;
} tg_pool_worker;

typedef enum tg_call_kind { TG_CALL_NONE, TG_CALL_RESET, TG_CALL_STEP } tg_call_kind;

typedef struct tg_pool_call {
    tg_call_kind kind;
    bool sent;
    uint64_t deadline_ms;
    tg_reset_item reset;
    uint64_t episode; /* of the step */
    uint32_t step;
    int32_t *tokens; /* owned; room is kept for the next call */
    size_t n_tokens, cap_tokens;
} tg_pool_call;

/* UNPLACED -> OPENING -> OPEN; a lost episode passes OPEN -> RE_RESET -> RE_STEP -> OPEN. */
typedef enum tg_slot_stage {
    TG_STAGE_UNPLACED,
    TG_STAGE_OPENING,
    TG_STAGE_OPEN,
    TG_STAGE_RE_RESET,
    TG_STAGE_RE_STEP
} tg_slot_stage;

/* What the next flush sends for a slot. */
typedef enum tg_slot_send {
    TG_SEND_NOTHING,
    TG_SEND_OPEN,
    TG_SEND_RESET,
    TG_SEND_STEP
} tg_slot_send;

typedef struct tg_pool_slot {
    uint32_t id;
    tg_pool_worker *worker; /* NULL: unplaced */
    tg_slot_stage stage;
    tg_slot_send send;
    uint64_t seq;      /* of the message that carried the last request */
    uint64_t retry_ms; /* nothing is sent before */
    tg_pool_call call;
    /* The episode, as far as a worker has acknowledged it. */
    bool live;    /* reset done, not ended */
    bool rebuild; /* live, but its worker is gone */
    bool aborted; /* cannot be rebuilt; until the next reset */
    char why[TG_POOL_WHY];
    tg_reset_item reset;
    uint64_t sample, reset_digest, digest;
    int32_t *log; /* all tokens applied */
    size_t n_log, cap_log;
} tg_pool_slot;

/* A decoded reply shared by the events that borrow from it. */
typedef struct tg_pool_reply {
    int refs;
    void *msg;
} tg_pool_reply;

typedef struct tg_pool_node {
    struct tg_pool_node *next;
    tg_pool_event event;
    tg_pool_reply *reply; /* NULL: the event's strings are in text */
    char text[TG_POOL_WHY];
} tg_pool_node;

/* One blocking question; lives on the caller's stack. */
typedef struct tg_pool_ask {
    struct tg_pool_ask *next;
    tg_msg_type type, reply_type;
    const void *request;
    uint64_t seq, deadline_ms, retry_ms;
    tg_pool_worker *worker; /* asked; NULL: not yet */
    bool done;
    tg_status status;
    tg_error error;
    void *reply;
} tg_pool_ask;

struct tg_pool {
    tg_pool_opts opts;
    tg_net *net;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    pthread_t thread;
    bool loop_ready, thread_started;
    tg_link **links;
    size_t n_links;

    /* shared */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    tg_pool_worker *workers;
    tg_hello *first; /* owned copy of the first worker's spec, kept for life */
    char refused[TG_POOL_WHY];
    tg_pool_slot *slots;
    size_t n_slots;
    size_t calls; /* under way */
    uint64_t seq;
    tg_pool_node *events, *last_event, *shown;
    size_t n_events;
    tg_pool_ask *asks;
    struct tg_pool_outgoing *outgoing; /* owned scratch of tg_pool_flush */
    tg_pool_stats stats;
};

/* All below: mutex held, I/O thread, unless said otherwise. */

/* pool_slots.c */
void tg_pool_pump(tg_pool *p); /* every slot takes the step it can take; sends */
void tg_pool_slot_lost(tg_pool *p, tg_pool_slot *s);
void tg_pool_slots_opened(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_slot_list *list);
/* These take over msg. */
void tg_pool_reset_replied(tg_pool *p, tg_pool_worker *w, void *msg);
void tg_pool_step_replied(tg_pool *p, tg_pool_worker *w, void *msg);
/* An Error that answers the message with this seq; true if slots were waiting for it. */
bool tg_pool_slots_failed(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_wire_error *e);
void tg_pool_check_deadlines(tg_pool *p, uint64_t now);
void tg_pool_slot_fini(tg_pool_slot *s); /* any thread */

/* pool_send.c */
void tg_pool_flush(tg_pool *p);

/* pool_asks.c */
void tg_pool_pump_asks(tg_pool *p);
bool tg_pool_ask_replied(tg_pool *p, tg_pool_worker *w, const tg_frame *head,
                         void *msg); /* true: msg taken */
bool tg_pool_ask_failed(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_wire_error *e);
void tg_pool_asks_lost(tg_pool *p, tg_pool_worker *w);
tg_status tg_pool_ask_run(tg_pool *p, tg_pool_ask *ask,
                          tg_error *err); /* caller; takes the mutex itself */

/* pool_events.c; any thread that holds the mutex */
void tg_pool_post(tg_pool *p, const tg_pool_event *event, tg_pool_reply *reply);
void tg_pool_post_failure(tg_pool *p, const tg_pool_slot *s, tg_code code, const char *why);
void tg_pool_reply_unref(tg_pool_reply *r);
void tg_pool_node_free(tg_pool_node *n);

/* pool_io.c */
tg_status tg_pool_io_open(tg_pool *p,
                          tg_error *err) TG_MUST_CHECK; /* caller, before the thread runs */
void *tg_pool_io_main(void *pool);
bool tg_code_is_retryable(tg_code code);

#endif
