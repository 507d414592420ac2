/* Hooks of the operations thread. The pool is borrowed under a lock, so that it can go while somebody looks. */
#include "learner/train/operations.h"

#include "common/base/alloc.h"
#include "common/net/fleet_status.h"
#include "common/net/net_figures.h"
#include "common/net/ops_thread.h"

#include <pthread.h>
#include <stdio.h>

struct tg_operations {
    tg_ops_thread *thread;
    pthread_mutex_t lock;
    tg_pool *pool;
    tg_fleet_figures fleet;
    tg_net_figures net;
    tg_stat *iteration, *total, *reward, *speed;
};

/* Whether there is a pool; stats and json may be NULL. */
static bool watch(tg_operations *o, tg_fleet_stats *stats, tg_buf *json) {
    pthread_mutex_lock(&o->lock);
    bool there = o->pool != NULL;
    if (there) tg_pool_watch(o->pool, stats, json);
    pthread_mutex_unlock(&o->lock);
    return there;
}

static bool is_ready(void *arg, char why[TG_OPS_WHY]) {
    tg_fleet_stats s;
    bool there = watch(arg, &s, NULL);
    if (there && s.workers > 0) return true;
    snprintf(why, TG_OPS_WHY, "%s", there ? "no worker is connected" : "waiting for workers");
    return false;
}

static void collect(void *arg) {
    tg_operations *o = arg;
    pthread_mutex_lock(&o->lock);
    if (o->pool) tg_pool_collect(o->pool, &o->fleet, &o->net);
    pthread_mutex_unlock(&o->lock);
}

static void put_status(void *arg, tg_buf *json) {
    tg_operations *o = arg;
    bool there = watch(o, NULL, json);
    tg_buf_printf(json, ", \"state\": \"%s\", \"iteration\": %.0f, \"iterations\": %.0f",
                  there ? "training" : "starting", tg_stat_value(o->iteration),
                  tg_stat_value(o->total));
}

static void make_stats(void *arg, tg_stats *s) {
    tg_operations *o = arg;
    tg_fleet_figures_init(&o->fleet, s);
    tg_net_figures_init(&o->net, s);
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
    tg_operations_set_pool(o, NULL); /* it may outlive the figures */
    tg_ops_thread_stop(&o->thread);
    pthread_mutex_destroy(&o->lock);
    tg_free(o);
}

void tg_operations_set_pool(tg_operations *o, tg_pool *pool) {
    if (!o) return;
    pthread_mutex_lock(&o->lock);
    if (o->pool) tg_pool_show(o->pool, NULL);
    if (pool) tg_pool_show(pool, &o->fleet);
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
