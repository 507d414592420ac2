/* Blocking questions to any one worker: the fleet's asks, waited for. */
#include "common/base/clock.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"

/* Lives on the caller's stack. */
typedef struct pool_ask {
    tg_fleet_ask ask; /* first: an ask is its pool_ask */
    tg_pool *pool;
    bool done;
} pool_ask;

static void on_done(tg_fleet_ask *ask) {
    pool_ask *a = (pool_ask *)ask;
    a->done = true;
    pthread_cond_broadcast(&a->pool->changed);
}

/* Mutex held. A signal wakes nobody: it is looked for now and then. */
static void wait_done(pool_ask *a) {
    enum { LOOK_MS = 100 };
    tg_pool *p = a->pool;
    while (!a->done) {
        if (p->opts.stop && p->opts.stop(p->opts.stop_arg)) {
            tg_fleet_ask_cancel(p->fleet, &a->ask);
            a->ask.status =
                tg_fail(&a->ask.error, TG_INTERRUPTED, "%s: stopped before a worker answered",
                        tg_msg_name(a->ask.type));
            return;
        }
        tg_pool_wait_until(p, tg_clock_ms() + LOOK_MS);
    }
}

/* The fleet keeps the deadline; until then it may read the request. */
static tg_status ask(tg_pool *p, tg_msg_type type, tg_msg_type reply_type, const void *request,
                     int timeout_ms, void **reply, tg_error *err) {
    int timeout = timeout_ms > 0 ? timeout_ms : p->opts.call_timeout_ms;
    pool_ask a = {.pool = p};
    a.ask = (tg_fleet_ask){.type = type,
                           .reply_type = reply_type,
                           .request = request,
                           .deadline_ms = tg_clock_ms() + (uint64_t)timeout,
                           .on_done = on_done};
    tg_pool_lock(p);
    tg_fleet_ask_begin(p->fleet, &a.ask);
    uv_async_send(&p->wake);
    wait_done(&a);
    tg_pool_unlock(p);
    *reply = a.ask.reply;
    if (a.ask.status != TG_OK && err) *err = a.ask.error;
    return a.ask.status;
}

tg_status tg_pool_samples(tg_pool *p, tg_split split, uint64_t first, uint32_t n, tg_samples **out,
                          tg_error *err) {
    tg_sample_range range = {split, first, n};
    return ask(p, TG_MSG_SAMPLE_RANGE, TG_MSG_SAMPLES, &range, 0, (void **)out, err);
}

tg_status tg_pool_metric(tg_pool *p, const tg_metric_request *req, tg_metric_reply **out,
                         int timeout_ms, tg_error *err) {
    return ask(p, TG_MSG_METRIC, TG_MSG_METRIC_REPLY, req, timeout_ms, (void **)out, err);
}

tg_status tg_pool_score(tg_pool *p, const tg_score_request *req, tg_score_reply **out,
                        int timeout_ms, tg_error *err) {
    return ask(p, TG_MSG_SCORE, TG_MSG_SCORE_REPLY, req, timeout_ms, (void **)out, err);
}
