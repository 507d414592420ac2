/* A load on any environment server: sessions with slots that play episodes of random tokens, and how long each step
 * took.
 *
 *     tg_load_run(&opts, &result, err);
 *
 * Closed loop: each slot asks for its next step as soon as it has its answer. Open loop: steps become due at a fixed
 * rate, whatever the server does, and their time counts from when they were due, so a stall shows in full. Tokens are a
 * function of (seed, slot, episode, step). */
#ifndef TG_LOAD_H
#define TG_LOAD_H

#include "common/base/status.h"
#include "common/net/security.h"
#include "env-server/load/histogram.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_LOAD_CODES = 23 };

typedef struct tg_load_opts {
    const char *address; /* of a server that listens, or a broker's front */
    const char *bind;    /* instead: workers connect here */
    uint32_t sessions;   /* connections (1) */
    uint32_t slots;      /* of each session (64) */
    uint32_t tokens;     /* per step (1) */
    double seconds;      /* measured (5) */
    double warmup;       /* before (1) */
    double rate;         /* steps a second over all slots; 0: closed loop */
    uint64_t seed;
    int timeout_ms;   /* of a call (60000) */
    int heartbeat_ms; /* 0: the default */
    int open_ms;      /* for all sessions and slots (60000) */
    bool insecure;
    tg_security *security; /* borrowed; NULL: none */
} tg_load_opts;

typedef struct tg_load_result {
    double seconds;
    uint64_t steps, tokens, episodes, missed; /* missed: open loop, never begun */
    uint64_t errors, codes[TG_LOAD_CODES];    /* calls that failed, by code */
    uint64_t workers_lost, rebuilt;
    size_t sessions, slots; /* that were open */
    tg_histogram step, reset;
} tg_load_result;

tg_status tg_load_run(const tg_load_opts *opts, tg_load_result *out, tg_error *err) TG_MUST_CHECK;

#endif
