/* Calls of reward workers: made, sent to the worker chosen for each, answered, refused, lost. */
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "env-server/reward/score_impl.h"
#include "env-server/reward/workers_impl.h"

#include <stdio.h>
#include <string.h>

enum { REFUSED_MS = 100, TICK_MS = 20 };

/* ---- answers (lock held) ------------------------------------------------------------------- */

static void take_out(tg_reward_workers *j, tg_reward_waiting *w) {
    for (tg_reward_waiting **at = &j->calls; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

static void finish(tg_reward_workers *j, tg_reward_waiting *w, tg_status status) {
    take_out(j, w);
    w->status = status;
    w->done = true;
    pthread_cond_signal(&w->wake);
}

static tg_reward_waiting *find_sent(tg_reward_workers *j, uint64_t session, uint64_t seq) {
    for (tg_reward_waiting *w = j->calls; w; w = w->next)
        if (w->sent && w->session == session && w->seq == seq) return w;
    return NULL;
}

/* Results may come in any order; each text needs its own. */
static tg_status take_results(const tg_score_reply *reply, tg_reward_waiting *w) {
    size_t n = w->call->n;
    if (reply->n != n)
        return tg_fail(w->err, TG_DATA, "the answer has %zu results for %zu texts", reply->n, n);
    memset(w->results, 0, n * sizeof *w->results);
    for (size_t i = 0; i < n; i++) {
        const tg_score_result *r = &reply->items[i];
        if (r->id >= n || w->results[r->id].status)
            return tg_fail(w->err, TG_DATA, "the answer has no result for every text");
        if (!tg_score_results_copy(&w->results[r->id], r, 1, w->call->arena))
            return tg_fail_nomem(w->err, sizeof *r);
    }
    return TG_OK;
}

/* Nothing was done: the call stays, and is made again, here or elsewhere. */
static void postpone(tg_reward_waiting *w, const tg_wire_error *e) {
    uint64_t wait = e->retry_after_ms > REFUSED_MS ? e->retry_after_ms : REFUSED_MS;
    tg_rng rng = tg_rng_at(tg_clock_ns(), TG_RNG_JITTER, w->seq, 0);
    w->sent = false;
    w->not_before_ms = tg_clock_ms() + wait + tg_rng_below(&rng, wait);
    (void)tg_fail(w->err, TG_UNAVAILABLE, "%s: %.600s", tg_code_name(e->code), e->message);
}

static tg_status failed(const tg_wire_error *e, tg_reward_waiting *w) {
    w->fault->retry = w->repeatable && e->code == TG_CODE_WORKER_LOST;
    return tg_fail(w->err, e->code == TG_CODE_DEADLINE_EXCEEDED ? TG_TIMEOUT : TG_UNAVAILABLE,
                   "%s: %.600s", tg_code_name(e->code), e->message);
}

/* A broker may find the function among its workers later; a worker that says it has it does not. */
static void take_error(tg_reward_workers *j, const tg_reward_judge *k, const tg_wire_error *e,
                       tg_reward_waiting *w) {
    bool undone = e->code == TG_CODE_OVERLOADED || e->code == TG_CODE_DRAINING ||
                  (e->code == TG_CODE_NOT_FOUND && k && !k->sure);
    if (undone)
        postpone(w, e);
    else
        finish(j, w, failed(e, w));
}

void tg_reward_workers_take_answer(tg_reward_workers *j, const tg_reward_judge *k, uint64_t session,
                                   const tg_frame *head, const void *msg) {
    pthread_mutex_lock(&j->lock);
    tg_reward_waiting *w = find_sent(j, session, head->seq);
    if (w && head->type == TG_MSG_ERROR)
        take_error(j, k, msg, w);
    else if (w)
        finish(j, w, take_results(msg, w));
    pthread_mutex_unlock(&j->lock);
}

void tg_reward_workers_lose(tg_reward_workers *j, uint64_t session, const char *reason) {
    pthread_mutex_lock(&j->lock);
    for (tg_reward_waiting *w = j->calls, *next; w; w = next) {
        next = w->next;
        if (!w->sent || w->session != session) continue;
        if (w->repeatable && !j->stopping)
            w->sent = false; /* another worker may judge it */
        else
            finish(j, w,
                   tg_fail(w->err, TG_UNAVAILABLE, "the reward worker was lost: %.500s", reason));
    }
    pthread_mutex_unlock(&j->lock);
}

void tg_reward_workers_fail_all(tg_reward_workers *j) {
    pthread_mutex_lock(&j->lock);
    while (j->calls)
        finish(j, j->calls, tg_fail(j->calls->err, TG_UNAVAILABLE, "the reward is shutting down"));
    pthread_mutex_unlock(&j->lock);
}

/* ---- sending (loop thread) ----------------------------------------------------------------- */

static tg_status send_call(tg_reward_workers *j, tg_reward_judge *k, tg_reward_waiting *w) {
    const tg_score_call *c = w->call;
    uint64_t now = tg_clock_ns();
    tg_score_item *items = tg_arena_array(c->arena, c->n, sizeof *items);
    if (!items) return tg_fail_nomem(w->err, c->n * sizeof *items);
    for (size_t i = 0; i < c->n; i++) {
        items[i] = c->texts[i]->item;
        items[i].id = i;
    }
    tg_score_request request = {.fn = j->fn, .items = items, .n = c->n, .ranked = c->ranked};
    request.deadline_ms =
        c->deadline_ns > now ? (uint32_t)((c->deadline_ns - now) / 1000000) + 1 : 1;
    tg_frame head = {.type = TG_MSG_SCORE, .seq = ++j->next_seq};
    tg_status st = tg_session_send(k->session, &head, &request, w->err);
    if (st != TG_OK) return st;
    w->sent = true;
    w->seq = head.seq, w->session = tg_session_id(k->session);
    w->repeatable = j->deterministic || k->deterministic;
    k->in_flight++;
    return TG_OK;
}

static void on_timer(uv_timer_t *timer);

void tg_reward_workers_dispatch(tg_reward_workers *j) {
    uint64_t now = tg_clock_ms();
    bool later = false;
    pthread_mutex_lock(&j->lock);
    for (tg_reward_waiting *w = j->calls, *next; w; w = next) {
        next = w->next;
        bool early = !w->sent && w->not_before_ms > now;
        later |= early;
        tg_reward_judge *k = w->sent || early ? NULL : tg_reward_workers_choose(j);
        if (!k) continue;
        tg_status st = send_call(j, k, w);
        if (st == TG_OK) continue;
        w->fault->retry = st == TG_BUSY || st == TG_UNAVAILABLE; /* it never left */
        finish(j, w, st);
    }
    pthread_mutex_unlock(&j->lock);
    if (later && !uv_is_active((uv_handle_t *)&j->timer))
        uv_timer_start(&j->timer, on_timer, TICK_MS, 0);
}

static void on_timer(uv_timer_t *timer) {
    tg_reward_workers_dispatch(timer->data);
}

/* ---- calling ------------------------------------------------------------------------------- */

tg_status tg_reward_workers_call(tg_reward_workers *j, const tg_score_call *call,
                                 tg_score_result *results, tg_score_fault *fault, tg_error *err) {
    tg_reward_waiting w = {.call = call, .results = results, .fault = fault, .err = err};
    if (tg_score_cond_init(&w.wake)) return tg_fail_nomem(err, sizeof w);
    pthread_mutex_lock(&j->lock);
    if (j->stopping) {
        w.status = tg_fail(err, TG_UNAVAILABLE, "the reward is shutting down");
        w.done = true;
    } else {
        tg_reward_waiting **end = &j->calls;
        while (*end) end = &(*end)->next;
        *end = &w;
        uv_async_send(&j->async);
    }
    while (!w.done && tg_score_wait_until(&w.wake, &j->lock, call->deadline_ns)) continue;
    if (!w.done) {
        take_out(j, &w);
        char refusal[sizeof err->msg];
        snprintf(refusal, sizeof refusal, "%s", w.not_before_ms ? err->msg : "");
        w.status = tg_fail(err, TG_TIMEOUT, "%s%s%.600s",
                           w.sent ? "the reward worker did not answer in time"
                                  : "no reward worker has the function",
                           refusal[0] ? "; refused before: " : "", refusal);
    }
    pthread_mutex_unlock(&j->lock);
    pthread_cond_destroy(&w.wake);
    return w.status;
}
