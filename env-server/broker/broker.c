/* The broker's life: loop, links, signals, clients that come and go, drain. */
#include "env-server/broker/broker.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "env-server/broker/broker_impl.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { LEASE_MS = 60000, CREDITS = 256 };

/* ---- clients -------------------------------------------------------------------------------- */

static int workers_wanted(const tg_broker *b) {
    return b->opts.min_workers > 0 ? b->opts.min_workers : 1;
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    tg_broker *b = arg;
    tg_broker_client *client;
    tg_fleet_stats st;
    tg_fleet_get_stats(b->fleet, &st);
    if (b->service.draining) {
        snprintf(why, TG_LINK_WHY, "this broker is shutting down");
        return TG_CODE_DRAINING;
    }
    if (!b->spec.env_id) {
        tg_link_count_pressure(b->front, TG_PRESSURE_WORKERS);
        snprintf(why, TG_LINK_WHY, "%d of %d workers have joined; ask again in a moment",
                 st.workers, workers_wanted(b));
        return TG_CODE_OVERLOADED;
    }
    if (tg_broker_client_create(&client, tg_session_id(session), NULL) != TG_OK) {
        tg_link_count_pressure(b->front, TG_PRESSURE_MEMORY);
        snprintf(why, TG_LINK_WHY, "out of memory");
        return TG_CODE_OVERLOADED;
    }
    tg_session_set_user(session, client);
    b->n_clients++;
    tg_log_debug("broker", "session %" PRIu64 " opened by %s", tg_session_id(session),
                 tg_session_peer_software(session));
    return TG_CODE_OK;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    tg_broker *b = arg;
    tg_broker_client *client = tg_session_user(session);
    tg_log_debug("broker", "session %" PRIu64 " closed: %s", tg_session_id(session), reason);
    if (!client) return;
    while (client->slots.n)
        tg_broker_close_slot(b, client, tg_by_id_at(&client->slots, client->slots.n - 1));
    tg_session_set_user(session, NULL);
    tg_broker_client_destroy(&client);
    b->n_clients--;
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    tg_broker_take(arg, session, head, msg);
}

static size_t in_flight(void *arg) {
    const tg_broker *b = arg;
    tg_fleet_stats st;
    tg_fleet_get_stats(b->fleet, &st);
    return st.calls + b->n_asks;
}

static void on_beat(void *arg, tg_heartbeat *beat) {
    tg_broker *b = arg;
    tg_fleet_stats st;
    tg_fleet_get_stats(b->fleet, &st);
    beat->in_flight = (uint32_t)in_flight(b);
    beat->completed = b->completed;
    beat->loop_lag_us = b->service.lag_us;
    beat->draining = b->service.draining;
    beat->slots = (uint32_t)st.slots;
    beat->steps = st.steps;
}

/* The slots of a client that was cut off stay; what it asked for is kept for when it asks again. */
static void on_detach(void *arg, tg_session *session, const char *reason) {
    (void)arg;
    tg_log_info("broker", "session %" PRIu64 " is cut off: %s", tg_session_id(session), reason);
}

static void on_resume(void *arg, tg_session *session) {
    (void)arg;
    tg_log_info("broker", "session %" PRIu64 " is back", tg_session_id(session));
}

static const tg_link_ops front_ops = {.on_open = on_open,
                                      .on_message = on_message,
                                      .on_close = on_close,
                                      .on_detach = on_detach,
                                      .on_resume = on_resume,
                                      .on_beat = on_beat};

/* ---- workers -------------------------------------------------------------------------------- */

void tg_broker_workers_changed(tg_broker *b) {
    tg_fleet_stats st;
    tg_fleet_get_stats(b->fleet, &st);
    if (b->spec.env_id) return;
    if (st.workers < workers_wanted(b)) return;
    b->spec = *tg_fleet_spec(b->fleet);
    b->spec.capacity = TG_LIMIT_SLOTS;
    tg_log_info("broker", "%d workers are there: clients are served", st.workers);
}

/* ---- operations ----------------------------------------------------------------------------- */

static bool is_ready(void *arg, char why[TG_OPS_WHY]) {
    const tg_broker *b = arg;
    tg_fleet_stats st = {0};
    if (b->fleet) tg_fleet_get_stats(b->fleet, &st);
    if (b->front && !b->service.draining && b->spec.env_id && st.workers > 0) return true;
    if (b->service.draining)
        snprintf(why, TG_OPS_WHY, "draining");
    else
        snprintf(why, TG_OPS_WHY, "%d of %d workers have joined", st.workers, workers_wanted(b));
    return false;
}

static void make_figures(void *arg, tg_stats *stats) {
    tg_broker *b = arg;
    tg_net_figures_init(&b->net_figures, stats);
    tg_fleet_figures_init(&b->fleet_figures, stats);
    b->replayed =
        tg_stats_counter(stats, "textgen_replayed_requests_total",
                         "Steps answered from memory because they were asked again.", NULL, NULL);
    b->sessions =
        tg_stats_gauge(stats, "textgen_env_sessions", "Clients and learners.", NULL, NULL);
}

static void collect(void *arg) {
    tg_broker *b = arg;
    tg_link_stats links = {0};
    uint64_t accepted, denied = 0;
    if (b->front) tg_link_get_stats(b->front, &links);
    if (b->fleet) {
        tg_fleet_figures_set(&b->fleet_figures, b->fleet);
        tg_fleet_add_link_stats(b->fleet, &links);
    }
    if (b->net) tg_net_auth_counts(b->net, &accepted, &denied);
    tg_net_figures_set(&b->net_figures, &links, b->front ? tg_link_answers(b->front) : NULL,
                       denied);
    tg_stat_set(b->sessions, (double)b->n_clients);
}

static void put_status(void *arg, tg_buf *json) {
    const tg_broker *b = arg;
    tg_buf_printf(json, ", \"state\": \"%s\", \"sessions\": %zu",
                  b->service.draining ? "draining" : "serving", b->n_clients);
    if (b->fleet) tg_fleet_put_status(b->fleet, json);
}

/* ---- life ----------------------------------------------------------------------------------- */

static tg_status open_ops(tg_broker *b, tg_error *err) {
    const tg_ops_hooks hooks = {.program = "textgen-broker",
                                .make = make_figures,
                                .ready = is_ready,
                                .collect = collect,
                                .status = put_status,
                                .security = b->opts.security,
                                .arg = b};
    return tg_ops_open(&b->ops, &b->service.loop, &b->opts.ops, &hooks, err);
}

static tg_status start(tg_broker *b, tg_error *err) {
    const tg_broker_opts *o = &b->opts;
    tg_status st = tg_net_create(&b->net, err);
    if (st == TG_OK) st = tg_net_secure(b->net, o->security, err);
    if (st == TG_OK) st = open_ops(b, err);
    if (st == TG_OK) st = tg_service_watch(&b->service, err);
    tg_fleet_opts fleet = {.bind = o->back,
                           .heartbeat_ms = o->heartbeat_ms,
                           .insecure = o->insecure,
                           .rewards = true,
                           .ops = &tg_broker_fleet_ops,
                           .arg = b};
    if (st == TG_OK) st = tg_fleet_open(&b->fleet, b->net, &b->service.loop, &fleet, err);
    if (st == TG_OK) tg_fleet_show(b->fleet, &b->fleet_figures);
    tg_link_opts link = {.listen = o->front,
                         .insecure = o->insecure,
                         .role = TG_ROLE_WORKER,
                         .spec = &b->spec,
                         .heartbeat_ms = o->heartbeat_ms,
                         .lease_ms = o->lease_ms ? o->lease_ms : LEASE_MS,
                         .credits = CREDITS,
                         .ops = &front_ops,
                         .arg = b};
    tg_limit_opts_apply(&o->limits, &link);
    if (st == TG_OK) st = tg_link_open(&b->front, b->net, &b->service.loop, &link, err);
    return st;
}

static void shut(tg_broker *b) {
    if (b->front) tg_link_close(&b->front, "the broker is shutting down");
    if (b->fleet) tg_fleet_close(&b->fleet, "the broker is shutting down");
    tg_ops_close(&b->ops);
    tg_service_fini(&b->service);
    if (b->net) tg_net_destroy(&b->net);
}

static void on_drain(void *arg, int in_ms) {
    tg_ops_stopping(((tg_broker *)arg)->ops, "draining", in_ms);
}

static tg_status run(tg_broker *b, tg_error *err) {
    static const tg_service_hooks hooks = {
        .name = "broker", .in_flight = in_flight, .on_drain = on_drain};
    tg_status st = tg_service_init(&b->service, &hooks, b, b->opts.drain_ms, err);
    if (st != TG_OK) return st;
    st = start(b, err);
    if (st == TG_OK) {
        printf("textgen-broker ready front %s back %s pid %ld\n", tg_link_address(b->front),
               tg_fleet_address(b->fleet), (long)getpid());
        fflush(stdout);
        tg_service_run(&b->service);
    }
    shut(b);
    return st;
}

tg_status tg_broker_run(const tg_broker_opts *opts, tg_error *err) {
    tg_broker *b = tg_alloc(sizeof *b);
    if (!b) return tg_fail_nomem(err, sizeof *b);
    b->opts = *opts;
    b->batch = tg_alloc(sizeof *b->batch);
    tg_status st = b->batch ? run(b, err) : tg_fail_nomem(err, sizeof *b->batch);
    while (b->spare) {
        tg_broker_request *next = b->spare->next;
        tg_free(b->spare);
        b->spare = next;
    }
    tg_free(b->batch);
    tg_free(b);
    return st;
}
