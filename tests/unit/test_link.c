/* Sessions: Hello and Welcome in both directions, refusals, loss by disconnection and by silence, return. */
#include "common/net/link.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

/* One side: what its owner saw. */
typedef struct side {
    tg_link *link;
    tg_session *session; /* the last opened, NULL when closed */
    int opened, ready, closed, messages, refused;
    char reason[256];
    tg_code answer; /* of on_open */
    tg_frame last;
    tg_code last_error;
    bool echo;
} side;

typedef struct fixture {
    uv_loop_t loop;
    uv_timer_t deadline;
    bool timed_out;
    tg_net *net;
    char address[128];
    side worker, client;
} fixture;

static const tg_env_spec SPEC = {
    .env_id = "test", .vocab_size = 7, .config_digest = 42, .capacity = 3};

static tg_code on_open(void *arg, tg_session *s, char why[TG_LINK_WHY]) {
    side *x = arg;
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
    side *x = arg;
    CHECK(tg_session_user(s) == x);
    x->ready++;
}

static void on_message(void *arg, tg_session *s, const tg_frame *head, void *msg) {
    side *x = arg;
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
    side *x = arg;
    if (x->session == s) x->session = NULL;
    x->closed++;
    snprintf(x->reason, sizeof x->reason, "%s", reason);
}

static void on_beat(void *arg, tg_heartbeat *beat) {
    (void)arg;
    beat->completed = 77;
}

static void on_refused(void *arg, tg_code code, const char *message) {
    side *x = arg;
    x->refused++;
    x->last_error = code;
    snprintf(x->reason, sizeof x->reason, "%s", message);
}

static const tg_link_ops OPS = {on_open, on_ready, on_message, on_close, on_beat, on_refused};

static void on_deadline(uv_timer_t *t) {
    ((fixture *)t->data)->timed_out = true;
}

static void setup(fixture *f, const char *name) {
    tg_error err;
    *f = (fixture){0};
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->deadline);
    f->deadline.data = f;
    uv_timer_start(&f->deadline, on_deadline, 20000, 0);
    snprintf(f->address, sizeof f->address, "ipc://%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_net_create(&f->net, &err));
}

static void start(fixture *f, side *x, bool listen, int heartbeat_ms) {
    tg_error err;
    tg_role role = x == &f->worker ? TG_ROLE_WORKER : TG_ROLE_CLIENT;
    tg_link_opts opts = {.listen = listen ? f->address : NULL,
                         .dial = listen ? NULL : f->address,
                         .role = role,
                         .spec = role == TG_ROLE_WORKER ? &SPEC : NULL,
                         .heartbeat_ms = heartbeat_ms,
                         .ops = &OPS,
                         .arg = x};
    CHECK_OK(tg_link_open(&x->link, f->net, &f->loop, &opts, &err));
}

#define RUN_UNTIL(f, cond)                                                                         \
    do {                                                                                           \
        while (!(cond) && !(f)->timed_out) {                                                       \
            uv_run(&(f)->loop, UV_RUN_NOWAIT);                                                     \
            usleep(500);                                                                           \
        }                                                                                          \
        tg_check(!(f)->timed_out, __FILE__, __LINE__, "waited in vain for: %s", #cond);            \
    } while (0)

static void teardown(fixture *f) {
    tg_link_close(&f->worker.link, "test ends");
    tg_link_close(&f->client.link, "test ends");
    uv_close((uv_handle_t *)&f->deadline, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&f->loop), 0);
    tg_net_destroy(&f->net);
    CHECK_EQ(f->worker.opened, f->worker.closed);
    CHECK_EQ(f->client.opened, f->client.closed);
}

static void exchange(bool worker_listens, bool dial_first) {
    fixture f;
    tg_error err;
    setup(&f, "exchange");
    side *listener = worker_listens ? &f.worker : &f.client,
         *dialler = worker_listens ? &f.client : &f.worker;
    start(&f, dial_first ? dialler : listener, !dial_first, 50);
    if (dial_first) {
        for (int i = 0; i < 20; i++) uv_run(&f.loop, UV_RUN_ONCE); /* nobody there yet */
    }
    start(&f, dial_first ? listener : dialler, dial_first, 50);
    f.worker.echo = true;
    RUN_UNTIL(&f, f.client.ready && f.worker.ready);
    REQUIRE(f.client.session && f.worker.session);
    CHECK_EQ(tg_session_id(f.client.session), tg_session_id(f.worker.session));
    CHECK(tg_session_spec(f.worker.session) == NULL);
    const tg_env_spec *spec = tg_session_spec(f.client.session);
    REQUIRE(spec != NULL);
    CHECK_EQ(spec->vocab_size, 7);
    CHECK_STR(spec->env_id, "test");
    CHECK(strncmp(tg_session_peer_software(f.client.session), "textgen ", 8) == 0);
    CHECK(tg_link_find(f.client.link, tg_session_id(f.client.session)) == f.client.session);
    CHECK(tg_link_find(f.client.link, 12345) == NULL);
    uint32_t slots[] = {3, 1, 2};
    tg_slot_list list = {slots, 3};
    CHECK_OK(tg_session_send(f.client.session, &(tg_frame){.type = TG_MSG_OPEN_SLOTS, .seq = 9},
                             &list, &err));
    RUN_UNTIL(&f, f.client.messages == 1);
    CHECK_EQ(f.client.last.type, TG_MSG_SLOTS_OPENED);
    CHECK_EQ(f.client.last.seq, 9);
    RUN_UNTIL(&f, tg_session_last_beat(f.client.session)->completed == 77 &&
                      tg_session_last_beat(f.worker.session)->completed == 77);
    tg_link_close(&f.worker.link,
                  "work is done"); /* Bye arrives although the socket goes at once */
    RUN_UNTIL(&f, f.client.closed == 1);
    CHECK_STR(f.client.reason, "Bye: work is done");
    teardown(&f);
}

TEST(worker_dials_client_listens) {
    exchange(false, false);
}

TEST(client_dials_worker_listens) {
    exchange(true, false);
}

TEST(dialling_may_come_first) {
    exchange(false, true);
    exchange(true, true);
}

TEST(many_workers_have_sessions_of_their_own) {
    fixture f;
    setup(&f, "many");
    start(&f, &f.client, true, 50);
    side more[8] = {0};
    tg_error err;
    for (int i = 0; i < 8; i++) {
        tg_link_opts opts = {
            .dial = f.address, .role = TG_ROLE_WORKER, .spec = &SPEC, .ops = &OPS, .arg = &more[i]};
        CHECK_OK(tg_link_open(&more[i].link, f.net, &f.loop, &opts, &err));
    }
    RUN_UNTIL(&f, f.client.ready == 8);
    for (int i = 0; i < 8; i++) RUN_UNTIL(&f, more[i].ready == 1);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < i; k++)
            CHECK(tg_session_id(more[i].session) != tg_session_id(more[k].session));
    }
    for (int i = 0; i < 8; i++) tg_link_close(&more[i].link, "x");
    RUN_UNTIL(&f, f.client.closed == 8);
    teardown(&f);
}

TEST(a_refused_worker_hears_why_and_tries_again) {
    fixture f;
    setup(&f, "refused");
    f.client.answer = TG_CODE_CONFIG_MISMATCH;
    start(&f, &f.client, true, 50);
    start(&f, &f.worker, false, 50);
    RUN_UNTIL(&f, f.worker.refused == 1);
    CHECK_EQ(f.worker.last_error, TG_CODE_CONFIG_MISMATCH);
    CHECK_STR(f.worker.reason, "not you");
    CHECK_EQ(f.client.opened, 0);
    f.client.answer = TG_CODE_OK;
    RUN_UNTIL(&f, f.worker.ready == 1);
    teardown(&f);
}

TEST(a_refusing_dialler_ends_the_session) {
    fixture f;
    setup(&f, "refusing");
    f.client.answer = TG_CODE_CONFIG_MISMATCH;
    start(&f, &f.worker, true, 50);
    start(&f, &f.client, false, 50);
    RUN_UNTIL(&f, f.worker.closed == 1); /* the client has hung up */
    CHECK_EQ(f.client.opened, 0);
    teardown(&f);
}

TEST(the_dialler_returns_when_the_listener_restarts) {
    fixture f;
    setup(&f, "restart");
    start(&f, &f.client, true, 50);
    start(&f, &f.worker, false, 50);
    RUN_UNTIL(&f, f.worker.ready == 1);
    uint64_t first = tg_session_id(f.worker.session);
    tg_link_close(&f.client.link, "restart");
    RUN_UNTIL(&f, f.worker.closed == 1);
    start(&f, &f.client, true, 50);
    RUN_UNTIL(&f, f.worker.ready == 2);
    CHECK(tg_session_id(f.worker.session) != first);
    teardown(&f);
}

TEST(heartbeats_come_as_often_as_the_peer_wants) {
    fixture f;
    setup(&f, "often");
    start(&f, &f.worker, true, 60000);
    start(&f, &f.client, false, 100);
    RUN_UNTIL(&f, f.client.ready == 1 && f.worker.ready == 1);
    for (int i = 0; i < 1000; i++) { /* more than three of the client's heartbeats */
        uv_run(&f.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    CHECK_EQ(f.client.closed, 0);
    CHECK_EQ(tg_session_last_beat(f.client.session)->completed, 77);
    teardown(&f);
}

/* ---- peers that are not ours ---------------------------------------------------------------- */

typedef struct raw {
    void *ctx, *sock;
} raw;

static raw raw_open(const char *address) {
    raw r = {.ctx = zmq_ctx_new()};
    int zero = 0, wait = 20;
    r.sock = zmq_socket(r.ctx, ZMQ_DEALER);
    zmq_setsockopt(r.sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(r.sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    zmq_connect(r.sock, address);
    return r;
}

static void raw_close(raw *r) {
    zmq_close(r->sock);
    zmq_ctx_term(r->ctx);
}

static void raw_send(raw *r, tg_frame head, const void *msg) {
    tg_buf b = {0};
    CHECK(tg_frame_encode(&head, msg, &b, NULL) == TG_OK);
    zmq_send(r->sock, b.data, b.len, 0);
    tg_buf_fini(&b);
}

/* The next message that is not a heartbeat; runs the loop meanwhile. */
static void *raw_recv(fixture *f, raw *r, tg_frame *head) {
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

static tg_hello client_hello(void) {
    return (tg_hello){
        .proto_major = 1, .role = TG_ROLE_CLIENT, .software = "raw", .heartbeat_ms = 50};
}

static tg_code refused_with(fixture *f, raw *r, tg_frame head, const void *msg) {
    tg_frame got = {0};
    raw_send(r, head, msg);
    tg_wire_error *e = raw_recv(f, r, &got);
    tg_code code = e && got.type == TG_MSG_ERROR ? e->code : TG_CODE_OK;
    if (e) CHECK_EQ(got.seq, head.seq);
    tg_msg_free(e);
    return code;
}

TEST(wrong_hellos_are_refused_by_name) {
    fixture f;
    setup(&f, "wrong");
    start(&f, &f.worker, true, 50);
    raw r = raw_open(f.address);
    tg_hello h = client_hello();
    h.proto_major = 2;
    CHECK_EQ(refused_with(&f, &r, (tg_frame){.type = TG_MSG_HELLO, .seq = 5}, &h),
             TG_CODE_UNSUPPORTED_VERSION);
    h = client_hello();
    h.role = TG_ROLE_WORKER;
    CHECK_EQ(refused_with(&f, &r, (tg_frame){.type = TG_MSG_HELLO, .seq = 6}, &h),
             TG_CODE_INVALID_ARGUMENT);
    tg_slot_list none = {0};
    CHECK_EQ(
        refused_with(&f, &r, (tg_frame){.type = TG_MSG_OPEN_SLOTS, .seq = 7, .session = 3}, &none),
        TG_CODE_FENCED);
    CHECK_EQ(f.worker.opened, 0);
    raw_close(&r);
    teardown(&f);
}

TEST(a_session_number_works_on_its_own_connection_only) {
    fixture f;
    setup(&f, "number");
    start(&f, &f.worker, true, 1000);
    raw r = raw_open(f.address);
    tg_hello h = client_hello();
    raw_send(&r, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    tg_frame head;
    tg_welcome *w = raw_recv(&f, &r, &head);
    REQUIRE(w && head.type == TG_MSG_WELCOME);
    CHECK_EQ(w->heartbeat_ms, 50);
    CHECK(w->has_spec && w->spec.vocab_size == 7);
    uint64_t session = w->session;
    CHECK_EQ(session, head.session);
    tg_msg_free(w);
    tg_slot_list none = {0};
    CHECK_EQ(refused_with(&f, &r,
                          (tg_frame){.type = TG_MSG_OPEN_SLOTS, .seq = 7, .session = session + 1},
                          &none),
             TG_CODE_PERMISSION_DENIED);
    raw_send(&r, (tg_frame){.type = TG_MSG_HELLO, .seq = 2}, &h); /* again: the same Welcome */
    w = raw_recv(&f, &r, &head);
    CHECK(w && head.type == TG_MSG_WELCOME && w->session == session);
    tg_msg_free(w);
    CHECK_EQ(f.worker.opened, 1);
    raw_close(&r);
    teardown(&f);
}

TEST(a_connection_that_drops_ends_its_session_at_once) {
    fixture f;
    setup(&f, "drop");
    start(&f, &f.worker, true, 60000); /* no heartbeat helps here */
    raw r = raw_open(f.address);
    tg_hello h = client_hello();
    h.heartbeat_ms = 60000;
    raw_send(&r, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    RUN_UNTIL(&f, f.worker.ready == 1);
    raw_close(&r); /* as a killed process: no Bye */
    RUN_UNTIL(&f, f.worker.closed == 1);
    CHECK_STR(f.worker.reason, "disconnected");
    tg_link_stats st;
    tg_link_get_stats(f.worker.link, &st);
    CHECK_EQ(st.lost, 1);
    teardown(&f);
}

TEST(a_silent_peer_is_lost_after_three_heartbeats) {
    fixture f;
    setup(&f, "silent");
    start(&f, &f.worker, true, 60);
    raw r = raw_open(f.address);
    tg_hello h = client_hello();
    raw_send(&r, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    RUN_UNTIL(&f, f.worker.ready == 1);
    RUN_UNTIL(&f, f.worker.closed == 1); /* connected, but never a word */
    CHECK(strncmp(f.worker.reason, "silent for", 10) == 0);
    tg_frame head;
    tg_heartbeat beat = {0};
    raw_send(&r, (tg_frame){.type = TG_MSG_HEARTBEAT, .session = 1}, &beat); /* too late */
    for (;;) {
        void *msg = raw_recv(&f, &r, &head);
        if (!msg || head.type == TG_MSG_ERROR) {
            CHECK(msg && ((tg_wire_error *)msg)->code == TG_CODE_FENCED);
            tg_msg_free(msg);
            break;
        }
        tg_msg_free(msg);
    }
    raw_close(&r);
    teardown(&f);
}

TEST(a_process_that_connects_again_replaces_itself) {
    fixture f;
    setup(&f, "again");
    start(&f, &f.worker, true, 60000);
    raw a = raw_open(f.address), b = raw_open(f.address);
    tg_hello h = client_hello();
    memset(h.peer_uuid, 7, 16);
    raw_send(&a, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    RUN_UNTIL(&f, f.worker.ready == 1);
    raw_send(&b, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    RUN_UNTIL(&f, f.worker.ready == 2);
    CHECK_EQ(f.worker.closed, 1);
    CHECK_STR(f.worker.reason, "the peer connected again");
    raw_close(&a);
    raw_close(&b);
    teardown(&f);
}

TEST_MAIN
