/* Calls live on the stack of who waits for them. Lists, and calls in them, are touched under the lock only; sessions and
 * links on the loop's thread only. A call leaves its list before its caller may go on. */
#include "env-server/reward/workers.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/net/link.h"
#include "env-server/reward/score_impl.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINKS = 64, REFUSED_MS = 100, TICK_MS = 20 };

/* A reward worker, or a broker with some behind it. Loop thread only. */
typedef struct judge {
    struct judge *next;
    tg_session *session;
    size_t in_flight; /* calls of ours */
    bool has_fn;      /* it says so, or was dialled and may have workers behind it */
    bool sure;        /* it says so */
    bool deterministic;
} judge;

typedef struct waiting {
    struct waiting *next;
    const tg_score_call *call;
    tg_score_result *results;
    tg_score_fault *fault;
    tg_error *err;
    tg_status status;
    bool sent, done;
    uint64_t seq, session;  /* where it was sent */
    bool repeatable;        /* sent to a function that says it is deterministic */
    uint64_t not_before_ms; /* refused for now: when to ask again */
    pthread_cond_t wake;
} waiting;

struct tg_reward_workers {
    char *fn, *bind_address;
    bool deterministic;
    uv_loop_t loop;
    uv_async_t async;
    uv_timer_t timer; /* runs while a refused call waits */
    pthread_t thread;
    tg_net *net;
    tg_link *links[MAX_LINKS];
    size_t n_links;
    judge *judges;
    uint64_t next_seq;
    pthread_mutex_t lock;
    waiting *calls; /* under the lock */
    bool stopping, closing;
};

/* ---- calls (lock held) --------------------------------------------------------------------- */

static void take_out(tg_reward_workers *j, waiting *w) {
    for (waiting **at = &j->calls; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

static void finish(tg_reward_workers *j, waiting *w, tg_status status) {
    take_out(j, w);
    w->status = status;
    w->done = true;
    pthread_cond_signal(&w->wake);
}

static waiting *find_sent(tg_reward_workers *j, uint64_t session, uint64_t seq) {
    for (waiting *w = j->calls; w; w = w->next)
        if (w->sent && w->session == session && w->seq == seq) return w;
    return NULL;
}

/* Results may come in any order; each text needs its own. */
static tg_status take_results(const tg_score_reply *reply, waiting *w) {
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
static void postpone(waiting *w, const tg_wire_error *e) {
    uint64_t wait = e->retry_after_ms > REFUSED_MS ? e->retry_after_ms : REFUSED_MS;
    tg_rng rng = tg_rng_at(tg_clock_ns(), TG_RNG_JITTER, w->seq, 0);
    w->sent = false;
    w->not_before_ms = tg_clock_ms() + wait + tg_rng_below(&rng, wait);
    (void)tg_fail(w->err, TG_UNAVAILABLE, "%s: %.600s", tg_code_name(e->code), e->message);
}

static tg_status failed(const tg_wire_error *e, waiting *w) {
    w->fault->retry = w->repeatable && e->code == TG_CODE_WORKER_LOST;
    return tg_fail(w->err, e->code == TG_CODE_DEADLINE_EXCEEDED ? TG_TIMEOUT : TG_UNAVAILABLE,
                   "%s: %.600s", tg_code_name(e->code), e->message);
}

/* A broker may find the function among its workers later; a worker that says it has it does not. */
static void take_error(tg_reward_workers *j, const judge *k, const tg_wire_error *e, waiting *w) {
    bool undone = e->code == TG_CODE_OVERLOADED || e->code == TG_CODE_DRAINING ||
                  (e->code == TG_CODE_NOT_FOUND && k && !k->sure);
    if (undone)
        postpone(w, e);
    else
        finish(j, w, failed(e, w));
}

/* ---- workers (loop thread) ----------------------------------------------------------------- */

static judge *judge_of(tg_reward_workers *j, const tg_session *session) {
    for (judge *k = j->judges; k; k = k->next)
        if (k->session == session) return k;
    return NULL;
}

/* Who says it has the function before who may have it; then fewest calls of ours, then fewest by its own account. One
 * that drains gets nothing. */
static judge *choose(tg_reward_workers *j) {
    judge *best = NULL;
    uint64_t best_load = UINT64_MAX;
    for (judge *k = j->judges; k; k = k->next) {
        const tg_heartbeat *beat = tg_session_last_beat(k->session);
        if (!k->has_fn || beat->draining) continue;
        uint64_t load =
            ((uint64_t)!k->sure << 63) + ((uint64_t)k->in_flight << 32) + beat->in_flight;
        if (load < best_load) best = k, best_load = load;
    }
    return best;
}

static tg_status send_call(tg_reward_workers *j, judge *k, waiting *w) {
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

static void dispatch(tg_reward_workers *j) {
    uint64_t now = tg_clock_ms();
    bool later = false;
    pthread_mutex_lock(&j->lock);
    for (waiting *w = j->calls, *next; w; w = next) {
        next = w->next;
        bool early = !w->sent && w->not_before_ms > now;
        later |= early;
        judge *k = w->sent || early ? NULL : choose(j);
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
    dispatch(timer->data);
}

/* Whom we dialled may be a broker, whose reward workers come and go behind it. */
static void look_for_fn(const tg_reward_workers *j, judge *k, bool dialled) {
    size_t n;
    const tg_reward_fn *f = tg_session_functions(k->session, &n);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(f[i].name, j->fn)) continue;
        k->has_fn = k->sure = true;
        k->deterministic = f[i].deterministic;
        if (j->deterministic && !f[i].deterministic)
            tg_log_warn("reward",
                        "remote: %s does not call itself deterministic, the config does: what it "
                        "said once is taken to be true for ever",
                        j->fn);
    }
    /* An environment worker's rewards can be asked for by name as well; since minor version 1 they are among its functions. What a
     * broker tells of its workers' environment may be this very reward, of ourselves. */
    const tg_env_spec *spec =
        tg_session_minor(k->session) == 0 ? tg_session_spec(k->session) : NULL;
    for (size_t i = 0; spec && i < spec->n_rewards; i++)
        k->sure |= !strcmp(spec->reward_names[i], j->fn);
    k->has_fn = k->sure || dialled;
    if (!k->sure)
        tg_log_warn("reward", "remote: %s has no function '%s'%s",
                    tg_session_peer_software(k->session), j->fn, dialled ? " as yet" : "");
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_reward_workers *j = arg;
    judge *k = tg_alloc(sizeof *k);
    if (!k) {
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    k->session = session;
    look_for_fn(j, k, tg_session_peer_role(session) != TG_ROLE_REWARD);
    k->next = j->judges;
    j->judges = k;
    return TG_CODE_OK;
}

static void on_ready(void *arg, tg_session *session) {
    tg_log_info("reward", "remote: a reward worker joined: %s", tg_session_peer_software(session));
    dispatch(arg);
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_reward_workers *j = arg;
    uint64_t id = tg_session_id(session);
    for (judge **at = &j->judges; *at; at = &(*at)->next) {
        judge *k = *at;
        if (k->session != session) continue;
        *at = k->next;
        tg_free(k);
        break;
    }
    pthread_mutex_lock(&j->lock);
    for (waiting *w = j->calls, *next; w; w = next) {
        next = w->next;
        if (!w->sent || w->session != id) continue;
        if (w->repeatable && !j->stopping)
            w->sent = false; /* another worker may judge it */
        else
            finish(j, w,
                   tg_fail(w->err, TG_UNAVAILABLE, "the reward worker was lost: %.500s", reason));
    }
    pthread_mutex_unlock(&j->lock);
    if (!j->closing) dispatch(j);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_reward_workers *j = arg;
    judge *k = judge_of(j, session);
    bool answer = head->type == TG_MSG_SCORE_REPLY || head->type == TG_MSG_ERROR;
    pthread_mutex_lock(&j->lock);
    waiting *w = answer ? find_sent(j, tg_session_id(session), head->seq) : NULL;
    if (w && head->type == TG_MSG_ERROR)
        take_error(j, k, msg, w);
    else if (w)
        finish(j, w, take_results(msg, w));
    pthread_mutex_unlock(&j->lock);
    if (answer && k && k->in_flight) k->in_flight--; /* also of one that was given up */
    if (!answer)
        tg_session_send_error(session, head, TG_CODE_PROTOCOL,
                              "a caller of rewards does not take %s", tg_msg_name(head->type));
    tg_msg_free(msg);
    dispatch(j);
}

static void on_refused(void *arg, tg_code code, const char *message) {
    (void)arg;
    tg_log_warn("reward", "remote: refused: %s: %s", tg_code_name(code), message);
}

static const tg_link_ops link_ops = {.on_open = on_open,
                                     .on_ready = on_ready,
                                     .on_message = on_message,
                                     .on_close = on_close,
                                     .on_refused = on_refused};

/* ---- the loop ------------------------------------------------------------------------------ */

static void fail_all(tg_reward_workers *j) {
    pthread_mutex_lock(&j->lock);
    while (j->calls)
        finish(j, j->calls, tg_fail(j->calls->err, TG_UNAVAILABLE, "the reward is shutting down"));
    pthread_mutex_unlock(&j->lock);
}

static void on_async(uv_async_t *async) {
    tg_reward_workers *j = async->data;
    pthread_mutex_lock(&j->lock);
    bool stopping = j->stopping, closing = j->closing;
    pthread_mutex_unlock(&j->lock);
    if (stopping) fail_all(j);
    if (!closing) {
        dispatch(j);
        return;
    }
    for (size_t i = 0; i < j->n_links; i++) tg_link_close(&j->links[i], "the reward is closed");
    j->n_links = 0;
    uv_close((uv_handle_t *)&j->async, NULL);
    uv_close((uv_handle_t *)&j->timer, NULL);
}

static void *run(void *arg) {
    uv_run(&((tg_reward_workers *)arg)->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- calling ------------------------------------------------------------------------------- */

tg_status tg_reward_workers_call(tg_reward_workers *j, const tg_score_call *call,
                                 tg_score_result *results, tg_score_fault *fault, tg_error *err) {
    waiting w = {.call = call, .results = results, .fault = fault, .err = err};
    if (tg_score_cond_init(&w.wake)) return tg_fail_nomem(err, sizeof w);
    pthread_mutex_lock(&j->lock);
    if (j->stopping) {
        w.status = tg_fail(err, TG_UNAVAILABLE, "the reward is shutting down");
        w.done = true;
    } else {
        waiting **end = &j->calls;
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

void tg_reward_workers_interrupt(tg_reward_workers *j) {
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    uv_async_send(&j->async);
    pthread_mutex_unlock(&j->lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

static tg_status open_link(tg_reward_workers *j, const tg_reward_workers_opts *o, const char *dial,
                           const char *listen, tg_error *err) {
    if (j->n_links == MAX_LINKS)
        return tg_fail(err, TG_CONFIG, "remote: at most %d addresses", MAX_LINKS);
    tg_link_opts opts = {.listen = listen,
                         .dial = dial,
                         .insecure = o->insecure,
                         .role = TG_ROLE_CLIENT,
                         .peer_roles = TG_ROLE_BIT(TG_ROLE_REWARD),
                         .spec_optional = true,
                         .heartbeat_ms = o->heartbeat_ms,
                         .ops = &link_ops,
                         .arg = j};
    tg_status st = tg_link_open(&j->links[j->n_links], j->net, &j->loop, &opts, err);
    if (st == TG_OK) j->n_links++;
    return st;
}

static tg_status open_links(tg_reward_workers *j, const tg_reward_workers_opts *o, tg_error *err) {
    tg_status st = tg_net_create(&j->net, err);
    if (st == TG_OK) st = tg_net_secure(j->net, o->security, err);
    for (size_t i = 0; i < o->n_connect && st == TG_OK; i++)
        st = open_link(j, o, o->connect[i], NULL, err);
    if (st == TG_OK && o->bind) {
        st = open_link(j, o, NULL, o->bind, err);
        if (st == TG_OK) {
            j->bind_address = tg_strdup(tg_link_address(j->links[j->n_links - 1]));
            if (!j->bind_address) st = tg_fail_nomem(err, strlen(o->bind));
        }
    }
    return st;
}

static void free_judges(tg_reward_workers *j) {
    uv_loop_close(&j->loop);
    if (j->net) tg_net_destroy(&j->net);
    pthread_mutex_destroy(&j->lock);
    tg_free(j->fn);
    tg_free(j->bind_address);
    tg_free(j);
}

tg_status tg_reward_workers_open(tg_reward_workers **out, const tg_reward_workers_opts *o,
                                 tg_error *err) {
    tg_reward_workers *j = tg_alloc(sizeof *j);
    *out = NULL;
    if (!j) return tg_fail_nomem(err, sizeof *j);
    j->deterministic = o->deterministic;
    j->fn = tg_strdup(o->fn);
    if (!j->fn || pthread_mutex_init(&j->lock, NULL) || uv_loop_init(&j->loop)) {
        tg_free(j->fn);
        tg_free(j);
        return tg_fail_nomem(err, sizeof *j);
    }
    uv_async_init(&j->loop, &j->async, on_async);
    uv_timer_init(&j->loop, &j->timer);
    j->async.data = j->timer.data = j;
    tg_status st = open_links(j, o, err);
    if (st == TG_OK && pthread_create(&j->thread, NULL, run, j))
        st = tg_fail(err, TG_UNAVAILABLE, "remote: no thread could be started");
    if (st == TG_OK) {
        *out = j;
        return TG_OK;
    }
    j->closing = true;
    on_async(&j->async);
    uv_run(&j->loop, UV_RUN_DEFAULT);
    free_judges(j);
    return st;
}

void tg_reward_workers_close(tg_reward_workers **out) {
    tg_reward_workers *j = *out;
    if (!j) return;
    *out = NULL;
    pthread_mutex_lock(&j->lock);
    j->stopping = j->closing = true;
    uv_async_send(&j->async);
    pthread_mutex_unlock(&j->lock);
    pthread_join(j->thread, NULL);
    free_judges(j);
}

const char *tg_reward_workers_address(const tg_reward_workers *j) {
    return j->bind_address ? j->bind_address : "";
}
