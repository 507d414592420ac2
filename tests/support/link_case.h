/* Two links on one loop with what their owners saw, and raw peers that speak frames by hand. For the tests of sessions. */
#ifndef TG_TEST_LINK_CASE_H
#define TG_TEST_LINK_CASE_H

#include "common/net/link.h"
#include "proto/frame.h"
#include "tests/support/tg_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* One link_side: what its owner saw. */
typedef struct link_side {
    tg_link *link;
    tg_session *session; /* the last opened, NULL when closed */
    int opened, ready, closed, messages, refused, detached, resumed;
    char reason[256];
    tg_code answer; /* of on_open */
    tg_frame last;
    tg_code last_error;
    bool echo;
} link_side;

typedef struct link_case {
    uv_loop_t loop;
    uv_timer_t deadline;
    bool timed_out;
    tg_net *net;
    char address[128];
    link_side worker, client;
} link_case;

extern const tg_env_spec LINK_CASE_SPEC;
extern const tg_link_ops LINK_CASE_OPS;   /* a loss is the end of a session */
extern const tg_link_ops LINK_RESUME_OPS; /* sessions may be resumed */

/* The address is an ipc socket of this name; 20 s are given to everything. */
void link_case_setup(link_case *f, const char *name);
void link_case_start(link_case *f, link_side *x, bool listen, int heartbeat_ms);
/* The options that start uses, to be changed before tg_link_open. */
tg_link_opts link_case_opts(link_case *f, link_side *x, bool listen, int heartbeat_ms);
void link_case_teardown(link_case *f);

#define RUN_UNTIL(f, cond)                                                                         \
    do {                                                                                           \
        while (!(cond) && !(f)->timed_out) {                                                       \
            uv_run(&(f)->loop, UV_RUN_NOWAIT);                                                     \
            usleep(500);                                                                           \
        }                                                                                          \
        tg_check(!(f)->timed_out, __FILE__, __LINE__, "waited in vain for: %s", #cond);            \
    } while (0)

/* A DEALER without a link. */
typedef struct raw_peer {
    void *ctx, *sock;
} raw_peer;
raw_peer raw_open(const char *address);
void raw_close(raw_peer *r);
void raw_send(raw_peer *r, tg_frame head, const void *msg);
/* The next message that is not a heartbeat (tg_msg_free); runs the loop meanwhile. */
void *raw_recv(link_case *f, raw_peer *r, tg_frame *head);
tg_hello client_hello(void);
/* Sends and returns the code of the Error that answers, TG_CODE_OK when something else does. */
tg_code refused_with(link_case *f, raw_peer *r, tg_frame head, const void *msg);

#endif
