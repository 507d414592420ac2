/* Hooks of the operations thread. The pool is borrowed under a lock, so that it can go while somebody looks. */
#include "learner/train/operations.h"

#include "common/base/alloc.h"
#include "common/net/ops_thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

struct tg_operations {
    tg_ops_thread *thread;
    pthread_mutex_t lock;
    tg_pool *pool;
    tg_stat *workers, *deaths, *rebuilt, *sent, *received, *dropped;
    tg_stat *iteration, *total, *reward, *speed;
};

static bool pool_stats(tg_operations *o, tg_pool_stats *out) {
    pthread_mutex_lock(&o->lock);
    bool there = o->pool != NULL;
    if (there) tg_pool_get_stats(o->pool, out);
    pthread_mutex_unlock(&o->lock);
    return there;
}

static bool is_ready(void *arg, char why[TG_OPS_WHY]) {
    tg_pool_stats s;
    bool there = pool_stats(arg, &s);
    if (there && s.workers > 0) return true;
    snprintf(why, TG_OPS_WHY, "%s", there ? "no worker is connected" : "waiting for workers");
    return false;
}

static void collect(void *arg) {
    tg_operations *o = arg;
    tg_pool_stats s = {0};
    if (!pool_stats(o, &s)) return;
    tg_stat_set(o->workers, s.workers);
    tg_stat_set(o->deaths, (double)s.workers_lost);
    tg_stat_set(o->rebuilt, (double)s.episodes_rebuilt);
    tg_stat_set(o->sent, (double)s.messages_sent);
    tg_stat_set(o->received, (double)s.messages_received);
    tg_stat_set(o->dropped, (double)s.replies_dropped);
}

static void put_status(void *arg, tg_buf *json) {
    tg_operations *o = arg;
    tg_pool_stats s = {0};
    bool there = pool_stats(o, &s);
    tg_buf_printf(json,
                  ", \"state\": \"%s\", \"sessions\": %d, \"workers_lost\": %" PRIu64
                  ", \"episodes_rebuilt\": %" PRIu64 ", \"iteration\": %.0f, \"iterations\": %.0f",
                  there ? "training" : "starting", s.workers, s.workers_lost, s.episodes_rebuilt,
                  tg_stat_value(o->iteration), tg_stat_value(o->total));
}

static void make_stats(void *arg, tg_stats *s) {
    tg_operations *o = arg;
    o->workers = tg_stats_gauge(s, "textgen_workers", "Workers connected.", NULL, NULL);
    o->deaths = tg_stats_counter(s, "textgen_worker_deaths_total", "Workers that were lost.",
                                 "cause", "lost");
    o->rebuilt =
        tg_stats_counter(s, "textgen_worker_recoveries_total",
                         "Episodes of lost workers, by what became of them.", "result", "rebuilt");
    o->sent = tg_stats_counter(s, "textgen_messages_sent_total", "Whole messages.", NULL, NULL);
    o->received =
        tg_stats_counter(s, "textgen_messages_received_total", "Whole messages.", NULL, NULL);
    o->dropped = tg_stats_counter(s, "textgen_replies_dropped_total",
                                  "Late, doubled or unasked replies.", NULL, NULL);
    o->iteration = tg_stats_gauge(s, "textgen_train_iteration", "Iterations done.", NULL, NULL);
    o->total =
        tg_stats_gauge(s, "textgen_train_iterations", "Iterations of the whole run.", NULL, NULL);
    o->reward =
        tg_stats_gauge(s, "textgen_train_reward", "Mean reward of the last iteration.", NULL, NULL);
    o->speed =
        tg_stats_gauge(s, "textgen_train_tokens_per_second", "Of the last iteration.", NULL, NULL);
}

tg_status tg_operations_open(tg_operations **out, const tg_ops_opts *opts, tg_security *security,
                             tg_error *err) {
    *out = NULL;
    tg_operations *o = tg_alloc(sizeof *o);
    if (!o) return tg_fail_nomem(err, sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
    const tg_ops_hooks hooks = {.program = "textgen-learner",
                                .make = make_stats,
                                .ready = is_ready,
                                .collect = collect,
                                .status = put_status,
                                .security = security,
                                .arg = o};
    tg_status st = tg_ops_thread_start(&o->thread, opts, &hooks, err);
    if (st != TG_OK) {
        tg_operations_close(&o);
        return st;
    }
    *out = o;
    return TG_OK;
}

void tg_operations_close(tg_operations **out) {
    tg_operations *o = *out;
    if (!o) return;
    *out = NULL;
    tg_ops_thread_stop(&o->thread);
    pthread_mutex_destroy(&o->lock);
    tg_free(o);
}

void tg_operations_set_pool(tg_operations *o, tg_pool *pool) {
    if (!o) return;
    pthread_mutex_lock(&o->lock);
    o->pool = pool;
    pthread_mutex_unlock(&o->lock);
}

void tg_operations_progress(tg_operations *o, const tg_track_progress *p) {
    if (!o) return;
    tg_stat_set(o->iteration, (double)p->done);
    tg_stat_set(o->total, (double)p->total);
    tg_stat_set(o->reward, p->reward);
    tg_stat_set(o->speed, p->tokens_per_s);
}
