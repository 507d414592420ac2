/* Sessions with peers: Hello and Welcome, heartbeats both ways, loss and return, Bye. One link is
 * one address, listened on or dialled; the owner sees the same callbacks for both, so a server's
 * code does not know how it was started.
 *
 *     tg_link_opts opts = {.listen = "ipc:///run/textgen/env", .role = TG_ROLE_WORKER,
 *                          .spec = &spec, .ops = &ops, .arg = server};
 *     tg_link_open(&link, net, loop, &opts, err);
 *     // ... on_open(session), on_message(session, head, msg), on_close(session, reason) ...
 *     tg_frame head = {TG_MSG_STEP_REPLY, TG_FRAME_REPLY, 0, request->seq};
 *     tg_session_send(session, &head, &reply, err);
 *     tg_link_close(&link, "draining");
 *
 * A dialling link opens its socket anew, after 0.25 s doubling to 1 s, whenever its peer goes
 * silent, disconnects or says Bye, and says Hello again: the owner sees on_close, later on_open
 * with another session. A listening link has any number of sessions. Hello, Welcome, Heartbeat and
 * Bye are handled here and never reach the owner.
 *
 * A peer is lost when its connection drops, or when it is silent for three heartbeats and, on
 * another machine, for 30 s. Everything happens on the loop's thread. */
#ifndef TG_NET_LINK_H
#define TG_NET_LINK_H

#include "common/base/status.h"
#include "common/net/answers.h"
#include "common/net/endpoint.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct tg_link tg_link;
typedef struct tg_session tg_session;

enum { TG_LINK_WHY = 256 };

typedef struct tg_link_ops {
    /* A peer of the right version and role is there. Anything but TG_CODE_OK refuses it: it gets
     * Error with this code and `why` (in: ""). Decide and call tg_session_set_user; do not send. */
    tg_code (*on_open)(void *arg, tg_session *session, char why[TG_LINK_WHY]);
    /* Welcome is through: from here on messages may be sent. May be NULL. */
    void (*on_ready)(void *arg, tg_session *session);
    /* A request, reply or Error of the session (the session number in head is checked). msg is the
     * owner's: tg_msg_free. */
    void (*on_message)(void *arg, tg_session *session, const tg_frame *head, void *msg);
    /* The session is over (only for sessions that on_open took); the pointer is invalid afterwards.
     * Also called for every session by tg_link_close. */
    void (*on_close)(void *arg, tg_session *session, const char *reason);
    /* Fills in_flight, oldest_ms, completed, loop_lag_us, draining of the heartbeat about to be
     * sent. May be NULL. */
    void (*on_beat)(void *arg, tg_heartbeat *beat);
    /* Dialling: the other side refused our Hello. The link tries again by itself; may be NULL, may
     * close the link. */
    void (*on_refused)(void *arg, tg_code code, const char *message);
    /* The connection is gone, but the session may come back within its lease: nothing can be sent meanwhile. Then either
     * on_resume (the same pointer, the next epoch: answers to what was asked before must not be sent any more) or
     * on_close. Both or neither; without them, or without a lease, a loss is the end. */
    void (*on_detach)(void *arg, tg_session *session, const char *reason);
    void (*on_resume)(void *arg, tg_session *session);
} tg_link_ops;

typedef struct tg_link_opts {
    const char *listen; /* exactly one of these two addresses */
    const char *dial;
    bool insecure, recycle; /* see endpoint.h */
    tg_role role;           /* ours */
    unsigned
        peer_roles; /* listening: TG_ROLE_BIT of those who may say Hello; 0: clients for a worker, workers else */
    const tg_env_spec *spec; /* workers: borrowed for the link's life, sent in Hello or Welcome */
    bool
        spec_optional; /* dialling: also take a Welcome without an environment (reward workers, brokers) */
    const tg_reward_fn *functions; /* borrowed for the link's life, sent in Hello or Welcome */
    size_t n_functions;
    const uint8_t *uuid;   /* 16 bytes that name this process in Hello; NULL: drawn */
    int heartbeat_ms;      /* wanted; the smaller of both sides' is used; 0: 1000 */
    int remote_silence_ms; /* 0: 30000 */
    tg_limits
        limits; /* told in Welcome; zeros: the limits of the protocol. max_message and max_batch are kept
         * here, max_slots by the owner */
    int lease_ms; /* listening: how long a lost client may come back; 0: not at all */
    bool resume;  /* dialling: ask for the same session again after a loss */
    uint64_t
        resume_session; /* dialling: the session of an earlier process, with its token (16 bytes); 0: none */
    const uint8_t *resume_token;
    uint32_t credits;    /* listening: requests a peer may have unanswered; 0: any number */
    size_t max_sessions; /* listening; 0: 16384 */
    int handshake_ms; /* listening: a connection that has not said Hello after this is cut; 0: 5000. Also see endpoint.h */
    size_t max_tenant_sessions; /* of them for one tenant; 0: as many as there may be */
    int hello_ms; /* listening: a connection whose session is over is cut after this, if it does not say Hello again; 0: 10000 */
    const tg_link_ops *ops;
    void *arg;
} tg_link_opts;

#define TG_ROLE_BIT(role) (1u << (role))

/* What ran out when a request was answered OVERLOADED, or an answer could not be sent. */
typedef enum tg_pressure {
    TG_PRESSURE_CREDITS,  /* of the session */
    TG_PRESSURE_SLOTS,    /* of the client or of all */
    TG_PRESSURE_QUEUE,    /* of the pool of threads */
    TG_PRESSURE_SESSIONS, /* of the tenant or of all */
    TG_PRESSURE_WORKERS,  /* none is there */
    TG_PRESSURE_MEMORY,
    TG_PRESSURE_READER, /* the peer does not read its answers */
    TG_PRESSURES
} tg_pressure;

/* How a peer was lost. */
typedef enum tg_loss {
    TG_LOSS_NONE, /* it is there, or said Bye, or was sent away */
    TG_LOSS_DISCONNECTED,
    TG_LOSS_SILENT,
    TG_LOSSES
} tg_loss;

typedef struct tg_link_stats {
    uint64_t sent, received, bad_frames;
    uint64_t sent_bytes, received_bytes, handshakes_failed;
    uint64_t opened, lost,
        refused;               /* sessions; lost: by silence or disconnection, resumed or not */
    uint64_t resumed, expired; /* came back within the lease; did not */
    uint64_t errors[TG_CODE_COUNT]; /* Errors sent */
    uint64_t cut;                   /* connections that did not say Hello in time */
    uint64_t pressure[TG_PRESSURES];
    uint64_t missed[TG_ROLE_REWARD + 1]; /* heartbeats that did not come, by the peer's role */
    size_t sessions, detached;           /* now; detached ones are among the sessions */
    uint64_t credits,
        unanswered; /* listening, of the connected sessions now: requests allowed, and begun */
} tg_link_stats;

tg_status tg_link_open(tg_link **out, tg_net *net, uv_loop_t *loop, const tg_link_opts *opts,
                       tg_error *err) TG_MUST_CHECK;
/* Bye to every peer, on_close for every session, then the socket. The memory is released by the
 * loop's next turn. */
void tg_link_close(tg_link **link, const char *reason);
const char *tg_link_address(const tg_link *link);
void tg_link_get_stats(const tg_link *link, tg_link_stats *out);
void tg_link_stats_add(tg_link_stats *sum, const tg_link_stats *one);
const tg_answers *tg_link_answers(const tg_link *link); /* how the peers' requests were answered */
void tg_link_count_pressure(tg_link *link, tg_pressure what);
/* What later Hellos or Welcomes say. Borrowed. */
void tg_link_set_spec(tg_link *link, const tg_env_spec *spec);
void tg_link_set_functions(tg_link *link, const tg_reward_fn *functions, size_t n);
/* Ends the session that has been detached for longest, to make room; false: there is none. */
bool tg_link_evict(tg_link *link);
/* For answers that are ready later: NULL when that session is over. Session numbers are not reused. link NULL: it was closed (or is
 * being closed, whose on_close may end calls). */
tg_session *tg_link_find(tg_link *link, uint64_t session_id);

/* head->session is filled in. TG_BUSY, TG_UNAVAILABLE and TG_DATA as tg_endpoint_send; after
 * TG_UNAVAILABLE on_close follows from the loop. */
tg_status tg_session_send(tg_session *session, const tg_frame *head, const void *msg,
                          tg_error *err) TG_MUST_CHECK;
/* Answers a request with Error. Failures to send are logged and forgotten: the asker has a
 * deadline. */
void tg_session_send_error(tg_session *session, const tg_frame *request, tg_code code,
                           const char *fmt, ...) TG_PRINTF(4, 5);
/* The same with OVERLOADED, counted by what ran out. */
void tg_session_send_busy(tg_session *session, const tg_frame *request, tg_pressure what,
                          const char *fmt, ...) TG_PRINTF(4, 5);
/* Ends a session: Error with this code (or Bye for TG_CODE_OK), then on_close. */
void tg_session_end(tg_session *session, tg_code code, const char *reason);

uint64_t tg_session_id(const tg_session *session);
/* 1, and one more with each resumption. An answer goes to the epoch that asked for it, or to nobody. */
uint64_t tg_session_epoch(const tg_session *session);
bool tg_session_detached(const tg_session *session);
tg_loss tg_session_loss(const tg_session *session);      /* also within on_detach and on_close */
tg_role tg_session_peer_role(const tg_session *session); /* dialling: worker, as far as is known */
uint32_t tg_session_minor(const tg_session *session);    /* both sides speak this minor version */
/* Whose it is, by the peer's key: "" without keys. */
const char *tg_session_tenant(const tg_session *session);
/* Dialling: 16 bytes that resume this session later, or NULL. Secret. */
const uint8_t *tg_session_resume_token(const tg_session *session);
/* Dialling: how many requests may be unanswered; 0: not said. */
uint32_t tg_session_credits(const tg_session *session);
/* What the peer takes: of its Welcome when we dialled, else the limits of the protocol. */
const tg_limits *tg_session_limits(const tg_session *session);
const tg_reward_fn *tg_session_functions(const tg_session *session, size_t *n); /* the peer's */
const tg_env_spec *
tg_session_spec(const tg_session *session); /* the peer's; NULL unless it is a worker */
const uint8_t *
tg_session_peer_uuid(const tg_session *session); /* 16 bytes; zeros when we dialled */
/* Who the peer is by its key; empty without keys and for who was dialled. */
const tg_user *tg_session_peer_user(const tg_session *session);
const char *tg_session_peer_software(const tg_session *session);
const tg_heartbeat *tg_session_last_beat(const tg_session *session); /* zeros before the first */
uint64_t tg_session_idle_ms(const tg_session *session);              /* since anything was heard */
void tg_session_set_user(tg_session *session, void *user);
void *tg_session_user(const tg_session *session);

#endif
