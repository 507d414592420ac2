/* One link on one loop. To die means to close the link's endpoint abruptly: a new link follows. */
#include "tests/support/reward_worker.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/net/link.h"
#include "proto/codec.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct reward_worker {
    char address[300];
    bool listen, deterministic, die_now;
    atomic_int fault, requests;
    uv_loop_t loop;
    uv_async_t async;
    tg_net *net;
    tg_link *link;
    pthread_t thread;
    tg_reward_fn fn;
};

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    (void)arg, (void)session, (void)why;
    return TG_CODE_OK;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    (void)arg, (void)session, (void)reason;
}

static void answer(reward_worker *w, tg_session *session, const tg_frame *head,
                   const tg_score_request *q) {
    tg_score_result *r = tg_alloc_array(q->n + 1, sizeof *r);
    int fault = atomic_load(&w->fault);
    tg_error err = {0};
    tg_component part = {"chars", 0, TG_REWARD_OK};
    for (size_t i = 0; r && i < q->n; i++) {
        double length = (double)strlen(q->items[i].completion) + (q->ranked ? 1000 : 0);
        r[i] = (tg_score_result){.id = q->items[i].id, .status = TG_REWARD_OK, .value = length};
        r[i].message = "";
        if (fault == JUDGE_NAN) r[i].value = (double)NAN;
        if (fault == JUDGE_ITEM_ERROR)
            r[i].status = TG_REWARD_FAILED, r[i].message = "this text is ill";
        if (fault == JUDGE_TWICE) r[i].id = q->items[0].id;
    }
    if (r && q->n) part.value = r[0].value, r[0].components = &part, r[0].n_components = 1;
    tg_score_reply reply = {r, q->n - (fault == JUDGE_SHORT)};
    tg_frame h = {.type = TG_MSG_SCORE_REPLY, .flags = TG_FRAME_REPLY, .seq = head->seq};
    if (tg_session_send(session, &h, &reply, &err) != TG_OK)
        fprintf(stderr, "reward worker: %s\n", err.msg);
    tg_free(r);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    reward_worker *w = arg;
    int n = atomic_fetch_add(&w->requests, 1);
    switch (atomic_load(&w->fault)) {
    case JUDGE_NEVER: break;
    case JUDGE_ERROR:
        tg_session_send_error(session, head, TG_CODE_INTERNAL, "the judge is ill");
        break;
    case JUDGE_WITHOUT:
        tg_session_send_error(session, head, TG_CODE_NOT_FOUND, "there is no such function");
        break;
    case JUDGE_DIE:
        w->die_now = true;
        uv_async_send(&w->async);
        break;
    case JUDGE_BUSY:
        if (n == 0)
            tg_session_send_error(session, head, TG_CODE_OVERLOADED, "not now");
        else
            answer(w, session, head, msg);
        break;
    default: answer(w, session, head, msg);
    }
    tg_msg_free(msg);
}

static const tg_link_ops ops = {.on_open = on_open, .on_message = on_message, .on_close = on_close};

static tg_status open_link(reward_worker *w, tg_error *err) {
    tg_link_opts o = {.listen = w->listen ? w->address : NULL,
                      .dial = w->listen ? NULL : w->address,
                      .role = TG_ROLE_REWARD,
                      .peer_roles = TG_ROLE_BIT(TG_ROLE_CLIENT),
                      .spec_optional = true,
                      .functions = &w->fn,
                      .n_functions = atomic_load(&w->fault) != JUDGE_WITHOUT,
                      .heartbeat_ms = 200,
                      .ops = &ops,
                      .arg = w};
    tg_status st = tg_link_open(&w->link, w->net, &w->loop, &o, err);
    if (st == TG_OK && w->listen)
        snprintf(w->address, sizeof w->address, "%s", tg_link_address(w->link));
    return st;
}

static void on_async(uv_async_t *async) {
    reward_worker *w = async->data;
    tg_error err = {0};
    tg_link_close(&w->link, "gone");
    if (!w->die_now) {
        uv_close((uv_handle_t *)async, NULL);
        return;
    }
    w->die_now = false;
    atomic_store(&w->fault, JUDGE_WELL);
    if (open_link(w, &err) != TG_OK) fprintf(stderr, "reward worker: %s\n", err.msg);
}

static void *run(void *arg) {
    uv_run(&((reward_worker *)arg)->loop, UV_RUN_DEFAULT);
    return NULL;
}

reward_worker *reward_worker_start(const char *address, bool listen, judge_fault fault,
                                   bool deterministic) {
    reward_worker *w = tg_alloc(sizeof *w);
    tg_error err = {0};
    if (!w) return NULL;
    snprintf(w->address, sizeof w->address, "%s", address);
    w->listen = listen;
    w->fn = (tg_reward_fn){.name = "length", .version = "1", .deterministic = deterministic};
    atomic_store(&w->fault, fault);
    uv_loop_init(&w->loop);
    uv_async_init(&w->loop, &w->async, on_async);
    w->async.data = w;
    if (tg_net_create(&w->net, &err) != TG_OK || open_link(w, &err) != TG_OK ||
        pthread_create(&w->thread, NULL, run, w)) {
        fprintf(stderr, "reward worker: %s\n", err.msg);
        return NULL;
    }
    return w;
}

void reward_worker_stop(reward_worker **out) {
    reward_worker *w = *out;
    if (!w) return;
    uv_async_send(&w->async);
    pthread_join(w->thread, NULL);
    uv_loop_close(&w->loop);
    tg_net_destroy(&w->net);
    tg_free(w);
    *out = NULL;
}

int reward_worker_requests(const reward_worker *w) {
    return atomic_load(&w->requests);
}

const char *reward_worker_address(const reward_worker *w) {
    return w->address;
}
