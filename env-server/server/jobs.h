/* A bounded pool of threads for work that must not run on the server's loop: slow rewards, metrics.
 *
 *     job->run = ...;  job->done = ...;           // run: on a pool thread; done: back on the loop
 *     if (!tg_jobs_submit(jobs, job)) ...         // the queue is full: answer OVERLOADED
 *
 * Jobs start in the order of submission. done() is called on the loop's thread for every submitted
 * job, in the order in which they finish. */
#ifndef TG_ENV_JOBS_H
#define TG_ENV_JOBS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct tg_jobs tg_jobs;

typedef struct tg_job {
    void (*run)(struct tg_job *job);
    void (*done)(struct tg_job *job);        /* may free the job */
    uint64_t submitted_ns;                   /* private from here */
    struct tg_job *next;                     /* in the queue or among the finished */
    struct tg_job *live_before, *live_after; /* among all in flight, by age */
} tg_job;

tg_status tg_jobs_create(tg_jobs **out, uv_loop_t *loop, int n_threads, size_t max_queue,
                         tg_error *err) TG_MUST_CHECK;
/* Waits so many ms for every submitted job and calls done() of those that ended; the others are given up. Returns how many that
 * are: their threads cannot be ended, so the memory of the pool stays, and all that these jobs use must stay as well. The loop
 * must turn once more before it is closed. */
size_t tg_jobs_stop(tg_jobs **jobs, uint64_t ms);

bool tg_jobs_submit(tg_jobs *jobs, tg_job *job);
size_t tg_jobs_in_flight(tg_jobs *jobs);   /* submitted, done() not yet called */
uint64_t tg_jobs_oldest_ms(tg_jobs *jobs); /* age of the oldest of these; 0: none */

#endif
