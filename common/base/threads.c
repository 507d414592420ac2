/* Helpers spin briefly for the next job, then sleep on a condition variable: loops in the engine follow each
 * other within microseconds, while an idle team must not burn a core.
 *
 * A helper joins a job through the gate, and the caller closes the gate when no tile is left: it then waits only for helpers
 * that are inside. A helper that wakes too late, or gets no CPU, costs nothing; the caller has done the work itself. */
#include "common/base/threads.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SPIN_ROUNDS = 2000, CACHE_LINE = 64 };

/* The gate: job number in the upper half; below it the closed flag and the number of helpers inside. */
#define GATE_JOB ((uint64_t)1 << 32)
#define GATE_CLOSED ((uint64_t)1 << 31)

struct tg_team {
    int n_threads, n_helpers; /* helpers really started */
    int spin_rounds; /* 0 when there are more threads than CPUs: a spinning helper would keep another from its CPU */
    pthread_t *helpers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int n_tiles; /* the job; written while the gate is closed and nobody inside */
    tg_team_fn *work;
    void *arg;
    atomic_bool quit;
    atomic_int sleepers; /* helpers that wait on the condition variable */
    _Alignas(CACHE_LINE) _Atomic uint64_t gate;
    _Alignas(CACHE_LINE) atomic_int next; /* tile */
};

static void take_tiles(tg_team *t) {
    for (int i; (i = atomic_fetch_add(&t->next, 1)) < t->n_tiles;) t->work(t->arg, i);
}

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool is_new(uint64_t gate, uint64_t seen) {
    return gate / GATE_JOB != seen / GATE_JOB;
}

static uint64_t wait_for_job(tg_team *t, uint64_t seen) {
    uint64_t gate;
    for (int i = 0; i < t->spin_rounds; i++) {
        if (is_new(gate = atomic_load(&t->gate), seen)) return gate;
        pause_cpu();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->sleepers, 1);
    while (!is_new(gate = atomic_load(&t->gate), seen)) pthread_cond_wait(&t->wake, &t->lock);
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->lock);
    return gate;
}

/* False: the job is over. */
static bool join_job(tg_team *t, uint64_t gate) {
    uint64_t seen = gate;
    while (!(seen & GATE_CLOSED) && !is_new(seen, gate))
        if (atomic_compare_exchange_weak(&t->gate, &seen, seen + 1)) return true;
    return false;
}

static void *helper_main(void *arg) {
    tg_team *t = arg;
    uint64_t seen = GATE_CLOSED;
    for (;;) {
        seen = wait_for_job(t, seen);
        if (atomic_load(&t->quit)) return NULL;
        if (!join_job(t, seen)) continue;
        take_tiles(t);
        atomic_fetch_sub(&t->gate, 1);
    }
}

int tg_team_cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

/* Opens the gate for the next job. */
static void publish_job(tg_team *t) {
    uint64_t job = atomic_load(&t->gate) / GATE_JOB + 1;
    atomic_store(&t->gate, job * GATE_JOB);
    if (atomic_load(&t->sleepers) == 0) return;
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

void tg_team_relax(int round) {
    if (round < SPIN_ROUNDS)
        pause_cpu();
    else
        sched_yield();
}

/* Returns when nobody is inside. Yields after a while: a helper may have lost its CPU in the middle of a tile. */
static void close_job(tg_team *t) {
    atomic_fetch_or(&t->gate, GATE_CLOSED);
    for (int i = 0; atomic_load(&t->gate) % GATE_CLOSED; i++) {
        if (i < t->spin_rounds)
            pause_cpu();
        else
            sched_yield();
    }
}

tg_status tg_team_create(tg_team **out, int n_threads, tg_error *err) {
    *out = NULL;
    int cpus = tg_team_cpus();
    if (n_threads <= 0) n_threads = cpus;
    tg_team *t = tg_alloc_aligned(sizeof *t, CACHE_LINE);
    if (!t) return tg_fail_nomem(err, sizeof *t);
    memset(t, 0, sizeof *t);
    t->gate = GATE_CLOSED;
    t->spin_rounds = n_threads > cpus ? 0 : SPIN_ROUNDS;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    t->n_threads = n_threads;
    t->helpers = tg_alloc_array((size_t)n_threads, sizeof *t->helpers);
    if (!t->helpers) {
        tg_team_destroy(&t);
        return tg_fail_nomem(err, (size_t)n_threads * sizeof(pthread_t));
    }
    for (int i = 0; i < n_threads - 1; i++) {
        int rc = pthread_create(&t->helpers[i], NULL, helper_main, t);
        if (rc) {
            tg_team_destroy(&t);
            errno = rc;
            return tg_fail_errno(err, TG_UNAVAILABLE, "cannot start thread %d of %d", i + 2,
                                 n_threads);
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
    publish_job(t);
    take_tiles(t);
    close_job(t);
}
