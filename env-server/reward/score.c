/* The asker's side of a scorer: from inputs to requests in the queue, and the wait for their answers. A request given up
 * at its deadline stays in memory until its lane is done with it. */
#include "env-server/reward/score.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "env-server/reward/score_impl.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum { GRACE_MS = 200 };

int tg_score_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    int code = pthread_condattr_init(&attr);
    if (code) return code;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    code = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return code;
}

bool tg_score_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t at_ns) {
    struct timespec at = {.tv_sec = (time_t)(at_ns / 1000000000),
                          .tv_nsec = (long)(at_ns % 1000000000)};
    return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}

/* ---- requests ------------------------------------------------------------------------------ */

static void free_request(tg_score_ticket *r) {
    if (!r) return;
    tg_arena_fini(&r->arena);
    tg_free(r);
}

void tg_score_ticket_unref(tg_score_ticket *r) {
    if (--r->refs == 0) free_request(r);
}

static tg_status make_request(tg_score_ticket **out, const tg_reward_input *in, size_t n,
                              tg_error *err) {
    tg_score_ticket *r = *out = tg_alloc(sizeof *r);
    if (!r) return tg_fail_nomem(err, sizeof *r);
    r->refs = 1;
    r->n = n;
    r->texts = tg_arena_array(&r->arena, n, sizeof *r->texts);
    r->results = tg_arena_array(&r->arena, n, sizeof *r->results);
    tg_status st = r->texts && r->results ? TG_OK : tg_fail_nomem(err, n * sizeof *r->texts);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        st = tg_score_text_copy(&r->texts[i], &in[i], &r->arena, err);
    return st;
}

void tg_score_ticket_fail(tg_score_ticket *r, tg_reward_status status, const char *why) {
    const char *message = tg_arena_strdup(&r->arena, why);
    for (size_t i = 0; i < r->n; i++)
        r->results[i] = (tg_score_result){
            .status = status, .value = (double)NAN, .message = message ? message : ""};
}

void tg_score_ticket_finish(tg_scorer *s, tg_score_ticket *r) {
    for (size_t i = 0; i < r->n; i++) s->stats.results[r->results[i].status]++;
    r->finished = true;
    if (r->waiter && --r->waiter->pending == 0) pthread_cond_signal(&r->waiter->wake);
    tg_score_ticket_unref(r);
}

/* ---- asking -------------------------------------------------------------------------------- */

typedef struct ask {
    tg_score_ticket **requests;
    size_t n, per_request;
    tg_score_waiter waiter;
} ask;

static tg_status prepare(ask *a, const tg_scorer *s, const tg_reward_input *in, size_t n,
                         tg_error *err) {
    a->per_request = s->opts.ranked ? n : 1;
    size_t count = s->opts.ranked ? 1 : n;
    a->requests = tg_alloc_array(count, sizeof *a->requests);
    if (!a->requests) return tg_fail_nomem(err, count * sizeof *a->requests);
    for (; a->n < count; a->n++) {
        tg_score_ticket *r;
        tg_status st = make_request(&r, in + a->n * a->per_request, a->per_request, err);
        if (st != TG_OK) {
            free_request(r);
            return st;
        }
        if (s->cache) r->keyed = tg_score_key(s->opts.identity, r->texts, r->n, r->key);
        a->requests[a->n] = r;
    }
    return TG_OK;
}

/* Lock held. Answers from the cache what is there and queues the rest, or nothing at all. */
static tg_status enqueue(tg_scorer *s, ask *a, tg_error *err) {
    size_t wanted = 0;
    uint64_t now = tg_clock_ns();
    for (size_t i = 0; i < a->n; i++) {
        tg_score_ticket *r = a->requests[i];
        r->finished = r->keyed && tg_score_cache_get(s->cache, r->key, &r->arena, r->results, r->n);
        if (!r->finished) wanted += r->n;
    }
    if (s->stopping) return tg_fail(err, TG_UNAVAILABLE, "the reward is shutting down");
    /* A single ask larger than the whole queue may have an empty one for itself. */
    if (wanted && s->n_queued && s->n_queued + wanted > s->opts.max_queue) {
        s->stats.refused += wanted;
        return tg_fail(err, TG_BUSY, "%s: %zu texts are waiting, max_queue is %zu", s->opts.name,
                       s->n_queued, s->opts.max_queue);
    }
    for (size_t i = 0; i < a->n; i++) {
        tg_score_ticket *r = a->requests[i];
        if (r->finished) {
            s->stats.cache_hits += r->n;
            s->stats.results[TG_REWARD_OK] += r->n;
            continue;
        }
        r->queued_ns = now;
        r->deadline_ns = now + (uint64_t)s->opts.timeout_ms * 1000000;
        r->waiter = &a->waiter;
        r->refs++;
        a->waiter.pending++;
        *(s->last ? &s->last->next : &s->first) = r;
        s->last = r;
        s->n_queued += r->n;
    }
    if (wanted) pthread_cond_broadcast(&s->work);
    return TG_OK;
}

/* Lock held. Waits for all answers; what is not there at the deadline is given up. The lane keeps the same deadline and
 * knows better what was missing, so it is given a moment to say so. */
static void await(tg_scorer *s, ask *a) {
    uint64_t deadline = tg_clock_ns() + (uint64_t)(s->opts.timeout_ms + GRACE_MS) * 1000000;
    while (a->waiter.pending && tg_score_wait_until(&a->waiter.wake, &s->lock, deadline)) continue;
    for (size_t i = 0; i < a->n; i++) {
        tg_score_ticket *r = a->requests[i];
        r->waiter = NULL;
        if (!r->finished) s->stats.results[TG_REWARD_TIMEOUT] += r->n;
    }
}

static void deliver(const tg_scorer *s, const ask *a, const tg_reward_input *in,
                    tg_reward_value *out, tg_error *err) {
    for (size_t i = 0; i < a->n; i++) {
        const tg_score_ticket *r = a->requests[i];
        for (size_t k = 0; k < r->n; k++) {
            size_t at = i * a->per_request + k;
            if (!r->finished) {
                out[at] = (tg_reward_value){TG_REWARD_TIMEOUT, (double)NAN};
                (void)tg_fail(err, TG_TIMEOUT, "no answer within %u ms", s->opts.timeout_ms);
                continue;
            }
            const tg_score_result *result = &r->results[k];
            out[at] = (tg_reward_value){result->status, result->value};
            if (result->status != TG_REWARD_OK)
                (void)tg_fail(err, TG_UNAVAILABLE, "%s", result->message);
            for (size_t c = 0; in[at].details && c < result->n_components; c++)
                tg_reward_details_add(in[at].details, result->components[c].name,
                                      result->components[c].value, result->components[c].status);
        }
    }
}

tg_status tg_scorer_score(tg_scorer *s, const tg_reward_input *in, size_t n, tg_reward_value *out,
                          tg_error *err) {
    if (n == 0) return TG_OK;
    ask a = {0};
    if (tg_score_cond_init(&a.waiter.wake)) return tg_fail_nomem(err, sizeof a.waiter);
    tg_status st = prepare(&a, s, in, n, err);
    if (st == TG_OK) {
        pthread_mutex_lock(&s->lock);
        st = enqueue(s, &a, err);
        if (st == TG_OK) await(s, &a);
        pthread_mutex_unlock(&s->lock);
    }
    if (st == TG_OK) deliver(s, &a, in, out, err);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < a.n; i++) tg_score_ticket_unref(a.requests[i]);
    pthread_mutex_unlock(&s->lock);
    tg_free(a.requests);
    pthread_cond_destroy(&a.waiter.wake);
    return st;
}

void tg_scorer_get_stats(tg_scorer *s, tg_score_stats *out) {
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    out->queued = s->n_queued;
    out->breaker = s->breaker.state;
    out->breaker_opened = s->breaker.opened;
    pthread_mutex_unlock(&s->lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

tg_status tg_scorer_create(tg_scorer **out, const tg_score_opts *opts, const tg_score_ops *ops,
                           void *backend, tg_error *err) {
    tg_scorer *s = *out = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->opts = *opts;
    s->ops = ops;
    s->backend = backend;
    s->breaker.open_ms = opts->breaker_ms;
    if (!s->opts.max_batch) s->opts.max_batch = 1;
    s->opts.concurrency = TG_MAX(1, TG_MIN(opts->concurrency, TG_SCORE_LANES));
    tg_status st = TG_OK;
    if (pthread_mutex_init(&s->lock, NULL) || tg_score_cond_init(&s->work)) {
        tg_free(s);
        *out = NULL;
        return tg_fail(err, TG_NOMEM, "%s: no lock could be made", opts->name);
    }
    if (opts->cache && opts->deterministic) st = tg_score_cache_create(&s->cache, opts->cache, err);
    while (st == TG_OK && s->n_lanes < s->opts.concurrency) {
        tg_score_lane *lane = &s->lanes[s->n_lanes];
        *lane = (tg_score_lane){.scorer = s, .index = s->n_lanes};
        if (pthread_create(&lane->thread, NULL, tg_score_lane_run, lane))
            st = tg_fail(err, TG_UNAVAILABLE, "%s: no thread could be started", opts->name);
        else
            s->n_lanes++;
    }
    if (st != TG_OK) tg_scorer_destroy(out);
    return st;
}

void tg_scorer_destroy(tg_scorer **out) {
    tg_scorer *s = *out;
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    if (s->ops->interrupt) s->ops->interrupt(s->backend);
    for (int i = 0; i < s->n_lanes; i++) {
        pthread_join(s->lanes[i].thread, NULL);
        tg_arena_fini(&s->lanes[i].arena);
    }
    pthread_mutex_lock(&s->lock);
    for (tg_score_ticket *r = s->first, *next; r; r = next) {
        next = r->next;
        tg_score_ticket_fail(r, TG_REWARD_FAILED, "the reward is shutting down");
        tg_score_ticket_finish(s, r);
    }
    pthread_mutex_unlock(&s->lock);
    tg_score_cache_destroy(&s->cache);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    tg_free(s);
    *out = NULL;
}
