/* The job pool. One mutex guards the three lists' heads; jobs are linked through themselves, so
 * submitting allocates nothing. uv_async wakes the loop, which drains the finished list (wake-ups
 * coalesce, so they are not counted). */
#include "env-server/server/jobs.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <pthread.h>
#include <string.h>

enum { MAX_THREADS = 64 };

struct tg_jobs {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t threads[MAX_THREADS];
    int n_threads;
    tg_job *queue, *queue_last;       /* waiting, linked by next */
    tg_job *finished, *finished_last; /* waiting for the loop, linked by next */
    size_t n_queued, max_queue;
    bool stopping;
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
        if (!job) break;
        j->queue = job->next;
        if (!j->queue) j->queue_last = NULL;
        j->n_queued--;
        pthread_mutex_unlock(&j->lock);
        job->run(job);
        pthread_mutex_lock(&j->lock);
        job->next = NULL;
        if (j->finished_last)
            j->finished_last->next = job;
        else
            j->finished = job;
        j->finished_last = job;
        uv_async_send(&j->async);
    }
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
    int code = uv_async_init(loop, &j->async, on_async);
    if (code) {
        tg_free(j);
        return tg_fail(err, TG_IO, "jobs: %s", uv_strerror(code));
    }
    j->async.data = j;
    *out = j;
    for (; j->n_threads < n_threads; j->n_threads++)
        if ((code = pthread_create(&j->threads[j->n_threads], NULL, work, j))) {
            tg_jobs_destroy(out);
            return tg_fail(err, TG_UNAVAILABLE, "cannot start a thread: %s", strerror(code));
        }
    return TG_OK;
}

static void on_closed(uv_handle_t *handle) {
    tg_jobs *j = handle->data;
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    tg_free(j);
}

void tg_jobs_destroy(tg_jobs **out) {
    tg_jobs *j = *out;
    if (!j) return;
    *out = NULL;
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    pthread_cond_broadcast(&j->wake);
    pthread_mutex_unlock(&j->lock);
    for (int i = 0; i < j->n_threads; i++) pthread_join(j->threads[i], NULL);
    finish(j);
    uv_close((uv_handle_t *)&j->async, on_closed);
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
