/* The caller's side of the pool: opening and closing, queueing calls, taking events. */
#include "common/net/pool.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void lock(const tg_pool *p) {
    pthread_mutex_lock((pthread_mutex_t *)&p->mutex);
}

static void unlock(const tg_pool *p) {
    pthread_mutex_unlock((pthread_mutex_t *)&p->mutex);
}

/* Waits for a change; false when the (monotonic) time is over. Mutex held. */
static bool wait_until(tg_pool *p, uint64_t deadline_ms) {
    if (tg_clock_ms() >= deadline_ms) return false;
    struct timespec at = {(time_t)(deadline_ms / 1000), (long)(deadline_ms % 1000) * 1000000};
    pthread_cond_timedwait(&p->changed, &p->mutex, &at);
    return true;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static tg_status wait_for_workers(tg_pool *p, tg_error *err) {
    uint64_t deadline = tg_clock_ms() + (uint64_t)p->opts.open_timeout_ms;
    tg_status st = TG_OK;
    lock(p);
    while (p->stats.workers < p->opts.min_workers && st == TG_OK) {
        if (wait_until(p, deadline)) continue;
        st = tg_fail(err, TG_UNAVAILABLE,
                     "%d of %d workers joined at %s within %d ms%s%s; start more with: textgen-env "
                     "--config CONFIG %s ADDRESS",
                     p->stats.workers, p->opts.min_workers,
                     p->opts.bind ? p->opts.bind : p->opts.connect, p->opts.open_timeout_ms,
                     p->refused[0] ? "; last refused: " : "", p->refused,
                     p->opts.bind ? "--connect" : "--bind");
    }
    unlock(p);
    return st;
}

/* Signals are the main thread's; the I/O threads (ours and libzmq's) inherit the mask of their creator. */
static tg_status start(tg_pool *p, tg_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tg_status st = tg_pool_io_open(p, err);
    if (st == TG_OK) {
        int rc = pthread_create(&p->thread, NULL, tg_pool_io_main, p);
        p->thread_started = rc == 0;
        if (rc != 0)
            st = tg_fail(err, TG_UNAVAILABLE, "no thread for the worker pool: %s", strerror(rc));
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return st;
}

static bool init_sync(tg_pool *p) {
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) return false;
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&p->changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
    if (ok && pthread_mutex_init(&p->mutex, NULL) != 0) {
        pthread_cond_destroy(&p->changed);
        ok = false;
    }
    return ok;
}

tg_status tg_pool_open(tg_pool **out, const tg_pool_opts *opts, tg_error *err) {
    *out = NULL;
    if (!opts->bind && !opts->connect)
        return tg_fail(err, TG_USAGE, "the worker pool needs an address");
    tg_pool *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->opts = *opts;
    if (p->opts.min_workers <= 0) p->opts.min_workers = 1;
    if (p->opts.open_timeout_ms <= 0) p->opts.open_timeout_ms = 60000;
    if (p->opts.call_timeout_ms <= 0) p->opts.call_timeout_ms = 60000;
    if (p->opts.heartbeat_ms <= 0) p->opts.heartbeat_ms = 1000;
    if (!init_sync(p)) {
        tg_free(p);
        return tg_fail(err, TG_UNAVAILABLE, "no mutex for the worker pool");
    }
    tg_status st = start(p, err);
    if (st == TG_OK) st = wait_for_workers(p, err);
    p->opts.bind = p->opts.connect = NULL; /* the caller's; not needed any more */
    if (st != TG_OK) {
        tg_pool_close(&p);
        return st;
    }
    *out = p;
    return TG_OK;
}

static void stop_thread(tg_pool *p) {
    lock(p);
    p->stop = true;
    unlock(p);
    if (p->thread_started) {
        uv_async_send(&p->wake);
        pthread_join(p->thread, NULL);
    } else if (p->loop_ready) {
        uv_async_send(&p->wake);
        uv_run(&p->loop, UV_RUN_DEFAULT);
    }
    if (p->loop_ready) uv_loop_close(&p->loop);
    tg_net_destroy(&p->net);
}

void tg_pool_close(tg_pool **pool) {
    tg_pool *p = *pool;
    if (!p) return;
    *pool = NULL;
    stop_thread(p);
    for (size_t i = 0; i < p->n_slots; i++) tg_pool_slot_fini(&p->slots[i]);
    for (tg_pool_node *n = p->events, *next; n; n = next) {
        next = n->next;
        tg_pool_node_free(n);
    }
    tg_pool_node_free(p->shown);
    tg_msg_free(p->first);
    tg_free(p->slots);
    tg_free(p->links);
    tg_free(p->outgoing);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    tg_free(p);
}

const tg_env_spec *tg_pool_spec(const tg_pool *p) {
    return &p->first->spec; /* set before tg_pool_open returns, never changed */
}

void tg_pool_get_stats(tg_pool *p, tg_pool_stats *out) {
    lock(p);
    *out = p->stats;
    unlock(p);
}

int tg_pool_pending(const tg_pool *p) {
    lock(p);
    int n = (int)(p->calls + p->n_events);
    unlock(p);
    return n;
}

/* ---- slots ---------------------------------------------------------------------------------- */

static size_t count_open(const tg_pool *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_slots; i++) n += p->slots[i].stage >= TG_STAGE_OPEN;
    return n;
}

static tg_status resize(tg_pool *p, size_t n, tg_error *err) {
    for (size_t i = n; i < p->n_slots; i++) {
        if (p->slots[i].worker) p->slots[i].worker->load--;
        tg_pool_slot_fini(&p->slots[i]);
    }
    if (n < p->n_slots) p->n_slots = n;
    tg_pool_slot *grown = tg_realloc_array(p->slots, n, sizeof *grown);
    if (!grown) return tg_fail_nomem(err, n * sizeof *grown);
    p->slots = grown;
    for (size_t i = p->n_slots; i < n; i++) p->slots[i] = (tg_pool_slot){.id = (uint32_t)i};
    p->n_slots = n;
    return TG_OK;
}

static tg_status wait_open(tg_pool *p, tg_error *err) {
    uint64_t deadline = tg_clock_ms() + (uint64_t)p->opts.call_timeout_ms;
    while (count_open(p) < p->n_slots) {
        if (wait_until(p, deadline)) continue;
        uint64_t room = 0;
        for (const tg_pool_worker *w = p->workers; w; w = w->next) room += w->capacity;
        return tg_fail(err, TG_UNAVAILABLE,
                       "%zu of %zu slots are open: %d workers have room for %llu; start more "
                       "workers, or give them "
                       "more slots",
                       count_open(p), p->n_slots, p->stats.workers, (unsigned long long)room);
    }
    return TG_OK;
}

tg_status tg_pool_open_slots(tg_pool *p, int n, tg_error *err) {
    if (n <= 0 || n > TG_LIMIT_SLOTS)
        return tg_fail(err, TG_USAGE, "%d slots: 1 to %d are possible", n, TG_LIMIT_SLOTS);
    lock(p);
    tg_status st = p->calls ? tg_fail(err, TG_USAGE,
                                      "slots cannot change while %zu calls are under way", p->calls)
                            : resize(p, (size_t)n, err);
    uv_async_send(&p->wake);
    if (st == TG_OK) st = wait_open(p, err);
    unlock(p);
    return st;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static tg_status check_slot(const tg_pool *p, uint32_t id, tg_error *err) {
    if (id >= p->n_slots)
        return tg_fail(err, TG_USAGE, "slot %u is not open (%zu are)", id, p->n_slots);
    if (p->slots[id].call.kind != TG_CALL_NONE)
        return tg_fail(err, TG_USAGE, "slot %u has a call under way", id);
    return TG_OK;
}

static void begin(tg_pool *p, tg_pool_slot *s, tg_call_kind kind) {
    s->call.kind = kind;
    s->call.sent = false;
    s->call.deadline_ms = tg_clock_ms() + (uint64_t)p->opts.call_timeout_ms;
    p->calls++;
}

static tg_status queue_resets(tg_pool *p, const tg_reset_item *items, size_t n, tg_error *err) {
    for (size_t i = 0; i < n; i++) {
        tg_status st = check_slot(p, items[i].slot, err);
        if (st != TG_OK) return st;
    }
    for (size_t i = 0; i < n; i++) {
        tg_pool_slot *s = &p->slots[items[i].slot];
        s->call.reset = items[i];
        s->live = s->rebuild = false; /* whoever resets has done with the old episode */
        begin(p, s, TG_CALL_RESET);
    }
    uv_async_send(&p->wake);
    return TG_OK;
}

tg_status tg_pool_reset(tg_pool *p, const tg_reset_item *items, size_t n, tg_error *err) {
    lock(p);
    tg_status st = queue_resets(p, items, n, err);
    unlock(p);
    return st;
}

/* Checks one step and makes room for its tokens; nothing is queued yet. */
static tg_status prepare_step(tg_pool *p, const tg_step_item *x, tg_error *err) {
    tg_status st = check_slot(p, x->slot, err);
    if (st != TG_OK) return st;
    if (x->n_tokens == 0 || x->n_tokens > TG_LIMIT_TOKENS) {
        return tg_fail(err, TG_USAGE, "slot %u: a step has 1 to %d tokens, not %zu", x->slot,
                       TG_LIMIT_TOKENS, x->n_tokens);
    }
    tg_pool_call *c = &p->slots[x->slot].call;
    if (x->n_tokens > c->cap_tokens) {
        int32_t *grown = tg_realloc_array(c->tokens, x->n_tokens, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, x->n_tokens * sizeof *grown);
        c->tokens = grown;
        c->cap_tokens = x->n_tokens;
    }
    return TG_OK;
}

static tg_status queue_steps(tg_pool *p, const tg_step_item *items, size_t n, tg_error *err) {
    for (size_t i = 0; i < n; i++) {
        tg_status st = prepare_step(p, &items[i], err);
        if (st != TG_OK) return st;
    }
    for (size_t i = 0; i < n; i++) {
        tg_pool_slot *s = &p->slots[items[i].slot];
        tg_pool_call *c = &s->call;
        c->episode = items[i].episode;
        c->step = items[i].step;
        c->n_tokens = items[i].n_tokens;
        memcpy(c->tokens, items[i].tokens, items[i].n_tokens * sizeof *c->tokens);
        begin(p, s, TG_CALL_STEP);
    }
    uv_async_send(&p->wake);
    return TG_OK;
}

tg_status tg_pool_step(tg_pool *p, const tg_step_item *items, size_t n, tg_error *err) {
    lock(p);
    tg_status st = queue_steps(p, items, n, err);
    unlock(p);
    return st;
}

static void take_event(tg_pool *p, tg_pool_event *event) {
    tg_pool_node *n = p->events;
    p->events = n->next;
    if (!p->events) p->last_event = NULL;
    p->n_events--;
    n->next = NULL;
    p->shown = n;
    *event = n->event;
}

tg_status tg_pool_wait(tg_pool *p, tg_pool_event *event, int timeout_ms, tg_error *err) {
    uint64_t deadline = tg_clock_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
    tg_status st = TG_OK;
    lock(p);
    tg_pool_node_free(p->shown);
    p->shown = NULL;
    while (!p->events && st == TG_OK) {
        if (p->calls == 0) {
            st = tg_fail(err, TG_TIMEOUT, "no reset or step is under way");
        } else if (!wait_until(p, deadline)) {
            st = tg_fail(err, TG_TIMEOUT, "nothing finished within %d ms (%zu calls under way)",
                         timeout_ms, p->calls);
        }
    }
    if (st == TG_OK) take_event(p, event);
    unlock(p);
    return st;
}
