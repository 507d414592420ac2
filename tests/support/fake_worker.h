/* A worker for tests, in a thread of its own, over a raw ZeroMQ socket: a small deterministic environment
 * that can be told to misbehave.
 *
 * Episode: prompt and digest are functions of (seed, split, sample), rewards of (sample, tokens). Token 0
 * terminates, the 8th token truncates. */
#ifndef TG_TEST_FAKE_WORKER_H
#define TG_TEST_FAKE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tg_fake_fault {
    TG_FAKE_NONE,
    TG_FAKE_DIE,       /* the socket goes without Bye, as under kill -9 */
    TG_FAKE_STALL,     /* not a word any more, not even heartbeats, but still connected */
    TG_FAKE_MUTE,      /* heartbeats, but no replies */
    TG_FAKE_GARBAGE,   /* noise before every reply */
    TG_FAKE_DUPLICATE, /* every reply twice, then old ones again */
    TG_FAKE_LIE,       /* its state digests differ from those of others */
    TG_FAKE_LIE_LATER, /* those of steps do, those of resets do not */
    TG_FAKE_OVERLOAD,  /* each item is refused once with OVERLOADED */
    TG_FAKE_REFUSE     /* whole requests are answered with Error INTERNAL */
} tg_fake_fault;

typedef struct tg_fake_opts {
    const char *address;
    bool listen; /* bind and wait for the client's Hello; else dial and say it */
    uint64_t config_digest, tokenizer_digest; /* 0: 1 */
    uint32_t capacity;
    int heartbeat_ms; /* 0: 1000; a busy machine must not make a sound worker look silent */
    bool not_deterministic;
    tg_fake_fault fault;
    int fault_after; /* step items answered before the fault begins */
} tg_fake_opts;

typedef struct tg_fake_worker tg_fake_worker;

tg_fake_worker *tg_fake_start(const tg_fake_opts *opts);
void tg_fake_stop(tg_fake_worker **w, bool bye); /* joins the thread */
int tg_fake_steps(const tg_fake_worker *w);      /* step items answered so far */
int tg_fake_last_error(const tg_fake_worker *w); /* code of the last Error received; 0: none */

#endif
