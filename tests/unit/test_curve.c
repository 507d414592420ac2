/* CURVE over loopback tcp: who gets in, as whom, and for how long. Real sockets, one loop. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/link.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERVER, ALICE, BOB, EVE, WORKER, N_KEYS };

typedef struct fixture fixture;

typedef struct side {
    fixture *f;
    tg_net *net;
    tg_security *sec;
    tg_link *link;
    tg_session *session;
    int opened, closed, refused, messages;
    tg_code code;
    char why[256], user[TG_USER_MAX];
} side;

struct fixture {
    uv_loop_t loop;
    uv_timer_t deadline;
    bool expired;
    tg_key_pair pairs[N_KEYS];
    char allow[256], address[64];
    tg_env_spec spec;
    side server, a, b;
};

static void on_deadline(uv_timer_t *t) {
    ((fixture *)t->data)->expired = true;
    uv_stop(t->loop);
}

static tg_code on_open(void *arg, tg_session *session, char why[TG_LINK_WHY]) {
    side *s = arg;
    (void)why;
    s->opened++;
    s->session = session;
    tg_user_text(tg_session_peer_user(session), s->user);
    return TG_CODE_OK;
}

static void on_close(void *arg, tg_session *session, const char *reason) {
    side *s = arg;
    s->closed++;
    if (s->session == session) s->session = NULL;
    snprintf(s->why, sizeof s->why, "%s", reason);
}

static void on_message(void *arg, tg_session *session, const tg_frame *head, void *msg) {
    side *s = arg;
    s->messages++;
    if (head->type == TG_MSG_ERROR) {
        s->code = ((tg_wire_error *)msg)->code;
    } else if (s ==
               &s->f->server) { /* any request is answered with an Error that names the sender */
        tg_session_send_error(session, head, TG_CODE_NOT_FOUND, "%s", s->user);
    }
    tg_msg_free(msg);
}

static void on_refused(void *arg, tg_code code, const char *message) {
    side *s = arg;
    s->refused++;
    s->code = code;
    snprintf(s->why, sizeof s->why, "%s", message);
}

static const tg_link_ops ops = {
    .on_open = on_open, .on_close = on_close, .on_message = on_message, .on_refused = on_refused};

static const char *key_path(int i, const char *suffix) {
    static char path[4][256];
    static int at;
    char *p = path[at++ % 4];
    snprintf(p, sizeof *path, "%s/k%d%s", tg_test_tmpdir(), i, suffix);
    return p;
}

static void allow_only(fixture *f, const int *keys, const char *const *users, int n) {
    tg_buf text = {0};
    tg_error err = {0};
    for (int i = 0; i < n; i++)
        tg_buf_printf(&text, "%s %s\n", f->pairs[keys[i]].public_key, users[i]);
    CHECK_OK(tg_file_write_atomic(f->allow, text.data ? text.data : "", text.len, &err));
    chmod(f->allow, 0644);
    tg_buf_fini(&text);
}

static bool open_side(fixture *f, side *s, const tg_security_opts *keys, tg_role role,
                      bool listen) {
    tg_error err = {0};
    *s = (side){.f = f};
    tg_link_opts o = {.listen = listen ? "tcp://127.0.0.1:*" : NULL,
                      .dial = listen ? NULL : f->address,
                      .role = role,
                      .spec = role == TG_ROLE_WORKER ? &f->spec : NULL,
                      .heartbeat_ms = 100,
                      .ops = &ops,
                      .arg = s};
    tg_status st = tg_security_open(&s->sec, keys, &err);
    if (st == TG_OK) st = tg_net_create(&s->net, &err);
    if (st == TG_OK) st = tg_net_secure(s->net, s->sec, &err);
    if (st == TG_OK) st = tg_link_open(&s->link, s->net, &f->loop, &o, &err);
    return tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg);
}

static bool dial(fixture *f, side *s, int key, const char *server_key, tg_role role) {
    tg_security_opts keys = {.key = key_path(key, ".key"), .server_key = server_key};
    return open_side(f, s, &keys, role, false);
}

static bool setup(fixture *f) {
    tg_error err = {0};
    *f = (fixture){.spec = {.env_id = "t", .vocab_size = 8, .capacity = 4}};
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->deadline);
    f->deadline.data = f;
    snprintf(f->allow, sizeof f->allow, "%s/allow", tg_test_tmpdir());
    for (int i = 0; i < N_KEYS; i++) {
        unlink(key_path(i, ".key")), unlink(key_path(i, ".pub"));
        if (!CHECK(tg_key_pair_create(&f->pairs[i], &err) == TG_OK)) return false;
        if (!CHECK(tg_key_pair_write(&f->pairs[i], key_path(i, ""), &err) == TG_OK)) return false;
    }
    allow_only(f, (int[]){ALICE, BOB, WORKER},
               (const char *const[]){"client a", "client b", "worker w"}, 3);
    tg_security_opts keys = {.key = key_path(SERVER, ".key"), .allow = f->allow};
    if (!open_side(f, &f->server, &keys, TG_ROLE_WORKER, true)) return false;
    snprintf(f->address, sizeof f->address, "%s", tg_link_address(f->server.link));
    return true;
}

static void close_side(side *s) {
    if (s->link) tg_link_close(&s->link, "done");
}

static void teardown(fixture *f) {
    side *all[] = {&f->a, &f->b, &f->server};
    for (int i = 0; i < 3; i++) close_side(all[i]);
    uv_close((uv_handle_t *)&f->deadline, NULL);
    while (uv_run(&f->loop, UV_RUN_DEFAULT)) continue;
    CHECK_EQ(uv_loop_close(&f->loop), 0);
    for (int i = 0; i < 3; i++) {
        tg_net_destroy(&all[i]->net);
        tg_security_close(&all[i]->sec);
    }
}

/* Turns the loop until the counter reaches a value; false after ms. */
static bool wait_for(fixture *f, const int *counter, int value, int ms) {
    f->expired = false;
    uv_timer_start(&f->deadline, on_deadline, (uint64_t)ms, 0);
    while (*counter < value && !f->expired) uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->deadline);
    return *counter >= value;
}

#define PUB(f, i) ((f)->pairs[i].public_key)

TEST(a_known_key_gets_a_session_with_its_tenant) {
    fixture f;
    REQUIRE(setup(&f));
    CHECK(dial(&f, &f.a, ALICE, PUB(&f, SERVER), TG_ROLE_CLIENT));
    CHECK(wait_for(&f, &f.a.opened, 1, 10000));
    CHECK_STR(f.server.user, "client:a");
    CHECK(dial(&f, &f.b, BOB, key_path(SERVER, ".pub"), TG_ROLE_CLIENT));
    CHECK(wait_for(&f, &f.b.opened, 1, 10000));
    CHECK_STR(f.server.user, "client:b");
    uint64_t accepted, refused;
    tg_net_auth_counts(f.server.net, &accepted, &refused);
    CHECK_EQ(accepted, 2);
    CHECK_EQ(refused, 0);
    teardown(&f);
}

TEST(an_unknown_key_and_no_key_get_nothing) {
    fixture f;
    REQUIRE(setup(&f));
    CHECK(dial(&f, &f.a, EVE, PUB(&f, SERVER), TG_ROLE_CLIENT));
    CHECK(wait_for(&f, &f.a.refused, 1, 10000));
    CHECK_EQ(f.a.code, TG_CODE_UNAUTHENTICATED);
    CHECK(strstr(f.a.why, "allow-list") != NULL);
    CHECK(open_side(&f, &f.b, &(tg_security_opts){0}, TG_ROLE_CLIENT, false)); /* plain */
    CHECK(!wait_for(&f, &f.b.opened, 1, 700));
    CHECK_EQ(f.server.opened, 0);
    tg_link_stats stats;
    tg_link_get_stats(f.server.link, &stats);
    CHECK_EQ(stats.received, 0); /* not one message came as far as us */
    CHECK(stats.handshakes_failed >= 2);
    uint64_t accepted, refused;
    tg_net_auth_counts(f.server.net, &accepted, &refused);
    CHECK(accepted == 0 && refused >= 1);
    teardown(&f);
}

TEST(a_server_with_another_key_is_not_talked_to) {
    fixture f;
    REQUIRE(setup(&f));
    CHECK(dial(&f, &f.a, ALICE, PUB(&f, EVE), TG_ROLE_CLIENT));
    CHECK(!wait_for(&f, &f.a.opened, 1, 1000));
    CHECK_EQ(f.server.opened, 0);
    CHECK_EQ(f.a.refused, 0); /* it may get better: another server at this address */
    teardown(&f);
}

TEST(a_key_is_good_for_its_role_only) {
    fixture f;
    REQUIRE(setup(&f));
    CHECK(dial(&f, &f.a, WORKER, PUB(&f, SERVER),
               TG_ROLE_CLIENT)); /* a worker's key, Hello of a client */
    CHECK(wait_for(&f, &f.a.refused, 1, 10000));
    CHECK_EQ(f.a.code, TG_CODE_PERMISSION_DENIED);
    CHECK(strstr(f.a.why, "role worker") != NULL);
    CHECK_EQ(f.server.opened, 0);
    teardown(&f);
}

TEST(a_removed_key_loses_its_session) {
    fixture f;
    REQUIRE(setup(&f));
    CHECK(dial(&f, &f.a, ALICE, PUB(&f, SERVER), TG_ROLE_CLIENT));
    CHECK(dial(&f, &f.b, BOB, PUB(&f, SERVER), TG_ROLE_CLIENT));
    CHECK(wait_for(&f, &f.a.opened, 1, 10000) && wait_for(&f, &f.b.opened, 1, 10000));
    allow_only(&f, (int[]){BOB}, (const char *const[]){"client b"}, 1);
    tg_security_reload(f.server.sec);
    CHECK(wait_for(&f, &f.server.closed, 1, 5000));
    CHECK(strstr(f.server.why, "not in the allow-list") != NULL);
    CHECK(wait_for(&f, &f.a.refused, 1, 10000)); /* Hello on the old connection is no use either */
    CHECK(f.a.code == TG_CODE_PERMISSION_DENIED || f.a.code == TG_CODE_UNAUTHENTICATED);
    CHECK_EQ(f.server.opened, 2);
    CHECK(f.b.session != NULL && f.b.closed == 0);
    tg_error err;
    CHECK_OK(tg_session_send(f.b.session, &(tg_frame){.type = TG_MSG_SAMPLE_RANGE, .seq = 1},
                             &(tg_sample_range){0}, &err));
    CHECK(wait_for(&f, &f.b.messages, 1, 5000));
    CHECK_EQ(f.b.code, TG_CODE_NOT_FOUND);
    teardown(&f);
}

/* Whoever says another's uuid in Hello must not end the other's session. */
TEST(a_uuid_of_another_tenant_replaces_nobody) {
    fixture f;
    REQUIRE(setup(&f));
    uint8_t uuid[16] = "the same process";
    tg_error err;
    side *sides[] = {&f.a, &f.b};
    for (int i = 0; i < 2; i++) {
        side *s = sides[i];
        *s = (side){.f = &f};
        tg_security_opts keys = {.key = key_path(i ? BOB : ALICE, ".key"),
                                 .server_key = PUB(&f, SERVER)};
        tg_link_opts o = {.dial = f.address,
                          .role = TG_ROLE_CLIENT,
                          .uuid = uuid,
                          .heartbeat_ms = 100,
                          .ops = &ops,
                          .arg = s};
        REQUIRE_OK(tg_security_open(&s->sec, &keys, &err));
        REQUIRE_OK(tg_net_create(&s->net, &err));
        REQUIRE_OK(tg_net_secure(s->net, s->sec, &err));
        REQUIRE_OK(tg_link_open(&s->link, s->net, &f.loop, &o, &err));
        CHECK(wait_for(&f, &s->opened, 1, 10000));
    }
    CHECK(!wait_for(&f, &f.server.closed, 1, 300));
    CHECK(f.a.session && f.b.session);
    teardown(&f);
}

TEST(options_are_asked_for_where_they_are_needed) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    tg_security *sec;
    tg_net *net;
    tg_link *link;
    tg_security_opts only_key = {.key = key_path(ALICE, ".key")};
    REQUIRE_OK(tg_security_open(&sec, &only_key, &err));
    REQUIRE_OK(tg_net_create(&net, &err));
    REQUIRE_OK(tg_net_secure(net, sec, &err));
    tg_link_opts o = {
        .listen = "tcp://127.0.0.1:*", .role = TG_ROLE_CLIENT, .ops = &ops, .arg = &f.a};
    CHECK_EQ(tg_link_open(&link, net, &f.loop, &o, &err), TG_USAGE);
    CHECK(strstr(err.msg, "--allow") != NULL);
    o.listen = NULL, o.dial = "tcp://127.0.0.1:9";
    CHECK_EQ(tg_link_open(&link, net, &f.loop, &o, &err), TG_USAGE);
    CHECK(strstr(err.msg, "--server-key") != NULL);
    tg_net_destroy(&net);
    tg_security_close(&sec);
    teardown(&f);
}

TEST_MAIN
