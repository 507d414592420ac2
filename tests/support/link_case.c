/* Links and raw peers for the tests of sessions. */
#include "tests/support/link_case.h"

#include "proto/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

const tg_env_spec LINK_CASE_SPEC = {
    .env_id = "test", .vocab_size = 7, .config_digest = 42, .capacity = 3};

static tg_code on_open(void *arg, tg_session *s, char why[TG_LINK_WHY]) {
    link_side *x = arg;
    if (x->answer != TG_CODE_OK) {
        snprintf(why, TG_LINK_WHY, "not you");
        return x->answer;
    }
    x->session = s;
    x->opened++;
    tg_session_set_user(s, x);
    return TG_CODE_OK;
}

static void on_ready(void *arg, tg_session *s) {
    link_side *x = arg;
    CHECK(tg_session_user(s) == x);
    x->ready++;
}

static void on_message(void *arg, tg_session *s, const tg_frame *head, void *msg) {
    link_side *x = arg;
    x->messages++;
    x->last = *head;
    if (head->type == TG_MSG_ERROR) x->last_error = ((tg_wire_error *)msg)->code;
    if (x->echo) {
        tg_frame back = {TG_MSG_SLOTS_OPENED, TG_FRAME_REPLY, 0, head->seq};
        CHECK(tg_session_send(s, &back, msg, NULL) == TG_OK);
    }
    tg_msg_free(msg);
}

static void on_close(void *arg, tg_session *s, const char *reason) {
    link_side *x = arg;
    if (x->session == s) x->session = NULL;
    x->closed++;
    snprintf(x->reason, sizeof x->reason, "%s", reason);
}

static void on_beat(void *arg, tg_heartbeat *beat) {
    (void)arg;
    beat->completed = 77;
}

static void on_refused(void *arg, tg_code code, const char *message) {
    link_side *x = arg;
    x->refused++;
    x->last_error = code;
    snprintf(x->reason, sizeof x->reason, "%s", message);
}

static void on_detach(void *arg, tg_session *s, const char *reason) {
    link_side *x = arg;
    CHECK(tg_session_detached(s));
    x->detached++;
    snprintf(x->reason, sizeof x->reason, "%s", reason);
}

static void on_resume(void *arg, tg_session *s) {
    link_side *x = arg;
    CHECK(!tg_session_detached(s));
    x->resumed++;
}

const tg_link_ops LINK_CASE_OPS = {.on_open = on_open,
                                   .on_ready = on_ready,
                                   .on_message = on_message,
                                   .on_close = on_close,
                                   .on_beat = on_beat,
                                   .on_refused = on_refused};
const tg_link_ops LINK_RESUME_OPS = {.on_open = on_open,
                                     .on_ready = on_ready,
                                     .on_message = on_message,
                                     .on_close = on_close,
                                     .on_beat = on_beat,
                                     .on_refused = on_refused,
                                     .on_detach = on_detach,
                                     .on_resume = on_resume};

static void on_deadline(uv_timer_t *t) {
    ((link_case *)t->data)->timed_out = true;
}

void link_case_setup(link_case *f, const char *name) {
    tg_error err;
    *f = (link_case){0};
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->deadline);
    f->deadline.data = f;
    uv_timer_start(&f->deadline, on_deadline, 20000, 0);
    snprintf(f->address, sizeof f->address, "ipc://%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_net_create(&f->net, &err));
}

tg_link_opts link_case_opts(link_case *f, link_side *x, bool listen, int heartbeat_ms) {
    tg_role role = x == &f->worker ? TG_ROLE_WORKER : TG_ROLE_CLIENT;
    return (tg_link_opts){.listen = listen ? f->address : NULL,
                          .dial = listen ? NULL : f->address,
                          .role = role,
                          .spec = role == TG_ROLE_WORKER ? &LINK_CASE_SPEC : NULL,
                          .heartbeat_ms = heartbeat_ms,
                          .ops = &LINK_CASE_OPS,
                          .arg = x};
}

void link_case_start(link_case *f, link_side *x, bool listen, int heartbeat_ms) {
    tg_error err;
    tg_link_opts opts = link_case_opts(f, x, listen, heartbeat_ms);
    CHECK_OK(tg_link_open(&x->link, f->net, &f->loop, &opts, &err));
}

void link_case_teardown(link_case *f) {
    tg_link_close(&f->worker.link, "test ends");
    tg_link_close(&f->client.link, "test ends");
    uv_close((uv_handle_t *)&f->deadline, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&f->loop), 0);
    tg_net_destroy(&f->net);
    CHECK_EQ(f->worker.opened, f->worker.closed);
    CHECK_EQ(f->client.opened, f->client.closed);
}

raw_peer raw_open(const char *address) {
    raw_peer r = {.ctx = zmq_ctx_new()};
    int zero = 0, wait = 20;
    r.sock = zmq_socket(r.ctx, ZMQ_DEALER);
    zmq_setsockopt(r.sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(r.sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    zmq_connect(r.sock, address);
    return r;
}

void raw_close(raw_peer *r) {
    zmq_close(r->sock);
    zmq_ctx_term(r->ctx);
}

void raw_send(raw_peer *r, tg_frame head, const void *msg) {
    tg_buf b = {0};
    CHECK(tg_frame_encode(&head, msg, &b, NULL) == TG_OK);
    zmq_send(r->sock, b.data, b.len, 0);
    tg_buf_fini(&b);
}

void *raw_recv(link_case *f, raw_peer *r, tg_frame *head) {
    char frame[2048];
    while (!f->timed_out) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
        int len = zmq_recv(r->sock, frame, sizeof frame, 0);
        void *msg = NULL;
        if (len <= 0 || tg_frame_decode(frame, (size_t)len, head, &msg, NULL) != TG_OK) continue;
        if (head->type != TG_MSG_HEARTBEAT) return msg;
        tg_msg_free(msg);
    }
    return NULL;
}

tg_hello client_hello(void) {
    return (tg_hello){
        .proto_major = 1, .role = TG_ROLE_CLIENT, .software = "raw", .heartbeat_ms = 50};
}

tg_code refused_with(link_case *f, raw_peer *r, tg_frame head, const void *msg) {
    tg_frame got = {0};
    raw_send(r, head, msg);
    tg_wire_error *e = raw_recv(f, r, &got);
    tg_code code = e && got.type == TG_MSG_ERROR ? e->code : TG_CODE_OK;
    if (e) CHECK_EQ(got.seq, head.seq);
    tg_msg_free(e);
    return code;
}
