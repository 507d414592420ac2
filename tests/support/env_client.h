/* A plain client of one environment server, for tests: one call at a time, each with a deadline. */
#ifndef TG_TEST_ENV_CLIENT_H
#define TG_TEST_ENV_CLIENT_H

#include "common/net/link.h"

#include <stdbool.h>

typedef struct env_client {
    uv_loop_t loop;
    tg_net *net;
    tg_link *link;
    tg_session *session; /* NULL while there is none */
    uv_timer_t timer;
    uint64_t seq;
    void *reply; /* of the call under way, owned */
    tg_frame reply_head;
    bool whole; /* answers to steps that come in several replies are put together, by slot */
    void *parts[16];
    size_t n_parts;
    bool waiting, expired, closed;
    char reason[256]; /* why the last session ended */
    tg_code error;    /* of the last Error */
    int failures;
} env_client;

/* Dials (or listens) and waits for a session. */
bool env_client_open(env_client *c, const char *address, bool listening);
/* Dials and takes over the session of an earlier process. */
bool env_client_resume(env_client *c, const char *address, uint64_t session,
                       const uint8_t token[16]);
void env_client_close(env_client *c);

/* Sends without waiting; the answer has this number. */
bool env_client_send(env_client *c, tg_msg_type type, const void *msg);
/* Waits for the answer to the last send, which is owned (tg_msg_free); NULL when there is none or it is of another type. */
void *env_client_receive(env_client *c, tg_msg_type want);
void *env_client_ask(env_client *c, tg_msg_type type, const void *msg, tg_msg_type want);
bool env_client_wait_closed(env_client *c);

/* Slots 10 .. 10 + n. */
bool env_client_open_slots(env_client *c, uint32_t n);
tg_reset_reply *env_client_reset(env_client *c, const tg_reset_item *items, size_t n);
tg_step_reply *env_client_step(env_client *c, const tg_step_item *items, size_t n);

#endif
