/* What link.c (the socket), link_message.c (what arrives), link_hello.c (Hello and Welcome) and session.c (one peer), session_liveness.c
 * (heartbeats, silence) and session_send.c (what it is told) share. */
#ifndef TG_NET_LINK_INTERNAL_H
#define TG_NET_LINK_INTERNAL_H

#include "common/net/link.h"
#include "common/net/session_table.h"
#include "common/net/memory_limit.h"
#include "common/net/strangers.h"

enum {
    TG_LINK_BEATS = 3, /* silent for so many heartbeats: lost */
    TG_LINK_REMOTE_SILENCE_MS = 30000,
    TG_LINK_HELLO_MS = 5000,     /* for the answer to our Hello */
    TG_LINK_HANDSHAKE_MS = 5000, /* for a Hello to us, from the connection on */
    TG_LINK_STRANGER_MS = 10000, /* for another Hello, from the session's end on */
    TG_LINK_BACKOFF_MS = 250,
    TG_LINK_BACKOFF_MAX_MS = 1000, /* a network that heals is noticed soon */
    TG_LINK_MISFIT_MS = 4000,      /* whom we cannot work with will not be another one so soon */
    TG_LINK_BYE_LINGER_MS = 500,
    TG_LINK_DENIED_LOG_MS = 10000,
    TG_LINK_MAX_SESSIONS = 16384,
    TG_LINK_CUTS = 32,    /* strangers cut at once, */
    TG_LINK_CUTS_MS = 10, /* and the pause after that */
    TG_LINK_PROBES = 4,   /* libzmq lets go of a peer a moment after it reports the end */
    TG_LINK_RETRY_MS = 20 /* told with OVERLOADED */
};

struct tg_session {
    tg_session *next, *before;
    tg_link *link;
    tg_peer peer;
    int fd;     /* of the connection, to know whose end is reported; -1: not known */
    int probes; /* still to be made, since that fd was reported */
    uint64_t id, epoch;
    tg_role role;
    uint32_t minor;
    uint32_t credits, unanswered; /* credits: listening, ours; dialling, the peer's */
    uint32_t lease_ms;
    bool detached;
    uint64_t detached_ms;
    bool has_token;
    uint8_t token[16];
    const tg_reward_fn *functions;
    size_t n_functions;
    uint32_t heartbeat_ms;
    uint64_t heard_ms, beat_ms; /* last received, last heartbeat sent */
    uint32_t missed;            /* heartbeats that are overdue now */
    tg_loss loss;
    bool gone;  /* a send found the peer disconnected; the loop ends the session */
    bool taken; /* on_open said yes: on_close is owed */
    void *keep; /* owned: the decoded Hello or Welcome that spec and software point into */
    const tg_env_spec *spec;
    const char *software;
    uint8_t uuid[16];
    tg_limits limits;  /* what the peer takes */
    tg_user peer_user; /* as the key of the connection proved; empty without keys */
    tg_heartbeat last_beat;
    void *user;
};

struct tg_link {
    tg_net *net;
    uv_loop_t *loop;
    tg_link_opts opts;
    char *address; /* owned copy of opts.listen or opts.dial */
    bool local;
    uint8_t uuid[16];
    tg_endpoint *ep; /* NULL between two attempts to dial */
    uv_timer_t tick, probe, reopen, cutting;
    int handles;
    bool closed;
    int probes_left;
    bool dropped; /* dialling: the connection is over; its last messages may still come */
    uint64_t tick_ms, last_tick_ms;
    tg_session *sessions;
    size_t n_sessions, n_detached;
    tg_session_table by_peer, by_id, by_uuid;
    tg_strangers strangers;
    tg_memory_limit memory;
    uint8_t resume_token[16]; /* dialling: of opts.resume_session */
    uint64_t next_session;
    uint64_t allow_generation; /* of the list that all sessions were last compared with */
    uint64_t denied_ms;        /* when a failed handshake was last logged */
    bool waiting;              /* dialling: Hello is out, Welcome not in */
    uint64_t hello_seq;
    uint64_t hello_sent_ms;
    int backoff_ms;
    tg_link_stats stats;
    tg_answers answers;
    uint64_t credits, unanswered; /* over the connected sessions */
    tg_endpoint_stats past;       /* of sockets already closed */
};

/* session.c */
/* A session that heard its peer just now; not yet taken. keep passes over. NULL: out of memory, keep is still the
 * caller's. */
tg_session *tg_session_create(tg_link *link, tg_peer peer, uint64_t id, uint32_t heartbeat_ms,
                              void *keep);
/* on_open said yes. */
void tg_session_taken(tg_session *s);
/* The connection is over: waits for the peer to come back if it may, else drops. */
void tg_session_lose(tg_session *s, const char *reason);
void tg_session_detach(tg_session *s, const char *reason);
/* On another connection from now on. False: out of memory, still detached. keep passes over with true. */
bool tg_session_attach(tg_session *s, tg_peer peer, int fd, void *keep);
bool tg_session_set_uuid(tg_session *s, const uint8_t uuid[16]);
tg_session *tg_session_of_uuid(tg_link *link, const uint8_t uuid[16]);
/* on_close (if taken), then gone. Does not say anything to the peer. */
void tg_session_drop(tg_session *s, const char *reason);
tg_session *tg_session_of_peer(tg_link *link, tg_peer peer);

/* session_liveness.c */
/* Heartbeats that are due (probe: to those whose connection may be gone), then ends who is gone. */
void tg_sessions_beat(tg_link *link, bool probe);
void tg_sessions_judge_silence(tg_link *link);
void tg_sessions_expire(tg_link *link);
/* Ends the sessions whose key was taken off the allow-list since the last look. */
void tg_sessions_judge_keys(tg_link *link);

/* link_hello.c */
void tg_link_hello(tg_link *link, tg_peer peer, const tg_frame *head,
                   tg_hello *hello);                      /* takes it */
void tg_link_welcome(tg_link *link, tg_welcome *welcome); /* takes it */
tg_status tg_link_say_hello(tg_link *link, tg_error *err) TG_MUST_CHECK;

/* link_message.c */
void tg_link_message(void *link, tg_peer peer, const tg_frame *head, void *msg); /* takes it */
void tg_link_send_error(tg_link *link, tg_peer peer, const tg_frame *about, tg_code code,
                        const char *why);

/* link.c */
/* After a session ended: a dialling link closes its socket and tries again later. */
void tg_link_redial(tg_link *link, const char *reason);
void tg_link_probe_soon(tg_link *link);
/* A peer may want heartbeats more often than we asked for. */
void tg_link_tick_for(tg_link *link, uint32_t heartbeat_ms);

#endif
