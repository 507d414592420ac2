/* What the files of the broker share.
 *
 *   broker.c     links and ports on the loop; clients come and go
 *   requests.c   which handler a request of a client has
 *   slots.c      handlers: slots opened, closed, told of
 *   episodes.c   handlers: resets, steps, restores
 *   questions.c  what any worker can answer
 *   answers.c    what comes back from the fleet */
#ifndef TG_BROKER_IMPL_H
#define TG_BROKER_IMPL_H

#include "common/net/fleet.h"
#include "common/net/fleet_status.h"
#include "common/net/link.h"
#include "common/net/service.h"
#include "common/net/net_figures.h"
#include "common/net/ops.h"
#include "env-server/broker/broker.h"
#include "env-server/broker/client.h"
#include "proto/limits.h"

/* Answers to one request of one client, gathered while a worker's message is read. */
typedef struct tg_broker_batch {
    tg_broker_request *request;
    tg_msg_type type; /* RESET_REPLY, STEP_REPLY or RESTORE_REPLY */
    size_t n;
    union {
        tg_reset_result resets[TG_LIMIT_BATCH];
        tg_step_result steps[TG_LIMIT_BATCH];
        tg_restore_result restores[TG_LIMIT_BATCH];
    } of;
} tg_broker_batch;

typedef struct tg_broker {
    tg_broker_opts opts;
    tg_service service;
    tg_net *net;
    tg_link *front;
    tg_fleet *fleet;
    tg_env_spec
        spec; /* told to clients: the workers', with their room; env_id NULL before one joined */
    tg_ops *ops;
    tg_net_figures net_figures;
    tg_fleet_figures fleet_figures;
    tg_stat *sessions, *replayed;
    tg_broker_slot *by_place[TG_FLEET_PLACES]; /* the client's slot behind each of the fleet's */
    size_t n_asks, n_clients;
    uint64_t completed;
    tg_broker_batch *batch;   /* owned */
    tg_broker_request *spare; /* owned */
} tg_broker;

/* requests.c; takes msg. */
void tg_broker_take(tg_broker *b, tg_session *session, const tg_frame *head, void *msg);
/* When a call is over that may take so long; wanted_ms 0: it has no deadline of its own. */
uint64_t tg_broker_deadline(uint32_t wanted_ms, uint32_t otherwise);

/* What a request does; borrows msg. */
typedef void tg_broker_handler(tg_broker *b, tg_session *session, tg_broker_client *c,
                               const tg_frame *head, const void *msg);

/* slots.c */
tg_broker_handler tg_broker_open_slots, tg_broker_close_slots, tg_broker_cancel, tg_broker_snapshot;
void tg_broker_close_slot(tg_broker *b, tg_broker_client *c, tg_broker_slot *s);

/* episodes.c */
tg_broker_handler tg_broker_reset, tg_broker_step, tg_broker_restore;

/* questions.c; takes msg. */
void tg_broker_ask(tg_broker *b, tg_session *session, const tg_frame *head, tg_msg_type reply,
                   uint32_t deadline_ms, void *msg);

/* answers.c */
extern const tg_fleet_ops tg_broker_fleet_ops;
/* One item of a request has its answer, for the slot that the client calls `id`. */
void tg_broker_answer_reset(tg_broker *b, tg_broker_request *q, uint32_t id,
                            const tg_reset_result *r);
void tg_broker_answer_step(tg_broker *b, tg_broker_request *q, uint32_t id,
                           const tg_step_result *r);
void tg_broker_answer_restore(tg_broker *b, tg_broker_request *q, uint32_t id,
                              const tg_restore_result *r);
void tg_broker_flush(tg_broker *b); /* sends what is gathered */
void tg_broker_send(tg_broker *b, uint64_t session, const tg_frame *head, const void *msg);
/* A request of this type is answered. */
void tg_broker_took(tg_broker *b, tg_msg_type type, uint64_t start_ns);
/* NULL: out of memory. */
tg_broker_request *tg_broker_request_begin(tg_broker *b, uint64_t session, uint64_t seq,
                                           size_t items);

/* broker.c */
void tg_broker_workers_changed(tg_broker *b);

#endif
