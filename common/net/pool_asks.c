/* Questions that any worker can answer: samples, metrics, scores. They change nothing in a worker, so one that dies
 * or has no room just has its question asked of another. */
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"

#include <stdio.h>

static void finish(tg_pool *p, tg_pool_ask *ask) {
    for (tg_pool_ask **at = &p->asks; *at; at = &(*at)->next) {
        if (*at != ask) continue;
        *at = ask->next;
        break;
    }
    ask->done = true;
    pthread_cond_broadcast(&p->changed);
}

static void fail(tg_pool *p, tg_pool_ask *ask, tg_status status, const char *why) {
    ask->status = tg_fail(&ask->error, status, "%s: %s", tg_msg_name(ask->type), why);
    finish(p, ask);
}

static tg_pool_ask *find(tg_pool *p, const tg_pool_worker *w, uint64_t seq) {
    for (tg_pool_ask *a = p->asks; a; a = a->next) {
        if (a->worker == w && a->seq == seq) return a;
    }
    return NULL;
}

/* The worker heard from most recently, so that a stalled one is not the first choice. */
static tg_pool_worker *choose(const tg_pool *p) {
    tg_pool_worker *best = NULL;
    for (tg_pool_worker *w = p->workers; w; w = w->next) {
        if (w->draining) continue;
        if (!best || tg_session_idle_ms(w->session) < tg_session_idle_ms(best->session)) best = w;
    }
    return best;
}

static void pump_one(tg_pool *p, tg_pool_ask *a, uint64_t now) {
    if (now >= a->deadline_ms) {
        fail(p, a, TG_TIMEOUT,
             !p->workers ? "no worker is connected"
             : a->worker ? "the worker did not answer in time"
                         : "no worker took the question in time");
        return;
    }
    if (a->worker || a->retry_ms > now) return;
    tg_pool_worker *w = choose(p);
    if (!w) return;
    tg_error err;
    uint64_t seq = ++p->seq;
    tg_status st =
        tg_session_send(w->session, &(tg_frame){.type = a->type, .seq = seq}, a->request, &err);
    if (st == TG_OK) {
        a->worker = w;
        a->seq = seq;
    } else if (st == TG_DATA) {
        fail(p, a, TG_DATA, err.msg); /* no worker would take it */
    } else {
        a->retry_ms = now + TG_POOL_RETRY_MS;
    }
}

void tg_pool_pump_asks(tg_pool *p) {
    uint64_t now = tg_clock_ms();
    for (tg_pool_ask *a = p->asks, *next; a; a = next) {
        next = a->next;
        pump_one(p, a, now);
    }
}

bool tg_pool_ask_replied(tg_pool *p, tg_pool_worker *w, const tg_frame *head, void *msg) {
    tg_pool_ask *a = find(p, w, head->seq);
    if (!a || a->reply_type != head->type) return false;
    a->reply = msg;
    a->status = TG_OK;
    finish(p, a);
    return true;
}

static tg_status status_of(tg_code code) {
    switch (code) {
    case TG_CODE_INVALID_ARGUMENT: return TG_DATA;
    case TG_CODE_NOT_FOUND: return TG_NOINPUT;
    case TG_CODE_TOO_LARGE: return TG_DATA;
    case TG_CODE_DEADLINE_EXCEEDED: return TG_TIMEOUT;
    default: return TG_UNAVAILABLE;
    }
}

bool tg_pool_ask_failed(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_wire_error *e) {
    tg_pool_ask *a = find(p, w, seq);
    if (!a) return false;
    if (e->code == TG_CODE_DRAINING) w->draining = true;
    if (tg_code_is_retryable(e->code)) {
        a->worker = NULL;
        a->retry_ms = tg_clock_ms() + TG_POOL_RETRY_MS;
        return true;
    }
    char why[TG_POOL_WHY + 32];
    snprintf(why, sizeof why, "%.220s (%s)", e->message, tg_code_name(e->code));
    fail(p, a, status_of(e->code), why);
    return true;
}

void tg_pool_asks_lost(tg_pool *p, tg_pool_worker *w) {
    for (tg_pool_ask *a = p->asks; a; a = a->next) {
        if (a->worker == w) a->worker = NULL;
    }
}

/* ---- the caller's side ---------------------------------------------------------------------- */

tg_status tg_pool_ask_run(tg_pool *p, tg_pool_ask *ask, tg_error *err) {
    pthread_mutex_lock(&p->mutex);
    ask->next = p->asks;
    p->asks = ask;
    uv_async_send(&p->wake);
    /* The I/O thread keeps the deadline; until then it may read the request. */
    while (!ask->done) pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    if (ask->status != TG_OK && err) *err = ask->error;
    return ask->status;
}

static uint64_t deadline(const tg_pool *p, int timeout_ms) {
    return tg_clock_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : p->opts.call_timeout_ms);
}

tg_status tg_pool_samples(tg_pool *p, tg_split split, uint64_t first, uint32_t n, tg_samples **out,
                          tg_error *err) {
    tg_sample_range range = {split, first, n};
    tg_pool_ask ask = {.type = TG_MSG_SAMPLE_RANGE,
                       .reply_type = TG_MSG_SAMPLES,
                       .request = &range,
                       .deadline_ms = deadline(p, 0)};
    tg_status st = tg_pool_ask_run(p, &ask, err);
    *out = ask.reply;
    return st;
}

tg_status tg_pool_metric(tg_pool *p, const tg_metric_request *req, tg_metric_reply **out,
                         int timeout_ms, tg_error *err) {
    tg_pool_ask ask = {.type = TG_MSG_METRIC,
                       .reply_type = TG_MSG_METRIC_REPLY,
                       .request = req,
                       .deadline_ms = deadline(p, timeout_ms)};
    tg_status st = tg_pool_ask_run(p, &ask, err);
    *out = ask.reply;
    return st;
}

tg_status tg_pool_score(tg_pool *p, const tg_score_request *req, tg_score_reply **out,
                        int timeout_ms, tg_error *err) {
    tg_pool_ask ask = {.type = TG_MSG_SCORE,
                       .reply_type = TG_MSG_SCORE_REPLY,
                       .request = req,
                       .deadline_ms = deadline(p, timeout_ms)};
    tg_status st = tg_pool_ask_run(p, &ask, err);
    *out = ask.reply;
    return st;
}
