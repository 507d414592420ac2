/* Sessions: Hello and Welcome in both directions, refusals, loss by disconnection and by silence, return. */
#include "proto/codec.h"
#include "tests/support/link_case.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <string.h>

static void exchange(bool worker_listens, bool dial_first) {
    link_case f;
    tg_error err;
    link_case_setup(&f, "exchange");
    link_side *listener = worker_listens ? &f.worker : &f.client,
              *dialler = worker_listens ? &f.client : &f.worker;
    link_case_start(&f, dial_first ? dialler : listener, !dial_first, 50);
    if (dial_first) {
        for (int i = 0; i < 20; i++) uv_run(&f.loop, UV_RUN_ONCE); /* nobody there yet */
    }
    link_case_start(&f, dial_first ? listener : dialler, dial_first, 50);
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
    link_case_teardown(&f);
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
    link_case f;
    link_case_setup(&f, "many");
    link_case_start(&f, &f.client, true, 50);
    link_side more[8] = {0};
    tg_error err;
    for (int i = 0; i < 8; i++) {
        tg_link_opts opts = {.dial = f.address,
                             .role = TG_ROLE_WORKER,
                             .spec = &LINK_CASE_SPEC,
                             .ops = &LINK_CASE_OPS,
                             .arg = &more[i]};
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
    link_case_teardown(&f);
}

TEST(a_refused_worker_hears_why_and_tries_again) {
    link_case f;
    link_case_setup(&f, "refused");
    f.client.answer = TG_CODE_CONFIG_MISMATCH;
    link_case_start(&f, &f.client, true, 50);
    link_case_start(&f, &f.worker, false, 50);
    RUN_UNTIL(&f, f.worker.refused == 1);
    CHECK_EQ(f.worker.last_error, TG_CODE_CONFIG_MISMATCH);
    CHECK_STR(f.worker.reason, "not you");
    CHECK_EQ(f.client.opened, 0);
    f.client.answer = TG_CODE_OK;
    RUN_UNTIL(&f, f.worker.ready == 1);
    link_case_teardown(&f);
}

TEST(a_refusing_dialler_ends_the_session) {
    link_case f;
    link_case_setup(&f, "refusing");
    f.client.answer = TG_CODE_CONFIG_MISMATCH;
    link_case_start(&f, &f.worker, true, 50);
    link_case_start(&f, &f.client, false, 50);
    RUN_UNTIL(&f, f.worker.closed == 1); /* the client has hung up */
    CHECK_EQ(f.client.opened, 0);
    link_case_teardown(&f);
}

TEST(the_dialler_returns_when_the_listener_restarts) {
    link_case f;
    link_case_setup(&f, "restart");
    link_case_start(&f, &f.client, true, 50);
    link_case_start(&f, &f.worker, false, 50);
    RUN_UNTIL(&f, f.worker.ready == 1);
    uint64_t first = tg_session_id(f.worker.session);
    tg_link_close(&f.client.link, "restart");
    RUN_UNTIL(&f, f.worker.closed == 1);
    link_case_start(&f, &f.client, true, 50);
    RUN_UNTIL(&f, f.worker.ready == 2);
    CHECK(tg_session_id(f.worker.session) != first);
    link_case_teardown(&f);
}

TEST(heartbeats_come_as_often_as_the_peer_wants) {
    link_case f;
    link_case_setup(&f, "often");
    link_case_start(&f, &f.worker, true, 60000);
    link_case_start(&f, &f.client, false, 100);
    RUN_UNTIL(&f, f.client.ready == 1 && f.worker.ready == 1);
    for (int i = 0; i < 1000; i++) { /* more than three of the client's heartbeats */
        uv_run(&f.loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
    CHECK_EQ(f.client.closed, 0);
    CHECK_EQ(tg_session_last_beat(f.client.session)->completed, 77);
    link_case_teardown(&f);
}

/* ---- peers that are not ours ---------------------------------------------------------------- */

TEST(wrong_hellos_are_refused_by_name) {
    link_case f;
    link_case_setup(&f, "wrong");
    link_case_start(&f, &f.worker, true, 50);
    raw_peer r = raw_open(f.address);
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
    link_case_teardown(&f);
}

TEST(a_session_number_works_on_its_own_connection_only) {
    link_case f;
    link_case_setup(&f, "number");
    link_case_start(&f, &f.worker, true, 1000);
    raw_peer r = raw_open(f.address);
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
    link_case_teardown(&f);
}

TEST(a_connection_that_drops_ends_its_session_at_once) {
    link_case f;
    link_case_setup(&f, "drop");
    link_case_start(&f, &f.worker, true, 60000); /* no heartbeat helps here */
    raw_peer r = raw_open(f.address);
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
    link_case_teardown(&f);
}

TEST(a_silent_peer_is_lost_after_three_heartbeats) {
    link_case f;
    link_case_setup(&f, "silent");
    link_case_start(&f, &f.worker, true, 60);
    raw_peer r = raw_open(f.address);
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
    link_case_teardown(&f);
}

TEST(a_process_that_connects_again_replaces_itself) {
    link_case f;
    link_case_setup(&f, "again");
    link_case_start(&f, &f.worker, true, 60000);
    raw_peer a = raw_open(f.address), b = raw_open(f.address);
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
    link_case_teardown(&f);
}

TEST_MAIN
