/* The I/O thread: the loop, the links, workers that come and go, the clock. Every callback takes the mutex; none is called
 * while it is held, because tg_session_send never calls back. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

bool tg_code_is_retryable(tg_code code) {
    return code == TG_CODE_OVERLOADED || code == TG_CODE_DRAINING;
}

static void pump_all(tg_pool *p) {
    tg_pool_pump(p);
    tg_pool_pump_asks(p);
}

/* ---- workers -------------------------------------------------------------------------------- */

/* A copy that outlives the session, by way of the codec: one block. */
static tg_hello *copy_spec(const tg_env_spec *spec) {
    tg_hello hello = {.role = TG_ROLE_WORKER, .has_spec = true, .spec = *spec};
    tg_buf bytes = {0};
    void *copy = NULL;
    tg_status st = tg_msg_encode(TG_MSG_HELLO, &hello, &bytes, NULL);
    if (st == TG_OK) st = tg_msg_decode(TG_MSG_HELLO, bytes.data, bytes.len, &copy, NULL);
    tg_buf_fini(&bytes);
    return st == TG_OK ? copy : NULL;
}

static tg_code check_spec(const tg_pool *p, const tg_env_spec *spec, char why[TG_LINK_WHY]) {
    const tg_env_spec *first = p->first ? &p->first->spec : NULL;
    uint64_t config = p->opts.config_digest ? p->opts.config_digest
                      : first               ? first->config_digest
                                            : 0;
    if (config && spec->config_digest != config) {
        snprintf(
            why, TG_LINK_WHY,
            "the worker was started with another configuration (digest %016llx, expected %016llx)",
            (unsigned long long)spec->config_digest, (unsigned long long)config);
        return TG_CODE_CONFIG_MISMATCH;
    }
    if (first && spec->tokenizer_digest != first->tokenizer_digest) {
        snprintf(why, TG_LINK_WHY,
                 "the worker has another tokenizer (digest %016llx, expected %016llx)",
                 (unsigned long long)spec->tokenizer_digest,
                 (unsigned long long)first->tokenizer_digest);
        return TG_CODE_CONFIG_MISMATCH;
    }
    return TG_CODE_OK;
}

static tg_code admit(tg_pool *p, tg_session *session, char why[TG_LINK_WHY]) {
    const tg_env_spec *spec = tg_session_spec(session);
    tg_code code = check_spec(p, spec, why);
    if (code != TG_CODE_OK) {
        snprintf(p->refused, sizeof p->refused, "%s", why);
        return code;
    }
    tg_pool_worker *w = tg_alloc(sizeof *w);
    if (w && !p->first) p->first = copy_spec(spec);
    if (!w || !p->first) {
        tg_free(w);
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    w->session = session;
    w->capacity = spec->capacity;
    tg_session_set_user(session, w);
    return TG_CODE_OK;
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    tg_code code = admit(p, session, why);
    pthread_mutex_unlock(&p->mutex);
    return code;
}

static void on_ready(void *arg, tg_session *session) {
    tg_pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    tg_pool_worker *w = tg_session_user(session), **last = &p->workers;
    while (*last) last = &(*last)->next;
    *last = w;
    p->stats.workers++;
    tg_log_info("pool", "a worker joined (%d now)", p->stats.workers);
    pump_all(p);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
}

static bool unlink_worker(tg_pool *p, tg_pool_worker *w) {
    for (tg_pool_worker **at = &p->workers; *at; at = &(*at)->next) {
        if (*at != w) continue;
        *at = w->next;
        return true;
    }
    return false;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_pool *p = arg;
    tg_pool_worker *w = tg_session_user(session);
    pthread_mutex_lock(&p->mutex);
    if (unlink_worker(p, w)) { /* else it never became ready */
        p->stats.workers--;
        if (!p->stop) {
            p->stats.workers_lost++;
            tg_log_warn("pool", "a worker is gone (%s), %d left", reason, p->stats.workers);
        }
    }
    for (size_t i = 0; i < p->n_slots; i++) {
        if (p->slots[i].worker == w) tg_pool_slot_lost(p, &p->slots[i]);
    }
    tg_pool_asks_lost(p, w);
    tg_free(w);
    if (!p->stop) pump_all(p);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void handle_error(tg_pool *p, tg_pool_worker *w, const tg_frame *head,
                         const tg_wire_error *e) {
    if (tg_pool_ask_failed(p, w, head->seq, e) || tg_pool_slots_failed(p, w, head->seq, e)) return;
    tg_log_debug("pool", "a worker reports: %s: %s", tg_code_name(e->code), e->message);
}

static void handle(tg_pool *p, tg_pool_worker *w, const tg_frame *head, void *msg) {
    switch (head->type) {
    case TG_MSG_RESET_REPLY: tg_pool_reset_replied(p, w, msg); return;
    case TG_MSG_STEP_REPLY: tg_pool_step_replied(p, w, msg); return;
    case TG_MSG_SLOTS_OPENED: tg_pool_slots_opened(p, w, head->seq, msg); break;
    case TG_MSG_ERROR: handle_error(p, w, head, msg); break;
    default:
        if (tg_pool_ask_replied(p, w, head, msg)) return;
        p->stats.replies_dropped++;
        break;
    }
    tg_msg_free(msg);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    handle(p, tg_session_user(session), head, msg);
    pump_all(p);
    pthread_mutex_unlock(&p->mutex);
}

static const tg_link_ops OPS = {
    .on_open = on_open, .on_ready = on_ready, .on_message = on_message, .on_close = on_close};

/* ---- the loop ------------------------------------------------------------------------------- */

static void gather_stats(tg_pool *p) {
    p->stats.messages_sent = p->stats.messages_received = 0;
    for (size_t i = 0; i < p->n_links; i++) {
        tg_link_stats st;
        tg_link_get_stats(p->links[i], &st);
        p->stats.messages_sent += st.sent;
        p->stats.messages_received += st.received;
    }
}

static void on_tick(uv_timer_t *timer) {
    tg_pool *p = timer->data;
    pthread_mutex_lock(&p->mutex);
    for (tg_pool_worker *w = p->workers; w; w = w->next) {
        if (tg_session_last_beat(w->session)->draining) w->draining = true;
    }
    tg_pool_check_deadlines(p, tg_clock_ms());
    pump_all(p);
    gather_stats(p);
    pthread_mutex_unlock(&p->mutex);
}

static void close_all(tg_pool *p) {
    for (size_t i = 0; i < p->n_links; i++) tg_link_close(&p->links[i], "the learner ends");
    p->n_links = 0;
    uv_close((uv_handle_t *)&p->wake, NULL);
    uv_close((uv_handle_t *)&p->tick, NULL);
}

static void on_wake(uv_async_t *wake) {
    tg_pool *p = wake->data;
    pthread_mutex_lock(&p->mutex);
    bool stop = p->stop;
    if (!stop) pump_all(p);
    pthread_mutex_unlock(&p->mutex);
    if (stop) close_all(p); /* the loop ends when the last handle is closed */
}

void *tg_pool_io_main(void *pool) {
    tg_pool *p = pool;
    uv_run(&p->loop, UV_RUN_DEFAULT);
    return NULL;
}

static tg_status add_link(tg_pool *p, const char *listen, const char *dial, tg_error *err) {
    tg_link_opts opts = {
        .listen = listen,
        .dial = dial,
        .role = TG_ROLE_CLIENT,
        .heartbeat_ms = p->opts.heartbeat_ms,
        .insecure = p->opts.insecure,
        .ops = &OPS,
        .arg = p,
    };
    tg_link **grown = tg_realloc_array(p->links, p->n_links + 1, sizeof *grown);
    if (!grown) return tg_fail_nomem(err, sizeof *grown);
    p->links = grown;
    tg_status st = tg_link_open(&p->links[p->n_links], p->net, &p->loop, &opts, err);
    if (st == TG_OK) p->n_links++;
    return st;
}

static tg_status dial_all(tg_pool *p, const char *list, tg_error *err) {
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        char *one = tg_strndup(at, len);
        if (!one) return tg_fail_nomem(err, len);
        tg_status st = len ? add_link(p, NULL, one, err) : TG_OK;
        tg_free(one);
        if (st != TG_OK) return st;
        at += len + (at[len] == ',');
    }
    return TG_OK;
}

tg_status tg_pool_io_open(tg_pool *p, tg_error *err) {
    tg_status st = tg_net_create(&p->net, err);
    if (st == TG_OK) st = tg_net_secure(p->net, p->opts.security, err);
    if (st != TG_OK) return st;
    if (uv_loop_init(&p->loop) != 0) return tg_fail(err, TG_UNAVAILABLE, "no event loop");
    uv_async_init(&p->loop, &p->wake, on_wake);
    uv_timer_init(&p->loop, &p->tick);
    p->wake.data = p->tick.data = p;
    p->loop_ready = true;
    uv_timer_start(&p->tick, on_tick, TG_POOL_TICK_MS, TG_POOL_TICK_MS);
    if (p->opts.bind) st = add_link(p, p->opts.bind, NULL, err);
    if (st == TG_OK && p->opts.connect) st = dial_all(p, p->opts.connect, err);
    return st;
}
