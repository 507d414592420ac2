/* What the files of the fleet share.
 *
 *   fleet.c          opening and closing, the clock, workers that come and go, messages
 *   fleet_slots.c    a slot: where it lives, rebuilding
 *   fleet_replies.c  what a reply means for its slot, and none
 *   fleet_calls.c    what the owner asks of a slot
 *   fleet_send.c     what the slots want to send, gathered into few messages for each worker
 *   fleet_asks.c     questions to any worker
 *   fleet_status.c   what those who watch are told
 *
 * A slot stands in at most one queue: of slots without a worker, of slots that wait for a time, or of a worker's
 * slots with something to send. So nothing walks over all slots while calls are answered. */
#ifndef TG_NET_FLEET_IMPL_H
#define TG_NET_FLEET_IMPL_H

#include "common/net/fleet_status.h"

enum {
    TG_FLEET_TICK_MS = 50,
    TG_FLEET_RETRY_MS = 50, /* doubling to RETRY_MAX */
    TG_FLEET_RETRY_MAX_MS = 1600,
    TG_FLEET_FULL_MS = 500,
    TG_FLEET_RESEND_MS = 2000, /* without an answer, the same request is sent again */
    TG_FLEET_WHY = 256,
    TG_FLEET_FLIGHTS = 1024 /* messages whose times are remembered; a power of 2 */
};

typedef struct tg_fleet_slot tg_fleet_slot;

/* A list of slots through their `next` and `prev`. */
typedef struct tg_slot_queue {
    tg_fleet_slot *first, *last;
} tg_slot_queue;

/* What the next flush sends for a slot. */
typedef enum tg_slot_send {
    TG_SEND_NOTHING,
    TG_SEND_OPEN,
    TG_SEND_RESTORE,
    TG_SEND_RESET,
    TG_SEND_STEP,
    TG_SEND_KINDS
} tg_slot_send;

typedef struct tg_fleet_worker {
    struct tg_fleet_worker *next;
    tg_session *session;
    uint32_t load, capacity; /* slots */
    uint64_t full_until_ms;  /* it refused a slot: others may have taken its room, for a while */
    uint32_t max_batch;      /* items of one message that it takes */
    size_t max_tokens;       /* of one message, before the last item */
    bool draining, detached;
    bool scores;                  /* a reward worker: takes no slots */
    uint32_t asked;               /* questions under way */
    uint64_t *flights;            /* (credits) numbers of the messages not yet answered; owned */
    uint32_t unanswered, credits; /* of them, and at most; credits 0: no bound, none kept */
    tg_fleet_slot *slots;         /* that live here, through `mate` */
    tg_slot_queue sending[TG_SEND_KINDS];
} tg_fleet_worker;

typedef enum tg_call_kind {
    TG_CALL_NONE,
    TG_CALL_RESET,
    TG_CALL_STEP,
    TG_CALL_RESTORE
} tg_call_kind;

typedef struct tg_fleet_call {
    tg_call_kind kind;
    bool sent, want_text;
    uint64_t first_seq; /* messages that carried it have this number or a later one */
    uint64_t deadline_ms;
    tg_reset_item reset;
    uint64_t episode; /* of the step */
    uint32_t step;
    int32_t *tokens; /* owned; room is kept for the next call */
    size_t n_tokens, cap_tokens;
} tg_fleet_call;

/* UNPLACED -> OPENING -> OPEN; a lost episode passes OPEN -> RESTORING -> OPEN. */
typedef enum tg_slot_stage {
    TG_STAGE_UNPLACED,
    TG_STAGE_OPENING,
    TG_STAGE_OPEN,
    TG_STAGE_RESTORING
} tg_slot_stage;

struct tg_fleet_slot {
    uint32_t id;
    tg_fleet_worker *worker; /* NULL: unplaced */
    tg_fleet_slot *mate, *mate_before;
    tg_slot_queue *queue; /* the one it stands in, or NULL */
    tg_fleet_slot *next, *prev;
    tg_slot_stage stage;
    tg_slot_send send;
    bool waits;        /* a request is on its way */
    uint64_t seq;      /* of the message that carried the last request */
    uint64_t sent_ms;  /* when it was sent */
    uint64_t retry_ms; /* in the queue of those that wait */
    uint32_t tries;    /* refusals of the call under way */
    tg_fleet_call call;
    /* The episode, as far as a worker has acknowledged it. */
    bool live;                   /* reset done, not ended */
    bool ended;                  /* and not reset since */
    bool rebuild;                /* live, but its worker is gone */
    bool aborted;                /* cannot be rebuilt; until the next reset */
    tg_fleet_slot_state counted; /* as the statistics have it */
    uint64_t lost_ns;            /* when rebuild was set */
    char why[TG_FLEET_WHY];
    tg_reset_item reset;
    uint64_t reset_digest, digest;
    int32_t *log;    /* all tokens applied */
    double *rewards; /* of each; NaN: it has none */
    size_t n_log, cap_log;
};

/* A message to a worker. */
typedef struct tg_fleet_flight {
    uint64_t seq, sent_ns;
    tg_msg_type type;
} tg_fleet_flight;

struct tg_fleet {
    tg_fleet_opts opts;
    uv_loop_t *loop;
    tg_net *net;
    uv_timer_t tick;
    bool closed;
    tg_link **links;
    size_t n_links;
    tg_fleet_worker *workers;
    tg_hello *first; /* owned copy of the first worker's spec, kept for life */
    char refused[TG_FLEET_WHY];
    tg_fleet_slot **slots; /* by place; NULL: free */
    uint16_t *uses;        /* of each place, before */
    size_t n_slots, cap_slots, first_free;
    tg_slot_queue unplaced, later;
    uint64_t next_deadline; /* no call ends before */
    uint64_t next_resend;
    uint64_t seq;
    tg_fleet_ask *asks;
    struct tg_fleet_outgoing *outgoing; /* owned scratch of tg_fleet_flush */
    tg_fleet_stats stats;
    tg_answers answers;                        /* of the workers */
    tg_fleet_flight flights[TG_FLEET_FLIGHTS]; /* by seq: the newest of each remainder */
    tg_fleet_figures *figures;                 /* borrowed, or NULL */
};

/* fleet_slots.c */
void tg_slot_dequeue(tg_fleet_slot *s);
void tg_slot_enqueue(tg_slot_queue *q, tg_fleet_slot *s);
/* The slot takes the step it can take: is placed, rebuilt, or has its call queued for sending. */
void tg_fleet_advance(tg_fleet *f, tg_fleet_slot *s);
void tg_fleet_place_waiting(tg_fleet *f);
void tg_fleet_slot_leave(tg_fleet *f,
                         tg_fleet_slot *s); /* its worker; the episode wants rebuilding */
void tg_fleet_drained(tg_fleet *f, tg_fleet_worker *w); /* moves the slots that wait for nothing */
/* The connection to a worker is gone, its session not yet: slots go elsewhere if they can. Then it goes on, with
 * the slots that stayed as they were. */
void tg_fleet_detached(tg_fleet *f, tg_fleet_worker *w);
void tg_fleet_resumed(tg_fleet *f, tg_fleet_worker *w);

/* fleet_replies.c */
void tg_fleet_slots_opened(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_slot_list *list);
void tg_fleet_reset_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                            const tg_reset_reply *batch);
void tg_fleet_step_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                           const tg_step_reply *batch);
void tg_fleet_restore_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                              const tg_restore_reply *batch);
/* An Error that answers the message with this seq; true if slots were waiting for it. */
bool tg_fleet_slots_failed(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_wire_error *e);
void tg_fleet_check_deadlines(tg_fleet *f, uint64_t now);
/* Requests that were not answered for a while are sent again: they are idempotent, and an answer can be lost. */
void tg_fleet_resend(tg_fleet *f, uint64_t now);

/* fleet_calls.c */
tg_fleet_slot *tg_fleet_slot_of(const tg_fleet *f, uint32_t id); /* NULL: none */
void tg_fleet_end_call(tg_fleet *f, tg_fleet_slot *s);           /* before its callback */
void tg_fleet_fail_call(tg_fleet *f, tg_fleet_slot *s, tg_code code, const char *why);
bool tg_fleet_log_tokens(tg_fleet_slot *s, const int32_t *tokens, const double *rewards, size_t n);
void tg_fleet_slot_free(tg_fleet_slot *s);

/* fleet_send.c */
void tg_fleet_flush(tg_fleet *f);
tg_status tg_fleet_worker_create(tg_fleet_worker **out, tg_session *session, tg_error *err);
void tg_fleet_worker_free(tg_fleet_worker *w);
/* The last answer to a message is there, or none is waited for any more. */
void tg_fleet_answered(tg_fleet_worker *w, uint64_t seq);

/* fleet_asks.c */
void tg_fleet_pump_asks(tg_fleet *f);
bool tg_fleet_ask_replied(tg_fleet *f, tg_fleet_worker *w, const tg_frame *head,
                          void *msg); /* true: msg taken */
bool tg_fleet_ask_failed(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_wire_error *e);
void tg_fleet_asks_lost(tg_fleet *f, tg_fleet_worker *w);

/* fleet_status.c */
/* The slot's episode may have changed its state. */
void tg_fleet_recount(tg_fleet *f, tg_fleet_slot *s);
void tg_fleet_rebuilt(tg_fleet *f, tg_fleet_slot *s); /* its episode is back */
void tg_fleet_sent(tg_fleet *f, tg_msg_type type, uint64_t seq);
void tg_fleet_heard(tg_fleet *f, const tg_frame *head, const void *msg); /* the end of an answer */

bool tg_code_is_retryable(tg_code code);

#endif
