/* What the files of the server share. */
#ifndef TG_ENV_SERVER_IMPL_H
#define TG_ENV_SERVER_IMPL_H

#include "common/base/arena.h"
#include "common/net/link.h"
#include "common/net/service.h"
#include "env-server/env/env.h"
#include "env-server/server/client.h"
#include "env-server/server/deadlines.h"
#include "env-server/server/figures.h"
#include "env-server/server/jobs.h"
#include "env-server/server/server.h"

typedef struct tg_server {
    const tg_env *env;
    tg_env_spec spec; /* the environment's, with this worker's capacity */
    tg_service service;
    tg_net *net;
    tg_link *link;
    tg_jobs *jobs;
    tg_ops *ops;
    tg_figures figures;
    tg_deadlines deadlines;
    tg_reward_fn *functions; /* what others may name in ScoreRequest.fn; owned */
    size_t n_functions;
    uv_poll_t parent;
    bool parent_watched;
    bool dialled; /* ready only while a session is open */
    size_t n_sessions;
    size_t n_slots;      /* over all clients */
    size_t max_slots;    /* of one client */
    uint64_t batches;    /* numbers the batches, to find a slot named twice in one */
    uint64_t completed;  /* requests answered */
    uint64_t steps;      /* tokens applied */
    uint64_t late;       /* calls that were not done by their deadline */
    uint64_t message_ns; /* when the message at hand came */
    tg_arena scratch;    /* results of the message at hand */
    tg_status failure;   /* why the loop ended, when not by a drain */
    tg_error failure_error;
} tg_server;

/* The dispatch of requests (handlers.c). Takes msg. */
void tg_server_message(tg_server *s, tg_session *session, const tg_frame *head, void *msg);
/* Sends the reply to a request, or an Error when it cannot be sent. */
void tg_server_reply(tg_server *s, tg_session *session, const tg_frame *request, tg_msg_type type,
                     const void *msg);
/* What the slot's episode does may have changed. */
void tg_server_recount(tg_server *s, tg_client_slot *slot);

/* Answers on the job pool: samples, metrics, scores (asks.c). Takes msg. */
void tg_server_ask(tg_server *s, tg_session *session, const tg_frame *head, void *msg);
/* Steps whose rewards are slow (calls.c): the reply follows when all rewards are there. */
void tg_server_step_slow(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                         const tg_step_batch *batch);

/* Gives up the call under way on the slot, which is empty afterwards; its asker gets FAILED_STATE. False: out of
 * memory, nothing changed. No call: true. */
bool tg_server_cancel(tg_server *s, tg_client_slot *slot);

/* Restore, Snapshot and Cancel (restore.c). */
void tg_server_restore(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                       const void *msg);
void tg_server_snapshot(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                        const void *msg);
void tg_server_cancel_slots(tg_server *s, tg_session *session, tg_client *client,
                            const tg_frame *head, const void *msg);

/* Looks the slot up for a batch; NULL with a code and a static message when it cannot be used. */
tg_client_slot *tg_server_slot(tg_server *s, tg_client *client, uint32_t id, tg_code *code,
                               const char **message);
/* The same for a request that begins `episode` anew: slot->slot is there, and a call of another episode is given up. */
tg_client_slot *tg_server_slot_anew(tg_server *s, tg_session *session, tg_client *client,
                                    const tg_frame *head, uint32_t id, uint64_t episode,
                                    tg_code *code, const char **message);
/* Whether the request was sent before the one that opened the slot or began its episode: a late copy, to be ignored. */
bool tg_server_outdated(const tg_session *session, const tg_client_slot *slot,
                        const tg_frame *head);

#endif
