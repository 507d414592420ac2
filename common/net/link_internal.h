/* What link.c (the socket, Hello and Welcome) and session.c (one peer, heartbeats, loss) share. */
#ifndef TG_NET_LINK_INTERNAL_H
#define TG_NET_LINK_INTERNAL_H

#include "common/net/link.h"

enum {
    TG_LINK_BEATS = 3, /* silent for so many heartbeats: lost */
    TG_LINK_REMOTE_SILENCE_MS = 30000,
    TG_LINK_HELLO_MS = 5000, /* for the answer to our Hello */
    TG_LINK_BACKOFF_MS = 250,
    TG_LINK_BACKOFF_MAX_MS = 4000,
    TG_LINK_BYE_LINGER_MS = 500,
    TG_LINK_DENIED_LOG_MS = 10000,
    TG_LINK_MAX_SESSIONS = 4096
};

struct tg_session {
    tg_session *next;
    tg_link *link;
    tg_peer peer;
    uint64_t id;
    uint32_t heartbeat_ms;
    uint64_t heard_ms, beat_ms; /* last received, last heartbeat sent */
    bool gone;                  /* a send found the peer disconnected; the loop ends the session */
    bool taken;                 /* on_open said yes: on_close is owed */
    void *keep; /* owned: the decoded Hello or Welcome that spec and software point into */
    const tg_env_spec *spec;
    const char *software;
    uint8_t uuid[16];
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
    uv_timer_t tick, probe, reopen;
    int handles;
    bool closed;
    int probes_left;
    bool dropped; /* dialling: the connection is over; its last messages may still come */
    uint64_t tick_ms, last_tick_ms;
    tg_session *sessions;
    size_t n_sessions;
    uint64_t next_session;
    uint64_t allow_generation; /* of the list that all sessions were last compared with */
    uint64_t denied_ms;        /* when a failed handshake was last logged */
    bool waiting; /* dialling: Hello is out, Welcome not in */
    uint64_t hello_seq;
    uint64_t hello_sent_ms;
    int backoff_ms;
    tg_link_stats stats;
    tg_endpoint_stats past; /* of sockets already closed */
};

/* session.c */
/* A session that heard its peer just now; not yet taken. keep passes over. NULL: out of memory. */
tg_session *tg_session_create(tg_link *link, tg_peer peer, uint64_t id, uint32_t heartbeat_ms,
                              void *keep);
/* on_close (if taken), then gone. Does not say anything to the peer. */
void tg_session_drop(tg_session *s, const char *reason);
tg_session *tg_session_of_peer(tg_link *link, tg_peer peer);
/* Heartbeats that are due (all: to everyone, to find who is gone), then ends who is gone. */
void tg_sessions_beat(tg_link *link, bool all);
void tg_sessions_judge_silence(tg_link *link);
/* Ends the sessions whose key was taken off the allow-list since the last look. */
void tg_sessions_judge_keys(tg_link *link);

/* link.c */
/* After a session ended: a dialling link closes its socket and tries again later. */
void tg_link_redial(tg_link *link, const char *reason);
void tg_link_probe_soon(tg_link *link);
/* A peer may want heartbeats more often than we asked for. */
void tg_link_tick_for(tg_link *link, uint32_t heartbeat_ms);

#endif
