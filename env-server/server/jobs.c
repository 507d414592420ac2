/* The job pool. One mutex guards the three lists' heads; jobs are linked through themselves, so
 * submitting allocates nothing. uv_async wakes the loop, which drains the finished list (wake-ups
 * coalesce, so they are not counted). */
#include "env-server/server/jobs.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 64, START_MS = 60000 };

struct tg_jobs {
    pthread_mutex_t lock;
    pthread_cond_t wake, left; /* left: by the last thread */
    pthread_t threads[MAX_THREADS];
    int n_threads, alive;
    tg_job *queue, *queue_last;       /* waiting, linked by next */
    tg_job *finished, *finished_last; /* waiting for the loop, linked by next */
    size_t n_queued, max_queue;
    bool stopping, given_up; /* given up: nobody waits for what is still running */
    /* Loop thread only: all in flight, by age. */
    tg_job *oldest, *newest;
    size_t in_flight;
    uv_async_t async;
};

static void *work(void *arg) {
    tg_jobs *j = arg;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        while (!j->queue && !j->stopping) pthread_cond_wait(&j->wake, &j->lock);
        tg_job *job = j->queue;
        if (!job || j->given_up) break;
        j->queue = job->next;
        if (!j->queue) j->queue_last = NULL;
        j->n_queued--;
        pthread_mutex_unlock(&j->lock);
        job->run(job);
        pthread_mutex_lock(&j->lock);
        if (j->given_up) break; /* the loop may be closed */
        job->next = NULL;
        if (j->finished_last)
            j->finished_last->next = job;
        else
            j->finished = job;
        j->finished_last = job;
        uv_async_send(&j->async);
    }
    if (--j->alive == 0) pthread_cond_signal(&j->left);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static void add_live(tg_jobs *j, tg_job *job) {
    job->live_before = j->newest, job->live_after = NULL;
    if (j->newest)
        j->newest->live_after = job;
    else
        j->oldest = job;
    j->newest = job;
    j->in_flight++;
}

static void drop_live(tg_jobs *j, tg_job *job) {
    if (job->live_before)
        job->live_before->live_after = job->live_after;
    else
        j->oldest = job->live_after;
    if (job->live_after)
        job->live_after->live_before = job->live_before;
    else
        j->newest = job->live_before;
    j->in_flight--;
}

static void finish(tg_jobs *j) {
    pthread_mutex_lock(&j->lock);
    tg_job *job = j->finished;
    j->finished = j->finished_last = NULL;
    pthread_mutex_unlock(&j->lock);
    while (job) {
        tg_job *next = job->next;
        drop_live(j, job);
        job->done(job);
        job = next;
    }
}

static void on_async(uv_async_t *async) {
    finish(async->data);
}

tg_status tg_jobs_create(tg_jobs **out, uv_loop_t *loop, int n_threads, size_t max_queue,
                         tg_error *err) {
    *out = NULL;
    if (n_threads < 1) n_threads = 1;
    if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
    tg_jobs *j = tg_alloc(sizeof *j);
    if (!j) return tg_fail_nomem(err, sizeof *j);
    j->max_queue = max_queue;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->wake, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&j->left, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int code = uv_async_init(loop, &j->async, on_async);
    if (code) {
        tg_free(j);
        return tg_fail(err, TG_IO, "jobs: %s", uv_strerror(code));
    }
    j->async.data = j;
    *out = j;
    j->alive = n_threads;
    for (; j->n_threads < n_threads && code == 0; j->n_threads += code == 0)
        code = pthread_create(&j->threads[j->n_threads], NULL, work, j);
    if (code == 0) return TG_OK;
    pthread_mutex_lock(&j->lock);
    j->alive -= n_threads - j->n_threads;
    pthread_mutex_unlock(&j->lock);
    tg_jobs_stop(out, START_MS);
    return tg_fail(err, TG_UNAVAILABLE, "cannot start a thread: %s", strerror(code));
}

static void on_closed(uv_handle_t *handle) {
    tg_jobs *j = handle->data;
    pthread_cond_destroy(&j->wake);
    pthread_cond_destroy(&j->left);
    pthread_mutex_destroy(&j->lock);
    tg_free(j);
}

/* True: no thread is left. */
static bool wait_for_threads(tg_jobs *j, uint64_t ms) {
    uint64_t end = tg_clock_ns() + ms * 1000000;
    struct timespec at = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    pthread_cond_broadcast(&j->wake);
    while (j->alive && pthread_cond_timedwait(&j->left, &j->lock, &at) != ETIMEDOUT) continue;
    j->given_up = j->alive > 0;
    bool all = !j->given_up;
    pthread_mutex_unlock(&j->lock);
    return all;
}

size_t tg_jobs_stop(tg_jobs **out, uint64_t ms) {
    tg_jobs *j = *out;
    if (!j) return 0;
    *out = NULL;
    bool all = wait_for_threads(j, ms);
    for (int i = 0; i < j->n_threads; i++)
        if (all)
            pthread_join(j->threads[i], NULL);
        else
            pthread_detach(j->threads[i]);
    finish(j);
    size_t left = j->in_flight;
    uv_close((uv_handle_t *)&j->async, all ? on_closed : NULL);
    return all ? 0 : TG_MAX(left, 1);
}

bool tg_jobs_submit(tg_jobs *j, tg_job *job) {
    job->next = NULL;
    job->submitted_ns = tg_clock_ns();
    pthread_mutex_lock(&j->lock);
    bool room = j->n_queued < j->max_queue && !j->stopping;
    if (room) {
        if (j->queue_last)
            j->queue_last->next = job;
        else
            j->queue = job;
        j->queue_last = job;
        j->n_queued++;
        pthread_cond_signal(&j->wake);
    }
    pthread_mutex_unlock(&j->lock);
    if (room) add_live(j, job);
    return room;
}

size_t tg_jobs_in_flight(tg_jobs *j) {
    return j->in_flight;
}

uint64_t tg_jobs_oldest_ms(tg_jobs *j) {
    return j->oldest ? (tg_clock_ns() - j->oldest->submitted_ns) / 1000000 : 0;
}
