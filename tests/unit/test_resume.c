/* Sessions that outlive their connection: lease, token, epoch, fencing; credits; roles; many sessions. */
#include "common/base/clock.h"
#include "common/net/session_table.h"
#include "proto/codec.h"
#include "tests/support/link_case.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zmq.h>

/* A worker that listens with a lease. */
static void start_leasing(link_case *f, int lease_ms, uint32_t credits) {
    tg_error err;
    tg_link_opts o = link_case_opts(f, &f->worker, true, 20000);
    o.ops = &LINK_RESUME_OPS;
    o.lease_ms = lease_ms;
    o.credits = credits;
    CHECK_OK(tg_link_open(&f->worker.link, f->net, &f->loop, &o, &err));
}

static tg_hello hello_of(uint8_t process) {
    tg_hello h = client_hello();
    h.proto_minor = 1;
    h.heartbeat_ms = 20000; /* raw peers send none */
    memset(h.peer_uuid, process, 16);
    return h;
}

/* Says Hello and returns the Welcome; NULL when the answer is something else. */
static tg_welcome *greet(link_case *f, raw_peer *r, const tg_hello *h) {
    tg_frame head;
    raw_send(r, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, h);
    void *msg = raw_recv(f, r, &head);
    if (msg && head.type == TG_MSG_WELCOME) return msg;
    tg_msg_free(msg);
    return NULL;
}

static void ask_again(tg_hello *h, const tg_welcome *w) {
    h->resume_session = w->session;
    h->has_resume_token = true;
    memcpy(h->resume_token, w->resume_token, 16);
}

TEST(a_lost_client_comes_back_to_its_session) {
    link_case f;
    link_case_setup(&f, "resume");
    start_leasing(&f, 60000, 0);
    raw_peer a = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *first = greet(&f, &a, &h);
    REQUIRE(first != NULL);
    CHECK(first->has_resume_token && !first->resumed);
    CHECK_EQ(first->lease_ms, 60000);
    CHECK_EQ(first->epoch, 1);
    CHECK_EQ(first->proto_minor, 1);
    tg_session *s = f.worker.session;
    raw_close(&a);
    RUN_UNTIL(&f, f.worker.detached == 1);
    CHECK_EQ(f.worker.closed, 0);
    tg_error err;
    CHECK_EQ(tg_session_send(s, &(tg_frame){.type = TG_MSG_BYE}, &(tg_bye){""}, &err),
             TG_UNAVAILABLE);
    raw_peer b = raw_open(f.address);
    h = hello_of(2); /* another process */
    ask_again(&h, first);
    tg_welcome *again = greet(&f, &b, &h);
    REQUIRE(again != NULL);
    CHECK(again->resumed);
    CHECK_EQ(again->session, first->session);
    CHECK_EQ(again->epoch, 2);
    CHECK_EQ(f.worker.resumed, 1);
    CHECK_EQ(f.worker.opened, 1);
    CHECK(f.worker.session == s && tg_session_epoch(s) == 2);
    tg_link_stats st;
    tg_link_get_stats(f.worker.link, &st);
    CHECK_EQ(st.resumed, 1);
    CHECK_EQ(st.sessions, 1);
    CHECK_EQ(st.detached, 0);
    tg_msg_free(first);
    tg_msg_free(again);
    raw_close(&b);
    link_case_teardown(&f);
}

TEST(the_older_connection_is_fenced) {
    link_case f;
    link_case_setup(&f, "fenced");
    start_leasing(&f, 60000, 0);
    raw_peer a = raw_open(f.address), b = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *first = greet(&f, &a, &h);
    REQUIRE(first != NULL);
    h = hello_of(2);
    ask_again(&h, first);
    tg_welcome *again = greet(&f, &b, &h); /* while the first connection still stands */
    REQUIRE(again && again->resumed);
    CHECK_EQ(f.worker.detached, 1);
    tg_slot_list none = {0};
    tg_frame ask = {.type = TG_MSG_OPEN_SLOTS, .seq = 7, .session = first->session};
    CHECK_EQ(refused_with(&f, &a, ask, &none), TG_CODE_FENCED);
    f.worker.echo = true;
    CHECK_EQ(refused_with(&f, &b, ask, &none), TG_CODE_OK);
    raw_close(&a); /* its end is not the session's */
    for (int i = 0; i < 300; i++) {
        uv_run(&f.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    CHECK_EQ(f.worker.detached, 1);
    tg_msg_free(first);
    tg_msg_free(again);
    raw_close(&b);
    link_case_teardown(&f);
}

TEST(a_wrong_token_gives_a_new_session_and_no_hint) {
    link_case f;
    link_case_setup(&f, "token");
    start_leasing(&f, 60000, 0);
    raw_peer a = raw_open(f.address), b = raw_open(f.address), c = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *first = greet(&f, &a, &h);
    REQUIRE(first != NULL);
    h = hello_of(2);
    ask_again(&h, first);
    h.resume_token[15] ^= 1;
    tg_welcome *wrong = greet(&f, &b, &h);
    h = hello_of(3);
    ask_again(&h, first);
    h.resume_session += 77;
    tg_welcome *unknown = greet(&f, &c, &h);
    REQUIRE(wrong && unknown);
    CHECK(!wrong->resumed && !unknown->resumed);
    CHECK(wrong->session != first->session && unknown->session != first->session);
    CHECK_EQ(wrong->epoch, 1);
    CHECK_EQ(f.worker.opened, 3);
    CHECK_EQ(f.worker.detached, 0);
    tg_msg_free(first);
    tg_msg_free(wrong);
    tg_msg_free(unknown);
    raw_close(&a);
    raw_close(&b);
    raw_close(&c);
    link_case_teardown(&f);
}

TEST(a_lease_ends) {
    link_case f;
    link_case_setup(&f, "lease");
    start_leasing(&f, 50, 0);
    raw_peer a = raw_open(f.address);
    tg_hello h = hello_of(1);
    h.heartbeat_ms = 40;
    tg_welcome *first = greet(&f, &a, &h);
    REQUIRE(first != NULL);
    raw_close(&a);
    RUN_UNTIL(&f, f.worker.closed == 1);
    CHECK_EQ(f.worker.detached, 1);
    CHECK_STR(f.worker.reason, "the lease has ended");
    raw_peer b = raw_open(f.address);
    ask_again(&h, first);
    tg_welcome *late = greet(&f, &b, &h);
    REQUIRE(late != NULL);
    CHECK(!late->resumed && late->session != first->session);
    tg_msg_free(first);
    tg_msg_free(late);
    raw_close(&b);
    link_case_teardown(&f);
}

TEST(bye_and_older_versions_end_at_once) {
    link_case f;
    link_case_setup(&f, "bye");
    start_leasing(&f, 60000, 0);
    raw_peer a = raw_open(f.address), b = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *w = greet(&f, &a, &h);
    REQUIRE(w != NULL);
    raw_send(&a, (tg_frame){.type = TG_MSG_BYE, .session = w->session}, &(tg_bye){"over"});
    RUN_UNTIL(&f, f.worker.closed == 1);
    CHECK_EQ(f.worker.detached, 0);
    tg_msg_free(w);
    h = hello_of(2);
    h.proto_minor = 0; /* knows nothing of tokens */
    w = greet(&f, &b, &h);
    REQUIRE(w != NULL);
    CHECK(!w->has_resume_token && w->proto_minor == 0 && w->lease_ms == 0);
    tg_msg_free(w);
    raw_close(&b);
    RUN_UNTIL(&f, f.worker.closed == 2);
    CHECK_EQ(f.worker.detached, 0);
    raw_close(&a);
    link_case_teardown(&f);
}

TEST(a_dialling_link_resumes_by_itself) {
    link_case f;
    tg_error err;
    link_case_setup(&f, "dial");
    start_leasing(&f, 60000, 9);
    tg_link_opts o = link_case_opts(&f, &f.client, false, 40);
    o.ops = &LINK_RESUME_OPS;
    o.resume = true;
    CHECK_OK(tg_link_open(&f.client.link, f.net, &f.loop, &o, &err));
    RUN_UNTIL(&f, f.client.ready == 1);
    tg_session *s = f.client.session;
    CHECK_EQ(tg_session_credits(s), 9);
    CHECK(tg_session_resume_token(s) != NULL);
    usleep(1000 * 1000); /* this loop is held up: both find the other silent, or the client alone */
    uint64_t until = tg_clock_ms() + 300;
    while (tg_clock_ms() < until) uv_run(&f.loop, UV_RUN_NOWAIT);
    /* Another process takes the session over with what this one wrote down. */
    link_side third = {0};
    o = link_case_opts(&f, &f.client, false, 1000);
    o.ops = &LINK_RESUME_OPS;
    o.arg = &third;
    o.resume_session = tg_session_id(s);
    o.resume_token = tg_session_resume_token(s);
    tg_link *link = NULL;
    CHECK_OK(tg_link_open(&link, f.net, &f.loop, &o, &err));
    RUN_UNTIL(&f, third.ready == 1);
    CHECK_EQ(tg_session_id(third.session), o.resume_session);
    CHECK(tg_session_epoch(third.session) > 1);
    CHECK_EQ(f.worker.opened, 1);
    RUN_UNTIL(&f, f.client.closed >= 1); /* fenced */
    tg_link_close(&link, "done");
    link_case_teardown(&f);
}

TEST(requests_beyond_the_credits_are_not_executed) {
    link_case f;
    link_case_setup(&f, "credits");
    start_leasing(&f, 60000, 2);
    raw_peer a = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *w = greet(&f, &a, &h);
    REQUIRE(w != NULL);
    CHECK_EQ(w->credits, 2);
    tg_slot_list none = {0};
    for (uint64_t seq = 2; seq <= 3; seq++)
        raw_send(&a, (tg_frame){.type = TG_MSG_OPEN_SLOTS, .session = w->session, .seq = seq},
                 &none);
    tg_frame ask = {.type = TG_MSG_OPEN_SLOTS, .session = w->session, .seq = 4};
    CHECK_EQ(refused_with(&f, &a, ask, &none), TG_CODE_OVERLOADED);
    CHECK_EQ(f.worker.messages, 2);
    tg_error err;
    tg_frame more = {TG_MSG_SLOTS_OPENED, TG_FRAME_REPLY | TG_FRAME_MORE, 0, 2}, head;
    CHECK_OK(tg_session_send(f.worker.session, &more, &none, &err)); /* not the last word */
    tg_msg_free(raw_recv(&f, &a, &head));
    ask.seq = 5;
    CHECK_EQ(refused_with(&f, &a, ask, &none), TG_CODE_OVERLOADED);
    more.flags = TG_FRAME_REPLY;
    CHECK_OK(tg_session_send(f.worker.session, &more, &none, &err));
    tg_msg_free(raw_recv(&f, &a, &head));
    f.worker.echo = true;
    ask.seq = 6;
    CHECK_EQ(refused_with(&f, &a, ask, &none), TG_CODE_OK);
    tg_link_stats st;
    tg_link_get_stats(f.worker.link, &st);
    CHECK_EQ(st.pressure[TG_PRESSURE_CREDITS], 2);
    tg_msg_free(w);
    raw_close(&a);
    link_case_teardown(&f);
}

TEST(one_link_takes_several_roles) {
    link_case f;
    tg_error err;
    link_case_setup(&f, "roles");
    static const tg_reward_fn fns[] = {{.name = "f", .version = "2", .max_batch = 8}};
    tg_link_opts o = link_case_opts(&f, &f.client, true, 1000);
    o.role = TG_ROLE_BROKER;
    o.peer_roles = TG_ROLE_BIT(TG_ROLE_WORKER) | TG_ROLE_BIT(TG_ROLE_REWARD);
    CHECK_OK(tg_link_open(&f.client.link, f.net, &f.loop, &o, &err));
    raw_peer a = raw_open(f.address), b = raw_open(f.address), c = raw_open(f.address);
    tg_hello h = hello_of(1);
    CHECK_EQ(refused_with(&f, &a, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h),
             TG_CODE_INVALID_ARGUMENT);
    h = hello_of(2);
    h.role = TG_ROLE_REWARD;
    CHECK_EQ(refused_with(&f, &b, (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h),
             TG_CODE_INVALID_ARGUMENT);
    h.functions = fns, h.n_functions = 1;
    tg_welcome *w = greet(&f, &b, &h);
    CHECK(w != NULL);
    REQUIRE(f.client.session != NULL);
    CHECK_EQ(tg_session_peer_role(f.client.session), TG_ROLE_REWARD);
    size_t n = 0;
    const tg_reward_fn *got = tg_session_functions(f.client.session, &n);
    REQUIRE(n == 1);
    CHECK_STR(got[0].name, "f");
    CHECK_EQ(got[0].max_batch, 8);
    tg_msg_free(w);
    h = hello_of(3);
    h.role = TG_ROLE_WORKER, h.has_spec = true, h.spec = LINK_CASE_SPEC;
    w = greet(&f, &c, &h);
    CHECK(w != NULL);
    CHECK_EQ(tg_session_peer_role(f.client.session), TG_ROLE_WORKER);
    tg_msg_free(w);
    raw_close(&a);
    raw_close(&b);
    raw_close(&c);
    link_case_teardown(&f);
}

TEST(who_does_not_say_hello_is_cut) {
    link_case f;
    tg_error err;
    link_case_setup(&f, "strangers");
    tg_link_opts o = link_case_opts(&f, &f.worker, true, 40);
    o.hello_ms = 100;
    CHECK_OK(tg_link_open(&f.worker.link, f.net, &f.loop, &o, &err));
    raw_peer silent = raw_open(f.address), good = raw_open(f.address);
    tg_hello h = hello_of(1);
    tg_welcome *w = greet(&f, &good, &h);
    REQUIRE(w != NULL);
    tg_link_stats st = {0};
    while (st.cut < 2 &&
           !f.timed_out) { /* libzmq connects the silent one again, and it is cut again */
        uv_run(&f.loop, UV_RUN_NOWAIT);
        usleep(500);
        raw_send(&good, (tg_frame){.type = TG_MSG_HEARTBEAT, .session = w->session},
                 &(tg_heartbeat){0});
        tg_link_get_stats(f.worker.link, &st);
    }
    CHECK(st.cut >= 2);
    CHECK_EQ(f.worker.closed, 0);
    tg_msg_free(w);
    raw_close(&silent);
    raw_close(&good);
    link_case_teardown(&f);
}

/* ---- many ----------------------------------------------------------------------------------- */

TEST(the_table_finds_what_was_put) {
    tg_session_table t = {.secret = 0x1234567};
    enum { N = 20000 };
    static char there[N]; /* addresses to stand for sessions */
    for (uint64_t i = 0; i < N; i++)
        CHECK(tg_session_table_put(&t, i * 3, (struct tg_session *)&there[i]));
    for (uint64_t i = 0; i < N; i += 2)
        tg_session_table_remove(&t, i * 3, (struct tg_session *)&there[i]);
    tg_session_table_remove(&t, 3, (struct tg_session *)&there[0]); /* not that one */
    bool right = true;
    for (uint64_t i = 0; i < N; i++) {
        struct tg_session *want = i % 2 ? (struct tg_session *)&there[i] : NULL;
        right &= tg_session_table_get(&t, i * 3) == want;
        right &= tg_session_table_get(&t, i * 3 + 1) == NULL;
    }
    CHECK(right);
    CHECK_EQ(t.used, N / 2);
    tg_session_table_fini(&t);
}

TEST(hundreds_of_clients_come_and_go) {
    enum { n = 200 };
    link_case f;
    link_case_setup(&f, "hundreds");
    start_leasing(&f, 60000, 0);
    void *ctx = zmq_ctx_new();
    raw_peer *peers = calloc((size_t)n, sizeof *peers);
    tg_welcome **w = calloc((size_t)n, sizeof *w);
    REQUIRE(peers && w);
    f.worker.echo = true;
    for (int i = 0; i < n; i++) {
        int zero = 0, wait = 2;
        peers[i] = (raw_peer){ctx, zmq_socket(ctx, ZMQ_DEALER)};
        zmq_setsockopt(peers[i].sock, ZMQ_LINGER, &zero, sizeof zero);
        zmq_setsockopt(peers[i].sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
        zmq_connect(peers[i].sock, f.address);
        tg_hello h = hello_of(0);
        memcpy(h.peer_uuid, &i, sizeof i);
        raw_send(&peers[i], (tg_frame){.type = TG_MSG_HELLO, .seq = 1}, &h);
    }
    tg_frame head;
    for (int i = 0; i < n; i++) {
        w[i] = raw_recv(&f, &peers[i], &head);
        REQUIRE(w[i] && head.type == TG_MSG_WELCOME);
    }
    CHECK_EQ(f.worker.opened, n);
    tg_slot_list none = {0};
    for (int i = n; i-- > 0;) {
        tg_frame ask = {.type = TG_MSG_OPEN_SLOTS, .session = w[i]->session, .seq = 7};
        CHECK_EQ(refused_with(&f, &peers[i], ask, &none), TG_CODE_OK);
    }
    for (int i = 0; i < n; i += 2) {
        raw_send(&peers[i], (tg_frame){.type = TG_MSG_BYE, .session = w[i]->session},
                 &(tg_bye){""});
    }
    RUN_UNTIL(&f, f.worker.closed == n / 2);
    for (int i = 0; i < n; i++) {
        zmq_close(peers[i].sock);
        tg_msg_free(w[i]);
    }
    zmq_ctx_term(ctx);
    tg_link_stats st;
    do {
        uv_run(&f.loop, UV_RUN_NOWAIT);
        tg_link_get_stats(f.worker.link, &st);
    } while (st.detached < (size_t)n / 2 && !f.timed_out);
    CHECK_EQ(st.detached, n / 2);
    free(peers);
    free(w);
    link_case_teardown(&f);
}

TEST_MAIN
