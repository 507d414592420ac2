/* The caller's side of a fleet of workers: opening and closing, and what it looks like. The fleet lives on an own thread's
 * loop; everything shared is used under the mutex, which the fleet takes around whatever its loop does. */
#include "common/net/pool.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/fleet_status.h"
#include "common/net/net_figures.h"
#include "common/net/pool_internal.h"

#include <signal.h>
#include <string.h>
#include <time.h>

void tg_pool_lock(const tg_pool *p) {
    pthread_mutex_lock((pthread_mutex_t *)&p->mutex);
}

void tg_pool_unlock(const tg_pool *p) {
    pthread_mutex_unlock((pthread_mutex_t *)&p->mutex);
}

bool tg_pool_wait_until(tg_pool *p, uint64_t deadline_ms) {
    if (tg_clock_ms() >= deadline_ms) return false;
    struct timespec at = {(time_t)(deadline_ms / 1000), (long)(deadline_ms % 1000) * 1000000};
    pthread_cond_timedwait(&p->changed, &p->mutex, &at);
    return true;
}

tg_fleet_stats tg_pool_stats_of(const tg_pool *p) {
    tg_fleet_stats st;
    tg_fleet_get_stats(p->fleet, &st);
    return st;
}

/* ---- the I/O thread ------------------------------------------------------------------------- */

static void enter(void *pool) {
    tg_pool_lock(pool);
}

static void leave(void *pool) {
    tg_pool_unlock(pool);
}

static void on_change(void *pool) {
    pthread_cond_broadcast(&((tg_pool *)pool)->changed);
}

static void on_turn(void *pool) {
    tg_pool *p = pool;
    if (p->news) pthread_cond_broadcast(&p->changed);
    p->news = false;
}

static const tg_fleet_ops OPS = {.on_reset = tg_pool_post_reset,
                                 .on_step = tg_pool_post_step,
                                 .on_change = on_change,
                                 .on_turn = on_turn,
                                 .enter = enter,
                                 .leave = leave};

/* Slots 0 .. want-1: places are dense because they are added and removed at the end only. */
static void change_slots(tg_pool *p) {
    while (p->n_slots > p->want_slots) tg_fleet_remove_slot(p->fleet, p->ids[--p->n_slots]);
    while (p->n_slots < p->want_slots) {
        p->slots_status = tg_fleet_add_slot(p->fleet, &p->ids[p->n_slots], &p->slots_error);
        if (p->slots_status != TG_OK) {
            p->want_slots = p->n_slots;
            break;
        }
        p->n_slots++;
    }
    pthread_cond_broadcast(&p->changed);
}

static void on_wake(uv_async_t *wake) {
    tg_pool *p = wake->data;
    tg_pool_lock(p);
    bool stop = p->stop;
    if (!stop) {
        if (p->n_slots != p->want_slots) change_slots(p);
        on_turn(p);
        tg_fleet_kick(p->fleet);
    }
    tg_pool_unlock(p);
    if (!stop) return;
    tg_fleet_close(&p->fleet, "the learner ends");
    uv_close((uv_handle_t *)wake, NULL); /* the loop ends when the last handle is closed */
}

static void *run_loop(void *pool) {
    uv_run(&((tg_pool *)pool)->loop, UV_RUN_DEFAULT);
    return NULL;
}

static tg_status open_io(tg_pool *p, tg_error *err) {
    tg_status st = tg_net_create(&p->net, err);
    if (st == TG_OK) st = tg_net_secure(p->net, p->opts.security, err);
    if (st != TG_OK) return st;
    if (uv_loop_init(&p->loop) != 0) return tg_fail(err, TG_UNAVAILABLE, "no event loop");
    uv_async_init(&p->loop, &p->wake, on_wake);
    p->wake.data = p;
    p->loop_ready = true;
    tg_fleet_opts opts = {.bind = p->opts.bind,
                          .connect = p->opts.connect,
                          .heartbeat_ms = p->opts.heartbeat_ms,
                          .config_digest = p->opts.config_digest,
                          .insecure = p->opts.insecure,
                          .ops = &OPS,
                          .arg = p};
    return tg_fleet_open(&p->fleet, p->net, &p->loop, &opts, err);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* What whoever starts workers by hand has to know; not at once, since those of `textgen train` need a moment. */
static void say_who_is_waited_for(const tg_pool *p) {
    tg_log_warn("pool",
                "waiting for workers at %s, %d of %d have joined: start them with textgen-env "
                "--config CONFIG %s ADDRESS",
                p->opts.bind ? p->opts.bind : p->opts.connect, tg_pool_stats_of(p).workers,
                p->opts.min_workers, p->opts.bind ? "--connect" : "--bind");
}

static tg_status wait_for_workers(tg_pool *p, tg_error *err) {
    enum { SAY_AFTER_MS = 3000 };
    const uint64_t begin = tg_clock_ms(), deadline = begin + (uint64_t)p->opts.open_timeout_ms;
    bool said = p->opts.open_timeout_ms <= SAY_AFTER_MS;
    tg_status st = TG_OK;
    tg_pool_lock(p);
    while (tg_pool_stats_of(p).workers < p->opts.min_workers && st == TG_OK) {
        if (tg_pool_wait_until(p, said ? deadline : begin + SAY_AFTER_MS)) continue;
        if (!said) {
            say_who_is_waited_for(p);
            said = true;
            continue;
        }
        const char *refused = tg_fleet_refused(p->fleet);
        st = tg_fail(err, TG_UNAVAILABLE,
                     "%d of %d workers joined at %s within %d ms%s%s; start more with: textgen-env "
                     "--config CONFIG %s ADDRESS",
                     tg_pool_stats_of(p).workers, p->opts.min_workers,
                     p->opts.bind ? p->opts.bind : p->opts.connect, p->opts.open_timeout_ms,
                     refused[0] ? "; last refused: " : "", refused,
                     p->opts.bind ? "--connect" : "--bind");
    }
    tg_pool_unlock(p);
    return st;
}

/* Signals are the main thread's; the I/O threads (ours and libzmq's) inherit the mask of their creator. */
static tg_status start(tg_pool *p, tg_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tg_status st = open_io(p, err);
    if (st == TG_OK) {
        int rc = pthread_create(&p->thread, NULL, run_loop, p);
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
    p->ids = tg_alloc_array(TG_FLEET_PLACES, sizeof *p->ids);
    if (!p->ids || !init_sync(p)) {
        tg_free(p->ids);
        tg_free(p);
        return tg_fail(err, TG_UNAVAILABLE, "no memory or no mutex for the worker pool");
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
    tg_pool_lock(p);
    p->stop = true;
    tg_pool_unlock(p);
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
    tg_pool_events_free(p);
    tg_free(p->ids);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    tg_free(p);
}

const tg_env_spec *tg_pool_spec(const tg_pool *p) {
    return tg_fleet_spec(p->fleet); /* set before tg_pool_open returns, never changed */
}

void tg_pool_get_stats(tg_pool *p, tg_pool_stats *out) {
    tg_pool_lock(p);
    tg_fleet_stats st = tg_pool_stats_of(p);
    tg_pool_unlock(p);
    *out = (tg_pool_stats){.workers = st.workers,
                           .workers_lost = st.workers_lost,
                           .episodes_rebuilt = st.episodes_rebuilt,
                           .messages_sent = st.messages_sent,
                           .messages_received = st.messages_received,
                           .replies_dropped = st.replies_dropped};
}

void tg_pool_watch(tg_pool *p, tg_fleet_stats *stats, tg_buf *json) {
    tg_pool_lock(p);
    if (stats) *stats = tg_pool_stats_of(p);
    if (json && p->fleet) tg_fleet_put_status(p->fleet, json);
    tg_pool_unlock(p);
}

void tg_pool_show(tg_pool *p, tg_fleet_figures *figures) {
    tg_pool_lock(p);
    if (p->fleet) tg_fleet_show(p->fleet, figures);
    tg_pool_unlock(p);
}

void tg_pool_collect(tg_pool *p, tg_fleet_figures *fleet, tg_net_figures *net) {
    tg_link_stats links = {0};
    uint64_t accepted, denied;
    tg_pool_lock(p);
    if (p->fleet) {
        tg_fleet_figures_set(fleet, p->fleet);
        tg_fleet_add_link_stats(p->fleet, &links);
        tg_net_auth_counts(p->net, &accepted, &denied);
        tg_net_figures_set(net, &links, NULL, denied);
    }
    tg_pool_unlock(p);
}

int tg_pool_pending(const tg_pool *p) {
    tg_pool_lock(p);
    int n = (int)(tg_pool_stats_of(p).calls + p->n_events);
    tg_pool_unlock(p);
    return n;
}
