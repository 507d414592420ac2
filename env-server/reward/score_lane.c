/* A lane of a scorer: gathers requests into one call, makes it, tries again where that is safe, and hands the results
 * out. The lock is not held during a call. */
#include "env-server/reward/score_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rng.h"

#include <math.h>
#include <string.h>

enum { BACKOFF_MS = 50, BACKOFF_MAX_MS = 5000 };

typedef struct batch {
    tg_score_ticket *first; /* linked by next */
    size_t n;               /* texts */
    uint64_t deadline_ns;   /* the latest of its requests */
    const tg_score_text **texts;
    tg_score_result *results;
} batch;

/* ---- gathering (lock held) ----------------------------------------------------------------- */

static tg_score_ticket *pop(tg_scorer *s) {
    tg_score_ticket *r = s->first;
    s->first = r->next;
    if (!s->first) s->last = NULL;
    s->n_queued -= r->n;
    r->next = NULL;
    return r;
}

/* A request nobody waits for any more is not worth a call. */
static void drop_abandoned(tg_scorer *s) {
    while (s->first && !s->first->waiter) {
        tg_score_ticket *r = pop(s);
        tg_score_ticket_unref(r);
    }
}

/* Waits until there is something to call with. False: the end. */
static bool await_work(tg_scorer *s) {
    for (;;) {
        drop_abandoned(s);
        if (s->stopping) return false;
        if (!s->first) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        uint64_t full_ns = s->first->queued_ns + (uint64_t)s->opts.max_wait_ms * 1000000;
        if (s->opts.ranked || s->n_queued >= s->opts.max_batch || tg_clock_ns() >= full_ns)
            return true;
        tg_score_wait_until(&s->work, &s->lock, full_ns);
    }
}

static void take(tg_scorer *s, batch *b) {
    tg_score_ticket **end = &b->first;
    do {
        tg_score_ticket *r = pop(s);
        if (!r->waiter) {
            tg_score_ticket_unref(r);
        } else {
            *end = r, end = &r->next;
            b->n += r->n;
            b->deadline_ns = TG_MAX(b->deadline_ns, r->deadline_ns);
        }
    } while (s->first && !s->opts.ranked && b->n + s->first->n <= s->opts.max_batch);
}

/* ---- calling (lock not held) --------------------------------------------------------------- */

static bool arrange(batch *b, tg_arena *arena) {
    b->texts = tg_arena_array(arena, b->n, sizeof *b->texts);
    b->results = tg_arena_array(arena, b->n, sizeof *b->results);
    if (!b->texts || !b->results) return false;
    size_t at = 0;
    for (tg_score_ticket *r = b->first; r; r = r->next)
        for (size_t i = 0; i < r->n; i++) {
            r->texts[i].item.id = at;
            b->texts[at++] = &r->texts[i];
        }
    return true;
}

/* What came from outside is checked here, whatever the backend: a number is finite, a status is one of an answer. */
static bool check_results(batch *b) {
    bool any = false;
    for (size_t i = 0; i < b->n; i++) {
        tg_score_result *r = &b->results[i];
        if (!r->message) r->message = "";
        if (r->status == TG_REWARD_OK && !isfinite(r->value))
            r->status = TG_REWARD_INVALID, r->message = "the value is not a finite number";
        if (r->status != TG_REWARD_OK && r->status != TG_REWARD_FAILED &&
            r->status != TG_REWARD_TIMEOUT && r->status != TG_REWARD_INVALID)
            r->status = TG_REWARD_INVALID, r->message = "an unknown status";
        if (r->status != TG_REWARD_OK) {
            r->value = (double)NAN;
            if (!*r->message) r->message = "the function gave no reason";
        }
        any |= r->status == TG_REWARD_OK;
    }
    return any;
}

static bool allowed(tg_scorer *s, tg_error *err) {
    pthread_mutex_lock(&s->lock);
    bool yes = tg_breaker_allow(&s->breaker, tg_clock_ms());
    if (!yes) s->stats.refused_open++;
    pthread_mutex_unlock(&s->lock);
    if (!yes)
        (void)tg_fail(err, TG_UNAVAILABLE,
                      "%s failed in %d of its last %d calls and is left alone for %u ms",
                      s->opts.name, TG_BREAKER_FAILURES, TG_BREAKER_WINDOW, s->opts.breaker_ms);
    return yes;
}

static void record(tg_scorer *s, uint64_t start_ns, bool succeeded) {
    uint64_t now = tg_clock_ns();
    pthread_mutex_lock(&s->lock);
    tg_breaker_state before = s->breaker.state;
    tg_breaker_record(&s->breaker, now / 1000000, succeeded);
    bool opened = before != TG_BREAKER_OPEN && s->breaker.state == TG_BREAKER_OPEN;
    s->stats.active--;
    s->stats.seconds += (double)(now - start_ns) * 1e-9;
    pthread_mutex_unlock(&s->lock);
    if (opened)
        tg_log_warn("reward", "%s fails: no call for %u ms", s->opts.name, s->opts.breaker_ms);
}

/* Full jitter: anything up to a bound that doubles. False: there is no time for another call, or the end. */
static bool back_off(tg_score_lane *lane, int attempt, uint32_t after_ms, uint64_t deadline_ns) {
    tg_scorer *s = lane->scorer;
    uint64_t bound = TG_MIN((uint64_t)BACKOFF_MS << TG_MIN(attempt, 10), (uint64_t)BACKOFF_MAX_MS);
    tg_rng rng = tg_rng_at(tg_clock_ns(), TG_RNG_JITTER, lane->draws++, (uint64_t)lane->index);
    uint64_t ms = after_ms + tg_rng_below(&rng, bound + 1);
    uint64_t until = tg_clock_ns() + ms * 1000000;
    if (until >= deadline_ns) return false;
    pthread_mutex_lock(&s->lock);
    s->stats.retries++;
    while (!s->stopping && tg_score_wait_until(&s->work, &s->lock, until)) continue;
    bool go_on = !s->stopping;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

static tg_status call(tg_score_lane *lane, batch *b, tg_error *err) {
    tg_scorer *s = lane->scorer;
    for (int attempt = 0;; attempt++) {
        tg_score_call c = {.texts = b->texts,
                           .n = b->n,
                           .ranked = s->opts.ranked,
                           .deadline_ns = b->deadline_ns,
                           .arena = &lane->arena};
        tg_score_fault fault = {0};
        if (!allowed(s, err)) return TG_UNAVAILABLE;
        pthread_mutex_lock(&s->lock);
        s->stats.calls++, s->stats.active++;
        pthread_mutex_unlock(&s->lock);
        memset(b->results, 0, b->n * sizeof *b->results);
        uint64_t start = tg_clock_ns();
        tg_status st = s->ops->call(s->backend, lane->index, &c, b->results, &fault, err);
        record(s, start, st == TG_OK && check_results(b));
        if (st == TG_OK || !fault.retry || attempt >= s->opts.retries) return st;
        if (!back_off(lane, attempt, fault.retry_after_ms, b->deadline_ns)) return st;
    }
}

/* ---- handing out --------------------------------------------------------------------------- */

static tg_reward_status status_of(tg_status st) {
    switch (st) {
    case TG_TIMEOUT: return TG_REWARD_TIMEOUT;
    case TG_DATA:
    case TG_PROTOCOL: return TG_REWARD_INVALID;
    default: return TG_REWARD_FAILED;
    }
}

static void hand_out(tg_scorer *s, batch *b, tg_status st, const tg_error *err) {
    size_t at = 0;
    pthread_mutex_lock(&s->lock);
    for (tg_score_ticket *r = b->first, *next; r; r = next) {
        next = r->next;
        if (!r->waiter) { /* given up meanwhile, and answered so */
            at += r->n;
            tg_score_ticket_unref(r);
            continue;
        }
        if (st != TG_OK)
            tg_score_ticket_fail(r, status_of(st), err->msg);
        else if (!tg_score_results_copy(r->results, b->results + at, r->n, &r->arena))
            tg_score_ticket_fail(r, TG_REWARD_FAILED, "out of memory");
        else if (r->keyed)
            tg_score_cache_put(s->cache, r->key, r->results, r->n);
        at += r->n;
        tg_score_ticket_finish(s, r);
    }
    pthread_mutex_unlock(&s->lock);
}

void *tg_score_lane_run(void *arg) {
    tg_score_lane *lane = arg;
    tg_scorer *s = lane->scorer;
    if (s->ops->enter) s->ops->enter(s->backend, lane->index);
    pthread_mutex_lock(&s->lock);
    while (await_work(s)) {
        batch b = {0};
        tg_error err = {0};
        take(s, &b);
        pthread_mutex_unlock(&s->lock);
        if (b.first) {
            tg_arena_reset(&lane->arena);
            tg_status st = arrange(&b, &lane->arena) ? call(lane, &b, &err)
                                                     : tg_fail_nomem(&err, b.n * sizeof *b.results);
            hand_out(s, &b, st, &err);
        }
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    if (s->ops->leave) s->ops->leave(s->backend, lane->index);
    return NULL;
}
