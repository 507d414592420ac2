/* A queue of groups, a list of answers, and a few threads between them that wait for the workers. */
#include "learner/train/ranking.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "proto/codec.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { THREADS = 4 };

typedef struct question {
    struct question *next;
    tg_ranking_group group;
    tg_score_item *items; /* (n) */
    tg_ranking_answer answer;
} question;

struct tg_ranking {
    tg_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    question *first, *last; /* waiting */
    question *done;
    bool stopping;
    pthread_t threads[THREADS];
    int n_threads;
    int pending; /* of the caller's thread */
};

static tg_status check_reply(const tg_score_reply *reply, size_t n, tg_error *err) {
    if (reply->n != n)
        return tg_fail(err, TG_PROTOCOL, "a worker ranked %zu of %zu samples", reply->n, n);
    for (size_t i = 0; i < n; i++)
        if (reply->items[i].id != i)
            return tg_fail(err, TG_PROTOCOL, "a worker answered for sample %llu instead of %zu",
                           (unsigned long long)reply->items[i].id, i);
    return TG_OK;
}

static tg_status rank(tg_ranking *r, question *q, tg_score_reply **reply, tg_error *err) {
    tg_samples *samples = NULL;
    *reply = NULL;
    tg_status st = tg_pool_samples(r->pool, TG_SPLIT_TRAIN, q->group.sample, 1, &samples, err);
    if (st == TG_OK && samples->n != 1)
        st = tg_fail(err, TG_PROTOCOL, "a worker has no sample %llu",
                     (unsigned long long)q->group.sample);
    for (size_t i = 0; i < q->group.n && st == TG_OK; i++) {
        const tg_sample *s = &samples->items[0];
        q->items[i] = (tg_score_item){.id = i, .prompt = s->prompt_text, .meta_json = s->meta_json};
        q->items[i].completion = q->group.texts[i];
        q->items[i].references = s->references, q->items[i].n_references = s->n_references;
    }
    tg_score_request request = {.fn = "", .items = q->items, .n = q->group.n, .ranked = true};
    if (st == TG_OK) st = tg_pool_score(r->pool, &request, reply, 0, err);
    tg_msg_free(samples);
    if (st == TG_OK) st = check_reply(*reply, q->group.n, err);
    if (st != TG_OK && *reply) {
        tg_msg_free(*reply);
        *reply = NULL;
    }
    return st;
}

static void *work(void *arg) {
    tg_ranking *r = arg;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->first && !r->stopping) pthread_cond_wait(&r->asked, &r->lock);
        question *q = r->first;
        if (r->stopping || !q) break;
        r->first = q->next;
        if (!r->first) r->last = NULL;
        pthread_mutex_unlock(&r->lock);
        q->answer.tag = q->group.tag;
        q->answer.status = rank(r, q, &q->answer.reply, &q->answer.error);
        pthread_mutex_lock(&r->lock);
        q->next = r->done;
        r->done = q;
        pthread_cond_signal(&r->answered);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

tg_status tg_ranking_create(tg_ranking **out, tg_pool *pool, tg_error *err) {
    pthread_condattr_t monotonic;
    tg_ranking *r = *out = tg_alloc(sizeof *r);
    if (!r) return tg_fail_nomem(err, sizeof *r);
    r->pool = pool;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->asked, NULL);
    pthread_cond_init(&r->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (; r->n_threads < THREADS; r->n_threads++)
        if (pthread_create(&r->threads[r->n_threads], NULL, work, r)) break;
    if (r->n_threads) return TG_OK;
    tg_ranking_destroy(out);
    return tg_fail(err, TG_UNAVAILABLE, "no thread could be started");
}

static void free_list(question *q) {
    for (question *next; q; q = next) {
        next = q->next;
        tg_msg_free(q->answer.reply);
        tg_free(q->items);
        tg_free(q);
    }
}

void tg_ranking_destroy(tg_ranking **out) {
    tg_ranking *r = *out;
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->asked);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < r->n_threads; i++) pthread_join(r->threads[i], NULL);
    free_list(r->first);
    free_list(r->done);
    pthread_cond_destroy(&r->asked);
    pthread_cond_destroy(&r->answered);
    pthread_mutex_destroy(&r->lock);
    tg_free(r);
    *out = NULL;
}

tg_status tg_ranking_ask(tg_ranking *r, const tg_ranking_group *group, tg_error *err) {
    question *q = tg_alloc(sizeof *q);
    tg_score_item *items = tg_alloc_array(group->n, sizeof *items);
    if (!q || !items) {
        tg_free(q);
        tg_free(items);
        return tg_fail_nomem(err, group->n * sizeof *items);
    }
    q->group = *group;
    q->items = items;
    pthread_mutex_lock(&r->lock);
    *(r->last ? &r->last->next : &r->first) = q;
    r->last = q;
    pthread_cond_signal(&r->asked);
    pthread_mutex_unlock(&r->lock);
    r->pending++;
    return TG_OK;
}

int tg_ranking_pending(const tg_ranking *r) {
    return r->pending;
}

bool tg_ranking_take(tg_ranking *r, tg_ranking_answer *out, int wait_ms) {
    uint64_t until = tg_clock_ns() + (uint64_t)wait_ms * 1000000;
    struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
                          .tv_nsec = (long)(until % 1000000000)};
    pthread_mutex_lock(&r->lock);
    while (!r->done && wait_ms && r->pending &&
           pthread_cond_timedwait(&r->answered, &r->lock, &at) != ETIMEDOUT)
        continue;
    question *q = r->done;
    if (q) r->done = q->next;
    pthread_mutex_unlock(&r->lock);
    if (!q) return false;
    *out = q->answer;
    tg_free(q->items);
    tg_free(q);
    r->pending--;
    return true;
}
