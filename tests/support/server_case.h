/* A server in a thread of the test, over ipc. Its reward `slow` runs on the job pool and waits until gate_open is set; its value is
 * the number of tokens, plus something new at each call where it is not deterministic. */
#ifndef TG_TEST_SERVER_CASE_H
#define TG_TEST_SERVER_CASE_H

#include "common/config/run_config.h"
#include "env-server/env/env.h"
#include "tests/support/env_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct server_case {
    tg_run_config config;
    tg_env_settings settings;
    tg_env *env;
    pthread_t thread;
    char address[300];
    int capacity;
    tg_status status;
} server_case;

extern atomic_int gate_open, scoring,
    scored; /* let go (2: first tokens only); calls waiting now; calls made */

/* Episodes of 4 tokens, 8 slots, the gate shut. */
bool server_case_start(server_case *f, const char *name);
bool server_case_start_varying(server_case *f, const char *name); /* not deterministic */
bool server_case_start_quick(server_case *f,
                             const char *name); /* a reward of the server's loop instead */
/* Likewise, with so many slots, and a prompt of so many tokens. */
bool server_case_start_long(server_case *f, const char *name, int tokens, int slots);
void server_case_finish(server_case *f); /* opens the gate */
/* Slots 10 .. 10 + n begin episode 1. */
void server_case_reset(env_client *c, uint32_t n);

#endif
