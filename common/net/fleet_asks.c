/* Questions that any worker can answer: samples, metrics, scores. */
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/fleet_impl.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

static bool unlink_ask(tg_fleet *f, tg_fleet_ask *ask) {
    for (tg_fleet_ask **at = &f->asks; *at; at = &(*at)->next) {
        if (*at != ask) continue;
        *at = ask->next;
        if (ask->worker) ask->worker->asked--;
        ask->worker = NULL;
        return true;
    }
    return false;
}

static void finish(tg_fleet *f, tg_fleet_ask *ask) {
    if (unlink_ask(f, ask)) ask->on_done(ask);
}

static void fail(tg_fleet *f, tg_fleet_ask *ask, tg_status status, tg_code code, const char *why) {
    ask->status = tg_fail(&ask->error, status, "%s: %s", tg_msg_name(ask->type), why);
    ask->code = code;
    finish(f, ask);
}

static tg_fleet_ask *find(tg_fleet *f, const tg_fleet_worker *w, uint64_t seq) {
    for (tg_fleet_ask *a = f->asks; a; a = a->next) {
        if (a->worker == w && a->seq == seq) return a;
    }
    return NULL;
}

static const tg_reward_fn *function_of(const tg_fleet_worker *w, const char *name) {
    size_t n;
    const tg_reward_fn *fns = tg_session_functions(w->session, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(fns[i].name, name) == 0) return &fns[i];
    return NULL;
}

static bool names_functions(const tg_fleet_worker *w) {
    return tg_session_minor(w->session) >= 1;
}

/* Reward workers answer for the functions they have; everything else is a question to the environment's workers. */
static bool can_answer(const tg_fleet *f, const tg_fleet_worker *w, const tg_fleet_ask *a) {
    if (w->draining || w->detached) return false;
    if (a->type != TG_MSG_SCORE) return !w->scores;
    const char *fn = ((const tg_score_request *)a->request)->fn;
    if (w->scores) return function_of(w, fn) != NULL;
    if (*fn && names_functions(w) && !function_of(w, fn)) return false;
    if (!f->stats.reward_workers) return true;
    for (const tg_fleet_worker *o = f->workers; o; o = o->next)
        if (o->scores && function_of(o, fn)) return false;
    return true;
}

/* The one with the fewest questions under way; of these the one heard from most recently, so that a stalled
 * worker is not the first choice. */
static tg_fleet_worker *choose(const tg_fleet *f, const tg_fleet_ask *a) {
    tg_fleet_worker *best = NULL;
    for (tg_fleet_worker *w = f->workers; w; w = w->next) {
        if (!can_answer(f, w, a)) continue;
        if (!best || w->asked < best->asked ||
            (w->asked == best->asked &&
             tg_session_idle_ms(w->session) < tg_session_idle_ms(best->session)))
            best = w;
    }
    return best;
}

/* A function by name, while environment workers are there: it is none of theirs, and no reward worker has it. */
static bool nobody_has(const tg_fleet *f, const tg_fleet_ask *a) {
    if (a->type != TG_MSG_SCORE || !*((const tg_score_request *)a->request)->fn) return false;
    const char *fn = ((const tg_score_request *)a->request)->fn;
    for (const tg_fleet_worker *w = f->workers; w; w = w->next)
        if (function_of(w, fn) || (!w->scores && !names_functions(w))) return false;
    return f->workers != NULL;
}

static void pump_one(tg_fleet *f, tg_fleet_ask *a, uint64_t now) {
    if (now >= a->deadline_ms) {
        fail(f, a, TG_TIMEOUT, TG_CODE_DEADLINE_EXCEEDED,
             !f->workers ? "no worker is connected"
             : a->worker ? "the worker did not answer in time"
                         : "no worker took the question in time");
        return;
    }
    if (a->worker || a->retry_ms > now) return;
    tg_fleet_worker *w = choose(f, a);
    if (!w && nobody_has(f, a)) {
        fail(f, a, TG_UNAVAILABLE, TG_CODE_NOT_FOUND, "no worker has this function now");
        return;
    }
    if (!w) return;
    tg_error err;
    uint64_t seq = ++f->seq;
    tg_status st =
        tg_session_send(w->session, &(tg_frame){.type = a->type, .seq = seq}, a->request, &err);
    if (st == TG_OK) {
        a->worker = w;
        a->seq = seq;
        tg_fleet_sent(f, a->type, seq);
        w->asked++;
    } else if (st == TG_DATA) {
        fail(f, a, TG_DATA, TG_CODE_TOO_LARGE, err.msg); /* no worker would take it */
    } else {
        a->retry_ms = now + TG_FLEET_RETRY_MS;
    }
}

void tg_fleet_pump_asks(tg_fleet *f) {
    uint64_t now = tg_clock_ms();
    for (tg_fleet_ask *a = f->asks, *next; a; a = next) {
        next = a->next;
        pump_one(f, a, now);
    }
}

bool tg_fleet_ask_replied(tg_fleet *f, tg_fleet_worker *w, const tg_frame *head, void *msg) {
    tg_fleet_ask *a = find(f, w, head->seq);
    if (!a || a->reply_type != head->type) return false;
    a->reply = msg;
    a->status = TG_OK;
    a->code = TG_CODE_OK;
    finish(f, a);
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

static void ask_again(tg_fleet_ask *a, uint64_t retry_ms) {
    a->worker->asked--;
    a->worker = NULL;
    a->retry_ms = retry_ms;
}

bool tg_fleet_ask_failed(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_wire_error *e) {
    tg_fleet_ask *a = find(f, w, seq);
    if (!a) return false;
    if (e->code == TG_CODE_DRAINING) w->draining = true;
    if (tg_code_is_retryable(e->code)) {
        ask_again(a, tg_clock_ms() + TG_FLEET_RETRY_MS);
        return true;
    }
    char why[TG_FLEET_WHY + 32];
    snprintf(why, sizeof why, "%.220s (%s)", e->message, tg_code_name(e->code));
    fail(f, a, status_of(e->code), e->code, why);
    return true;
}

/* A score that may have been computed must not be computed again unless that gives the same number. */
static bool may_repeat(const tg_fleet *f, const tg_fleet_worker *w, const tg_fleet_ask *a) {
    if (a->type != TG_MSG_SCORE) return true;
    if (!w->scores) return f->first->spec.deterministic;
    const tg_reward_fn *fn = function_of(w, ((const tg_score_request *)a->request)->fn);
    return fn && fn->deterministic;
}

void tg_fleet_asks_lost(tg_fleet *f, tg_fleet_worker *w) {
    for (tg_fleet_ask *a = f->asks, *next; a; a = next) {
        next = a->next;
        if (a->worker != w) continue;
        if (may_repeat(f, w, a))
            ask_again(a, 0);
        else
            fail(f, a, TG_UNAVAILABLE, TG_CODE_WORKER_LOST,
                 "its worker is gone, and the function is not deterministic");
    }
}

void tg_fleet_ask_begin(tg_fleet *f, tg_fleet_ask *ask) {
    ask->reply = NULL;
    ask->worker = NULL;
    ask->retry_ms = 0;
    ask->next = f->asks;
    f->asks = ask;
}

void tg_fleet_ask_cancel(tg_fleet *f, tg_fleet_ask *ask) {
    unlink_ask(f, ask);
}
