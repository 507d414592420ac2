/* Opening and closing, the clock, workers that come and go, and what happens to each message. */
#include "common/net/fleet.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/fleet_impl.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

bool tg_code_is_retryable(tg_code code) {
    return code == TG_CODE_OVERLOADED || code == TG_CODE_DRAINING;
}

static void enter(tg_fleet *f) {
    if (f->opts.ops->enter) f->opts.ops->enter(f->opts.arg);
}

static void turn(tg_fleet *f) {
    if (f->opts.ops->on_turn && !f->closed) f->opts.ops->on_turn(f->opts.arg);
}

/* Everything the loop does ends here: what has been wished for meanwhile is sent. */
static void leave(tg_fleet *f) {
    if (!f->closed) {
        tg_fleet_pump_asks(f);
        turn(f);
        tg_fleet_flush(f);
    }
    if (f->opts.ops->leave) f->opts.ops->leave(f->opts.arg);
}

void tg_fleet_kick(tg_fleet *f) {
    tg_fleet_pump_asks(f);
    tg_fleet_flush(f);
}

static void changed(tg_fleet *f) {
    if (f->opts.ops->on_change && !f->closed) f->opts.ops->on_change(f->opts.arg);
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

static tg_code check_spec(const tg_fleet *f, const tg_env_spec *spec, char why[TG_LINK_WHY]) {
    const tg_env_spec *first = f->first ? &f->first->spec : NULL;
    uint64_t config = f->opts.config_digest ? f->opts.config_digest
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

static tg_code admit(tg_fleet *f, tg_session *session, char why[TG_LINK_WHY]) {
    const tg_env_spec *spec = tg_session_spec(session);
    tg_code code = spec ? check_spec(f, spec, why) : TG_CODE_OK;
    if (code != TG_CODE_OK) {
        snprintf(f->refused, sizeof f->refused, "%s", why);
        return code;
    }
    tg_fleet_worker *w;
    tg_status st = tg_fleet_worker_create(&w, session, NULL);
    if (st == TG_OK && spec && !f->first) f->first = copy_spec(spec);
    if (st != TG_OK || (spec && !f->first)) {
        tg_fleet_worker_free(w);
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    w->scores = spec == NULL;
    w->capacity = spec ? spec->capacity : 0;
    tg_session_set_user(session, w);
    return TG_CODE_OK;
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_fleet *f = arg;
    enter(f);
    tg_code code = admit(f, session, why);
    leave(f);
    return code;
}

/* A worker came or went (by 1 or -1). */
static void count_worker(tg_fleet *f, const tg_fleet_worker *w, int by) {
    if (w->scores)
        f->stats.reward_workers += by;
    else
        f->stats.workers += by;
    f->stats.capacity = 0;
    for (const tg_fleet_worker *o = f->workers; o; o = o->next)
        if (!o->scores) f->stats.capacity += o->capacity ? o->capacity : UINT32_MAX;
}

static void on_ready(void *arg, tg_session *session) {
    tg_fleet *f = arg;
    enter(f);
    tg_fleet_worker *w = tg_session_user(session), **last = &f->workers;
    while (*last) last = &(*last)->next;
    *last = w;
    count_worker(f, w, 1);
    tg_log_info("pool", "a %sworker joined (%d now)", w->scores ? "reward " : "",
                w->scores ? f->stats.reward_workers : f->stats.workers);
    tg_fleet_place_waiting(f);
    changed(f);
    leave(f);
}

static bool unlink_worker(tg_fleet *f, tg_fleet_worker *w) {
    for (tg_fleet_worker **at = &f->workers; *at; at = &(*at)->next) {
        if (*at != w) continue;
        *at = w->next;
        return true;
    }
    return false;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_fleet *f = arg;
    tg_fleet_worker *w = tg_session_user(session);
    enter(f);
    if (unlink_worker(f, w)) { /* else it never became ready */
        count_worker(f, w, -1);
        if (!f->closed) {
            f->stats.workers_lost++;
            f->stats.deaths[tg_session_loss(session)]++;
            tg_log_warn("pool", "a worker is gone (%s), %d left", reason, f->stats.workers);
        }
    }
    while (w->slots) tg_fleet_slot_leave(f, w->slots);
    tg_fleet_asks_lost(f, w);
    tg_fleet_worker_free(w);
    if (!f->closed) tg_fleet_place_waiting(f);
    changed(f);
    leave(f);
}

static void on_detach(void *arg, tg_session *session, const char *reason) {
    tg_fleet *f = arg;
    enter(f);
    tg_log_warn("pool", "the connection to a worker is gone (%s)", reason);
    tg_fleet_detached(f, tg_session_user(session));
    tg_fleet_asks_lost(f, tg_session_user(session));
    leave(f);
}

static void on_resume(void *arg, tg_session *session) {
    tg_fleet *f = arg;
    enter(f);
    tg_log_info("pool", "the session with a worker goes on");
    tg_fleet_resumed(f, tg_session_user(session));
    leave(f);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void handle_error(tg_fleet *f, tg_fleet_worker *w, const tg_frame *head,
                         const tg_wire_error *e) {
    if (tg_fleet_ask_failed(f, w, head->seq, e) || tg_fleet_slots_failed(f, w, head->seq, e))
        return;
    tg_log_debug("pool", "a worker reports: %s: %s", tg_code_name(e->code), e->message);
}

/* True: msg is taken. */
static bool handle(tg_fleet *f, tg_fleet_worker *w, const tg_frame *head, void *msg) {
    if (!(head->flags & TG_FRAME_MORE)) {
        tg_fleet_answered(w, head->seq);
        tg_fleet_heard(f, head, msg);
    }
    switch (head->type) {
    case TG_MSG_STEP_REPLY: tg_fleet_step_replied(f, w, head->seq, msg); break;
    case TG_MSG_RESET_REPLY: tg_fleet_reset_replied(f, w, head->seq, msg); break;
    case TG_MSG_RESTORE_REPLY: tg_fleet_restore_replied(f, w, head->seq, msg); break;
    case TG_MSG_SLOTS_OPENED: tg_fleet_slots_opened(f, w, head->seq, msg); break;
    case TG_MSG_ERROR: handle_error(f, w, head, msg); break;
    default:
        if (tg_fleet_ask_replied(f, w, head, msg)) return true;
        f->stats.replies_dropped++;
        return false;
    }
    return false;
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_fleet *f = arg;
    enter(f);
    bool taken = handle(f, tg_session_user(session), head, msg);
    turn(f); /* results borrow from msg */
    if (!taken) tg_msg_free(msg);
    leave(f);
}

static const tg_link_ops OPS = {.on_open = on_open,
                                .on_ready = on_ready,
                                .on_message = on_message,
                                .on_detach = on_detach,
                                .on_resume = on_resume,
                                .on_close = on_close};

/* ---- the clock ------------------------------------------------------------------------------ */

void tg_fleet_add_link_stats(const tg_fleet *f, tg_link_stats *sum) {
    for (size_t i = 0; i < f->n_links; i++) {
        tg_link_stats st;
        tg_link_get_stats(f->links[i], &st);
        tg_link_stats_add(sum, &st);
    }
}

static void gather_stats(tg_fleet *f) {
    tg_link_stats sum = {0};
    tg_fleet_add_link_stats(f, &sum);
    f->stats.messages_sent = sum.sent;
    f->stats.messages_received = sum.received;
}

static void retry_those_due(tg_fleet *f, uint64_t now) {
    for (tg_fleet_slot *s = f->later.first, *next; s; s = next) {
        next = s->next;
        if (s->retry_ms <= now) tg_fleet_advance(f, s);
    }
}

static void on_tick(uv_timer_t *timer) {
    tg_fleet *f = timer->data;
    uint64_t now = tg_clock_ms();
    enter(f);
    for (tg_fleet_worker *w = f->workers; w; w = w->next) {
        if (tg_session_last_beat(w->session)->draining) w->draining = true;
        if (w->draining) tg_fleet_drained(f, w);
    }
    tg_fleet_check_deadlines(f, now);
    tg_fleet_resend(f, now);
    retry_those_due(f, now);
    tg_fleet_place_waiting(f); /* on a worker that was full a while ago */
    gather_stats(f);
    leave(f);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static tg_status add_link(tg_fleet *f, const char *listen, const char *dial, tg_error *err) {
    tg_link_opts opts = {
        .listen = listen,
        .dial = dial,
        .role = TG_ROLE_CLIENT,
        .peer_roles =
            TG_ROLE_BIT(TG_ROLE_WORKER) | (f->opts.rewards ? TG_ROLE_BIT(TG_ROLE_REWARD) : 0),
        .heartbeat_ms = f->opts.heartbeat_ms,
        .insecure = f->opts.insecure,
        .resume = dial != NULL,
        .ops = &OPS,
        .arg = f,
    };
    tg_link **grown = tg_realloc_array(f->links, f->n_links + 1, sizeof *grown);
    if (!grown) return tg_fail_nomem(err, sizeof *grown);
    f->links = grown;
    tg_status st = tg_link_open(&f->links[f->n_links], f->net, f->loop, &opts, err);
    if (st == TG_OK) f->n_links++;
    return st;
}

static tg_status dial_all(tg_fleet *f, const char *list, tg_error *err) {
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        char *one = tg_strndup(at, len);
        if (!one) return tg_fail_nomem(err, len);
        tg_status st = len ? add_link(f, NULL, one, err) : TG_OK;
        tg_free(one);
        if (st != TG_OK) return st;
        at += len + (at[len] == ',');
    }
    return TG_OK;
}

tg_status tg_fleet_open(tg_fleet **out, tg_net *net, uv_loop_t *loop, const tg_fleet_opts *opts,
                        tg_error *err) {
    *out = NULL;
    if (!opts->bind && !opts->connect)
        return tg_fail(err, TG_USAGE, "the worker pool needs an address");
    tg_fleet *f = tg_alloc(sizeof *f);
    if (!f) return tg_fail_nomem(err, sizeof *f);
    f->opts = *opts;
    f->net = net;
    f->loop = loop;
    f->next_deadline = UINT64_MAX;
    uv_timer_init(loop, &f->tick);
    f->tick.data = f;
    uv_timer_start(&f->tick, on_tick, TG_FLEET_TICK_MS, TG_FLEET_TICK_MS);
    tg_status st = TG_OK;
    if (opts->bind) st = add_link(f, opts->bind, NULL, err);
    if (st == TG_OK && opts->connect) st = dial_all(f, opts->connect, err);
    f->opts.bind = f->opts.connect = NULL; /* the caller's */
    if (st != TG_OK)
        tg_fleet_close(&f, "not opened");
    else
        *out = f;
    return st;
}

static void release(uv_handle_t *handle) {
    tg_fleet *f = handle->data;
    for (size_t i = 0; i < f->n_slots; i++) tg_fleet_slot_free(f->slots[i]);
    tg_msg_free(f->first);
    tg_free(f->slots);
    tg_free(f->uses);
    tg_free(f->links);
    tg_free(f->outgoing);
    tg_free(f);
}

void tg_fleet_close(tg_fleet **fleet, const char *reason) {
    tg_fleet *f = *fleet;
    if (!f) return;
    *fleet = NULL;
    f->closed = true;
    for (tg_fleet_ask *a = f->asks; a; a = a->next) a->worker = NULL;
    f->asks = NULL;
    for (size_t i = 0; i < f->n_links; i++) tg_link_close(&f->links[i], reason);
    f->n_links = 0;
    uv_close((uv_handle_t *)&f->tick, release);
}

const char *tg_fleet_address(const tg_fleet *f) {
    return tg_link_address(f->links[0]);
}

const tg_env_spec *tg_fleet_spec(const tg_fleet *f) {
    return f->first ? &f->first->spec : NULL;
}

const char *tg_fleet_refused(const tg_fleet *f) {
    return f->refused;
}

void tg_fleet_get_stats(const tg_fleet *f, tg_fleet_stats *out) {
    *out = f->stats;
}
