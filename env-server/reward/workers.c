/* The life of a client of reward workers: its links, its loop and the thread that runs it. */
#include "common/base/alloc.h"
#include "env-server/reward/workers_impl.h"

#include <string.h>

/* ---- the loop ------------------------------------------------------------------------------ */

static void on_async(uv_async_t *async) {
    tg_reward_workers *j = async->data;
    pthread_mutex_lock(&j->lock);
    bool stopping = j->stopping, closing = j->closing;
    pthread_mutex_unlock(&j->lock);
    if (stopping) tg_reward_workers_fail_all(j);
    if (!closing) {
        tg_reward_workers_dispatch(j);
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

void tg_reward_workers_interrupt(tg_reward_workers *j) {
    pthread_mutex_lock(&j->lock);
    j->stopping = true;
    uv_async_send(&j->async);
    pthread_mutex_unlock(&j->lock);
}

/* ---- life ---------------------------------------------------------------------------------- */

static tg_status open_link(tg_reward_workers *j, const tg_reward_workers_opts *o, const char *dial,
                           const char *listen, tg_error *err) {
    if (j->n_links == TG_REWARD_LINKS)
        return tg_fail(err, TG_CONFIG, "remote: at most %d addresses", TG_REWARD_LINKS);
    tg_link_opts opts = {.listen = listen,
                         .dial = dial,
                         .insecure = o->insecure,
                         .role = TG_ROLE_CLIENT,
                         .peer_roles = TG_ROLE_BIT(TG_ROLE_REWARD),
                         .spec_optional = true,
                         .heartbeat_ms = o->heartbeat_ms,
                         .ops = &tg_reward_workers_link_ops,
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
