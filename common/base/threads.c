/* Helpers spin briefly for the next job, then sleep on a condition variable: loops in the engine follow each
 * other within microseconds, while an idle team must not burn a core. */
#include "common/base/threads.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SPIN_ROUNDS = 2000 };

struct tg_team {
    int n_threads, n_helpers; /* helpers really started */
    pthread_t *helpers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint job;     /* incremented for every run; helpers wait for a change */
    atomic_bool quit;
    atomic_int next;     /* next tile */
    atomic_int busy;     /* helpers still inside the current job */
    int n_tiles;
    tg_team_fn *work;
    void *arg;
};

static void take_tiles(tg_team *t) {
    for (int i; (i = atomic_fetch_add(&t->next, 1)) < t->n_tiles;) t->work(t->arg, i);
}

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static unsigned wait_for_job(tg_team *t, unsigned seen) {
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        unsigned now = atomic_load(&t->job);
        if (now != seen) return now;
        pause_cpu();
    }
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->job) == seen) pthread_cond_wait(&t->wake, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->job);
}

static void *helper_main(void *arg) {
    tg_team *t = arg;
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(t, seen);
        if (atomic_load(&t->quit)) return NULL;
        take_tiles(t);
        atomic_fetch_sub(&t->busy, 1);
    }
}

static int cpus_allowed(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

static void publish_job(tg_team *t) {
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->job, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

tg_status tg_team_create(tg_team **out, int n_threads, tg_error *err) {
    *out = NULL;
    if (n_threads <= 0) n_threads = cpus_allowed();
    tg_team *t = tg_alloc(sizeof *t);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    t->n_threads = n_threads;
    t->helpers = tg_alloc_array((size_t)n_threads, sizeof *t->helpers);
    if (!t->helpers) {
        tg_team_destroy(&t);
        return tg_fail_nomem(err, (size_t)n_threads * sizeof(pthread_t));
    }
    for (int i = 0; i < n_threads - 1; i++) {
        if (pthread_create(&t->helpers[i], NULL, helper_main, t)) {
            tg_team_destroy(&t);
            return tg_fail_errno(err, TG_UNAVAILABLE, "cannot start thread %d of %d", i + 2, n_threads);
        }
        t->n_helpers++;
    }
    *out = t;
    return TG_OK;
}

void tg_team_destroy(tg_team **team) {
    tg_team *t = *team;
    if (!t) return;
    atomic_store(&t->quit, true);
    publish_job(t);
    for (int i = 0; i < t->n_helpers; i++) pthread_join(t->helpers[i], NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    tg_free(t->helpers);
    tg_free(t);
    *team = NULL;
}

int tg_team_size(const tg_team *team) {
    return team->n_threads;
}

void tg_team_run(tg_team *t, int n_tiles, tg_team_fn *work, void *arg) {
    if (n_tiles <= 1 || t->n_helpers == 0) {
        for (int i = 0; i < n_tiles; i++) work(arg, i);
        return;
    }
    t->n_tiles = n_tiles;
    t->work = work;
    t->arg = arg;
    atomic_store(&t->next, 0);
    atomic_store(&t->busy, t->n_helpers);
    publish_job(t);
    take_tiles(t);
    while (atomic_load(&t->busy) > 0) pause_cpu();
}
