/* The tests' client: a link in the client's role on a loop that runs only while a call waits. */
#include "tests/support/env_client.h"

#include "proto/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 20000, SLOTS_MAX = 64 };

static bool fail(env_client *c, const char *what) {
    fprintf(stderr, "client: %s\n", what);
    c->failures++;
    return false;
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    (void)arg, (void)session, (void)why;
    return TG_CODE_OK;
}

static void on_ready(void *arg, tg_session *session) {
    env_client *c = arg;
    c->session = session;
    c->closed = false;
    uv_stop(&c->loop);
}

static int by_slot(const void *a, const void *b) {
    const tg_step_result *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

/* One reply of all that came, in a block of its own. */
static void *put_together(env_client *c, void *last) {
    tg_step_result all[64];
    size_t n = 0;
    tg_buf bytes = {0};
    tg_error err = {0};
    void *whole = NULL;
    c->parts[c->n_parts++] = last;
    for (size_t i = 0; i < c->n_parts; i++) {
        const tg_step_reply *r = c->parts[i];
        for (size_t k = 0; k < r->n && n < 64; k++) all[n++] = r->items[k];
    }
    qsort(all, n, sizeof *all, by_slot);
    if (tg_msg_encode(TG_MSG_STEP_REPLY, &(tg_step_reply){all, n}, &bytes, &err) != TG_OK ||
        tg_msg_decode(TG_MSG_STEP_REPLY, bytes.data, bytes.len, &whole, &err) != TG_OK)
        fail(c, err.msg);
    tg_buf_fini(&bytes);
    while (c->n_parts) tg_msg_free(c->parts[--c->n_parts]);
    return whole;
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    env_client *c = arg;
    (void)session;
    if (!c->waiting || head->seq != c->seq) {
        tg_msg_free(msg);
        return;
    }
    if (c->whole && head->type == TG_MSG_STEP_REPLY && head->flags & TG_FRAME_MORE &&
        c->n_parts < 15) {
        c->parts[c->n_parts++] = msg;
        return;
    }
    if (c->n_parts && head->type == TG_MSG_STEP_REPLY) msg = put_together(c, msg);
    c->waiting = false;
    c->reply = msg;
    c->reply_head = *head;
    uv_stop(&c->loop);
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    env_client *c = arg;
    if (session != c->session) return;
    c->session = NULL;
    c->closed = true;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    uv_stop(&c->loop);
}

static void on_timeout(uv_timer_t *timer) {
    env_client *c = timer->data;
    c->expired = true;
    uv_stop(&c->loop);
}

typedef bool condition(const env_client *c);
static bool has_session(const env_client *c) {
    return c->session;
}
static bool has_answer(const env_client *c) {
    return !c->waiting;
}
static bool is_closed(const env_client *c) {
    return c->closed;
}

static bool wait_for(env_client *c, condition *done) {
    c->expired = false;
    uv_timer_start(&c->timer, on_timeout, TIMEOUT_MS, 0);
    while (!done(c) && !c->expired) uv_run(&c->loop, UV_RUN_DEFAULT);
    uv_timer_stop(&c->timer);
    return done(c);
}

static bool open_client(env_client *c, const char *address, bool listening, uint64_t session,
                        const uint8_t *token) {
    static const tg_link_ops ops = {
        .on_open = on_open, .on_ready = on_ready, .on_message = on_message, .on_close = on_close};
    tg_error err = {0};
    memset(c, 0, sizeof *c);
    uv_loop_init(&c->loop);
    uv_timer_init(&c->loop, &c->timer);
    c->timer.data = c;
    /* A client that waits for a CPU on a busy machine is not lost: three of these are longer than that. */
    tg_link_opts o = {.role = TG_ROLE_CLIENT, .ops = &ops, .arg = c, .heartbeat_ms = 3000};
    o.resume_session = session, o.resume_token = token;
    if (listening)
        o.listen = address;
    else
        o.dial = address;
    tg_status st = tg_net_create(&c->net, &err);
    if (st == TG_OK) st = tg_link_open(&c->link, c->net, &c->loop, &o, &err);
    if (st != TG_OK) return fail(c, err.msg);
    return wait_for(c, has_session) || fail(c, "no session in time");
}

bool env_client_open(env_client *c, const char *address, bool listening) {
    return open_client(c, address, listening, 0, NULL);
}

bool env_client_resume(env_client *c, const char *address, uint64_t session,
                       const uint8_t token[16]) {
    return open_client(c, address, false, session, token);
}

void env_client_close(env_client *c) {
    tg_link_close(&c->link, "done");
    uv_close((uv_handle_t *)&c->timer, NULL);
    while (uv_run(&c->loop, UV_RUN_DEFAULT)) continue; /* a uv_stop may be pending */
    uv_loop_close(&c->loop);
    tg_net_destroy(&c->net);
}

bool env_client_send(env_client *c, tg_msg_type type, const void *msg) {
    tg_error err = {0};
    tg_frame head = {.type = type, .seq = ++c->seq};
    c->waiting = true;
    if (!c->session) return fail(c, "no session");
    return tg_session_send(c->session, &head, msg, &err) == TG_OK || fail(c, err.msg);
}

void *env_client_receive(env_client *c, tg_msg_type want) {
    if (!wait_for(c, has_answer)) {
        fail(c, "no answer");
        return NULL;
    }
    void *reply = c->reply;
    c->reply = NULL;
    c->error = TG_CODE_OK;
    if (c->reply_head.type == want) return reply;
    if (c->reply_head.type == TG_MSG_ERROR) c->error = ((const tg_wire_error *)reply)->code;
    tg_msg_free(reply);
    return NULL;
}

void *env_client_ask(env_client *c, tg_msg_type type, const void *msg, tg_msg_type want) {
    return env_client_send(c, type, msg) ? env_client_receive(c, want) : NULL;
}

bool env_client_wait_closed(env_client *c) {
    return wait_for(c, is_closed);
}

bool env_client_open_slots(env_client *c, uint32_t n) {
    uint32_t ids[SLOTS_MAX];
    for (uint32_t i = 0; i < SLOTS_MAX; i++) ids[i] = 10 + i;
    tg_slot_list list = {ids, n < SLOTS_MAX ? n : SLOTS_MAX};
    void *reply = env_client_ask(c, TG_MSG_OPEN_SLOTS, &list, TG_MSG_SLOTS_OPENED);
    tg_msg_free(reply);
    return reply;
}

tg_reset_reply *env_client_reset(env_client *c, const tg_reset_item *items, size_t n) {
    tg_reset_batch batch = {items, n, true};
    return env_client_ask(c, TG_MSG_RESET, &batch, TG_MSG_RESET_REPLY);
}

tg_step_reply *env_client_step(env_client *c, const tg_step_item *items, size_t n) {
    tg_step_batch batch = {.items = items, .n = n};
    return env_client_ask(c, TG_MSG_STEP, &batch, TG_MSG_STEP_REPLY);
}
