/* The server's life: loop, link, signals, heartbeat figures, drain. */
#include "env-server/server/server.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "env-server/reward/external.h"
#include "env-server/server/server_impl.h"
#include "proto/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    STOP_MS = 500, /* for calls that are about to end, when the loop has stopped */
    MAX_QUEUE = 65536,
    DEFAULT_CAPACITY = 65536,
    WAITING_THREADS = 64,
    DEFAULT_LEASE_MS = 60000,
    DEFAULT_CREDITS = 512
};

/* ---- sessions ------------------------------------------------------------------------------ */

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_server *s = arg;
    tg_client *client;
    tg_error err = {0};
    if (s->service.draining) {
        snprintf(why, TG_LINK_WHY, "this worker is shutting down");
        return TG_CODE_DRAINING;
    }
    if (tg_client_create(&client, &err) != TG_OK) {
        tg_link_count_pressure(s->link, TG_PRESSURE_MEMORY);
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    tg_session_set_user(session, client);
    s->n_sessions++;
    tg_log_info("env", "session %" PRIu64 " opened by %s", tg_session_id(session),
                tg_session_peer_software(session));
    return TG_CODE_OK;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_server *s = arg;
    tg_client *client = tg_session_user(session);
    tg_log_info("env", "session %" PRIu64 " closed: %s", tg_session_id(session), reason);
    if (!client) return;
    s->n_sessions--;
    s->n_slots -= client->slots.n;
    client->closed = true;
    for (size_t i = 0; i < client->slots.n; i++) {
        const tg_client_slot *slot = tg_by_id_at(&client->slots, i);
        int phase = slot->phase;
        s->figures.n_slots[phase]--;
        if (phase == TG_PHASE_RUNNING && tg_session_loss(session) != TG_LOSS_NONE)
            tg_figures_aborted(&s->figures);
    }
    tg_session_set_user(session, NULL);
    tg_client_unref(client);
}

/* The slots stay; calls under way finish, and their answers wait in the slots to be asked for again. */
static void on_detach(void *arg, tg_session *session, const char *reason) {
    (void)arg;
    tg_log_info("env", "session %" PRIu64 " lost, kept for its lease: %s", tg_session_id(session),
                reason);
}

static void on_resume(void *arg, tg_session *session) {
    (void)arg;
    tg_log_info("env", "session %" PRIu64 " resumed by %s", tg_session_id(session),
                tg_session_peer_software(session));
}

/* Those that the pool of threads answers tell their times themselves. */
static bool later(const tg_server *s, tg_msg_type type) {
    return type == TG_MSG_SAMPLE_RANGE || type == TG_MSG_METRIC || type == TG_MSG_SCORE ||
           (type == TG_MSG_STEP && s->env->slow_rewards);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_server *s = arg;
    tg_msg_type type = head->type;
    s->message_ns = tg_clock_ns();
    tg_server_message(s, session, head, msg);
    if (!later(s, type)) tg_figures_request(&s->figures, type, s->message_ns);
}

static void on_beat(void *arg, tg_heartbeat *beat) {
    tg_server *s = arg;
    beat->in_flight = (uint32_t)tg_jobs_in_flight(s->jobs);
    beat->oldest_ms = tg_jobs_oldest_ms(s->jobs);
    beat->completed = s->completed;
    beat->loop_lag_us = s->service.lag_us;
    beat->draining = s->service.draining;
    beat->slots = (uint32_t)s->n_slots;
    beat->steps = s->steps;
}

/* A refusal that a later try cannot change ends the worker; others are tried again by the link. */
static void on_refused(void *arg, tg_code code, const char *message) {
    tg_server *s = arg;
    tg_log_warn("env", "refused by %s: %s: %s", tg_link_address(s->link), tg_code_name(code),
                message);
    bool final = code == TG_CODE_CONFIG_MISMATCH || code == TG_CODE_UNSUPPORTED_VERSION ||
                 code == TG_CODE_PERMISSION_DENIED || code == TG_CODE_UNAUTHENTICATED;
    if (!final) return;
    s->failure = tg_fail(&s->failure_error, code == TG_CODE_CONFIG_MISMATCH ? TG_CONFIG : TG_DENIED,
                         "refused by %s: %s", tg_link_address(s->link), message);
    tg_service_stop(&s->service);
}

static const tg_link_ops link_ops = {.on_open = on_open,
                                     .on_message = on_message,
                                     .on_close = on_close,
                                     .on_beat = on_beat,
                                     .on_refused = on_refused,
                                     .on_detach = on_detach,
                                     .on_resume = on_resume};

/* ---- operations ---------------------------------------------------------------------------- */

static bool is_ready(void *arg, char why[TG_OPS_WHY]) {
    const tg_server *s = arg;
    if (s->link && !s->service.draining && (!s->dialled || s->n_sessions > 0)) return true;
    snprintf(why, TG_OPS_WHY, "%s",
             s->service.draining ? "draining"
             : s->link           ? "not registered: the address that was dialled does not answer"
                                 : "starting");
    return false;
}

static void collect(void *arg) {
    tg_server *s = arg;
    tg_figures *f = &s->figures;
    tg_link_stats link = {0};
    uint64_t accepted, denied = 0;
    if (s->link) tg_link_get_stats(s->link, &link);
    if (s->net) tg_net_auth_counts(s->net, &accepted, &denied);
    tg_net_figures_set(&f->net, &link, s->link ? tg_link_answers(s->link) : NULL, denied);
    for (int i = 0; i < TG_SLOT_PHASES; i++) tg_stat_set(f->slots[i], (double)f->n_slots[i]);
    tg_stat_set(f->capacity, (double)s->spec.capacity);
    tg_stat_set(f->sessions, (double)s->n_sessions);
    tg_stat_set(f->queue, (double)tg_jobs_in_flight(s->jobs));
    tg_stat_set(f->oldest, (double)tg_jobs_oldest_ms(s->jobs) * 1e-3);
    tg_reward_figures(&s->env->chosen, f->stats);
}

static void put_status(void *arg, tg_buf *json) {
    tg_server *s = arg;
    tg_buf_printf(json,
                  ", \"address\": \"%s\", \"state\": \"%s\", \"sessions\": %zu, \"slots\": %zu, "
                  "\"capacity\": %u, \"steps\": %" PRIu64 ", \"episodes\": %" PRIu64
                  ", \"in_flight\": %zu, \"oldest_ms\": %" PRIu64 ", \"completed\": %" PRIu64,
                  s->link ? tg_link_address(s->link) : "",
                  s->service.draining ? "draining" : "serving", s->n_sessions, s->n_slots,
                  s->spec.capacity, s->figures.n_steps, s->figures.n_episodes,
                  tg_jobs_in_flight(s->jobs), tg_jobs_oldest_ms(s->jobs), s->completed);
}

static tg_status open_ops(tg_server *s, tg_env *env, const tg_server_opts *o, tg_error *err) {
    const tg_ops_hooks hooks = {.program = "textgen-env",
                                .ready = is_ready,
                                .collect = collect,
                                .status = put_status,
                                .security = o->security,
                                .arg = s};
    tg_status st = tg_ops_open(&s->ops, &s->service.loop, &o->ops, &hooks, err);
    if (st != TG_OK) return st;
    tg_figures_init(&s->figures, tg_ops_stats(s->ops), s->spec.env_id);
    return tg_env_watch(env, tg_ops_stats(s->ops), err);
}

/* ---- end ----------------------------------------------------------------------------------- */

static size_t in_flight(void *arg) {
    return tg_jobs_in_flight(((tg_server *)arg)->jobs);
}

static void on_drain(void *arg, int in_ms) {
    tg_ops_stopping(((tg_server *)arg)->ops, "draining", in_ms);
}

/* The parent holds the other end of this pipe and writes nothing: reading tells that it is gone. */
static void on_parent(uv_poll_t *poll, int status, int events) {
    (void)events;
    tg_server *s = poll->data;
    int fd = -1;
    char bytes[64];
    uv_fileno((uv_handle_t *)poll, &fd);
    ssize_t n = status < 0 ? 0 : read(fd, bytes, sizeof bytes);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    tg_log_warn("env", "the parent process is gone");
    tg_service_stop(&s->service);
}

/* ---- life ---------------------------------------------------------------------------------- */

static tg_status watch_parent(tg_server *s, int fd, tg_error *err) {
    if (fd < 0) return TG_OK;
    tg_status st =
        tg_service_uv(uv_poll_init(&s->service.loop, &s->parent, fd), "TEXTGEN_PARENT_FD", err);
    if (st != TG_OK) return st;
    s->parent.data = s;
    s->parent_watched = true;
    return tg_service_uv(uv_poll_start(&s->parent, UV_READABLE | UV_DISCONNECT, on_parent),
                         "TEXTGEN_PARENT_FD", err);
}

/* ScoreRequest.fn may name each reward of the environment. */
static tg_status name_functions(tg_server *s, tg_error *err) {
    size_t n = s->env->n_rewards;
    s->functions = tg_alloc_array(n + 1, sizeof *s->functions);
    if (!s->functions) return tg_fail_nomem(err, n * sizeof *s->functions);
    for (size_t i = 0; i < n; i++) {
        const tg_reward *r = &s->env->rewards[i];
        if (r->traits.remote) continue; /* a broker would send our own question back to us */
        s->functions[s->n_functions++] = (tg_reward_fn){
            .name = r->name, .version = TG_VERSION, .deterministic = r->traits.deterministic};
    }
    return TG_OK;
}

/* A thread waits for each reward that is had elsewhere, so that the texts of many slots meet in one call. */
static int threads_for(const tg_env *env, int wanted) {
    if (wanted) return wanted;
    return env->waiting_rewards ? WAITING_THREADS : 2;
}

static tg_status start(tg_server *s, tg_env *env, const tg_server_opts *o, tg_error *err) {
    tg_status st = name_functions(s, err);
    if (st == TG_OK) st = tg_net_create(&s->net, err);
    if (st == TG_OK) st = tg_net_secure(s->net, o->security, err);
    if (st == TG_OK)
        st = tg_jobs_create(&s->jobs, &s->service.loop, threads_for(s->env, o->threads), MAX_QUEUE,
                            err);
    if (st == TG_OK) st = open_ops(s, env, o, err);
    if (st == TG_OK) st = watch_parent(s, o->parent_fd, err);
    if (st == TG_OK) st = tg_service_watch(&s->service, err);
    if (st != TG_OK) return st;
    tg_link_opts link = {.listen = o->bind,
                         .dial = o->connect,
                         .insecure = o->insecure,
                         .recycle = true,
                         .role = TG_ROLE_WORKER,
                         .spec = &s->spec,
                         .functions = s->functions,
                         .n_functions = s->n_functions,
                         .lease_ms = o->lease_ms ? TG_MAX(o->lease_ms, 0) : DEFAULT_LEASE_MS,
                         .credits = o->credits ? o->credits : DEFAULT_CREDITS,
                         .heartbeat_ms = o->heartbeat_ms,
                         .ops = &link_ops,
                         .arg = s};
    if (o->limits.max_batch) tg_limit_opts_apply(&o->limits, &link);
    s->max_slots = link.limits.max_slots ? link.limits.max_slots : TG_LIMIT_SLOTS;
    return tg_link_open(&s->link, s->net, &s->service.loop, &link, err);
}

static void say_ready(const tg_server *s, const tg_server_opts *o) {
    const tg_env_spec *spec = &s->spec;
    printf("textgen-env ready %s %s pid %ld vocab %u samples %" PRIu64 "/%" PRIu64 "/%" PRIu64
           " config %016" PRIx64 "\n",
           o->bind ? "bind" : "connect", tg_link_address(s->link), (long)getpid(), spec->vocab_size,
           spec->n_samples[TG_SPLIT_TRAIN], spec->n_samples[TG_SPLIT_VAL],
           spec->n_samples[TG_SPLIT_TEST], spec->config_digest);
    fflush(stdout);
}

/* Returns the calls that had to be given up. */
static size_t shut(tg_server *s, const char *reason) {
    size_t stuck = tg_jobs_stop(&s->jobs, STOP_MS); /* last answers go out through the link */
    if (stuck)
        tg_log_error("env",
                     "%zu calls never ended and are given up: a reward or metric hangs; "
                     "clients rebuild these episodes elsewhere",
                     stuck);
    if (s->link) tg_link_close(&s->link, reason);
    if (stuck) { /* they may use the rest: it goes with the process */
        uv_run(&s->service.loop, UV_RUN_NOWAIT);
        tg_net_destroy(&s->net);
        return stuck;
    }
    tg_ops_close(&s->ops);
    tg_deadlines_fini(&s->deadlines);
    if (s->parent_watched) uv_close((uv_handle_t *)&s->parent, NULL);
    tg_service_fini(&s->service);
    if (s->net) tg_net_destroy(&s->net);
    tg_arena_fini(&s->scratch);
    tg_free(s->functions);
    return 0;
}

tg_status tg_server_run(tg_env *env, const tg_server_opts *o, tg_error *err) {
    static const tg_service_hooks hooks = {
        .name = "env", .in_flight = in_flight, .on_drain = on_drain};
    tg_server *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->env = env;
    s->dialled = o->connect != NULL;
    s->spec = env->spec;
    s->spec.capacity = o->capacity ? o->capacity : DEFAULT_CAPACITY;
    tg_status st = tg_service_init(&s->service, &hooks, s, o->drain_ms, err);
    if (st != TG_OK) {
        tg_free(s);
        return st;
    }
    tg_deadlines_init(&s->deadlines, &s->service.loop);
    st = start(s, env, o, err);
    if (st == TG_OK) {
        say_ready(s, o);
        tg_service_run(&s->service);
        st = s->failure;
        if (st != TG_OK && err) *err = s->failure_error;
    }
    size_t stuck = shut(s, st == TG_OK ? "the worker is shutting down" : "the worker failed");
    if (stuck)
        return tg_fail(
            err, TG_TIMEOUT,
            "ended without waiting for %zu calls that never returned: a reward or metric "
            "hangs (see its timeout)",
            stuck);
    tg_env_unwatch(env);
    tg_free(s);
    return st;
}
