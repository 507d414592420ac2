/* S1, S3, S5: a real textgen-env with keys, and peers that want more than they may. */
#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/net/http_get.h"
#include "common/net/keys.h"
#include "proto/codec.h"
#include "tests/support/env_process.h"
#include "tests/support/msg.h"
#include "tests/support/raw_peer.h"
#include "tests/support/tg_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPENED "textgen_sessions_opened_total"
#define DENIED "textgen_auth_failures_total{domain=\"textgen\"}"
#define SESSIONS "textgen_env_sessions"

static bool join(const env_process *p, raw_peer *peer, const char *key) {
    char file[32];
    snprintf(file, sizeof file, "%s.key", key);
    return CHECK(raw_peer_open(peer, p->address, env_process_file(p, file),
                               env_process_file(p, "server.pub"))) &&
           CHECK(raw_peer_handshake(peer, 10000) == 1);
}

static bool log_has(const env_process *p, const char *text) {
    bool found;
    return env_process_file_contains(p->log, text, &found) && found;
}

static void no_keys_in_log(const env_process *p) {
    static const char *const names[] = {"server", "alice", "bob", "eve", "worker"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[32];
        tg_key_pair pair;
        tg_error err = {0};
        snprintf(file, sizeof file, "%s.key", names[i]);
        REQUIRE_OK(tg_key_pair_read(&pair, env_process_file(p, file), &err));
        CHECK(!log_has(p, pair.secret_key) && !log_has(p, pair.public_key));
    }
}

/* ---- S1 ------------------------------------------------------------------------------------- */

TEST(S1_unknown_key_wrong_server_key_and_no_key) {
    env_process p;
    raw_peer peer;
    REQUIRE(env_process_start(&p, "s1", NULL));
    uint64_t start = tg_clock_ms();
    CHECK(raw_peer_open(&peer, p.address, env_process_file(&p, "eve.key"),
                        env_process_file(&p, "server.pub")));
    CHECK_EQ(raw_peer_handshake(&peer, 5000), -1); /* closed within five seconds */
    CHECK(tg_clock_ms() - start < 5000);
    tg_code code = raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL);
    CHECK(code == TG_CODE_DEADLINE_EXCEEDED ||
          code == TG_CODE_INTERNAL); /* no answer, or nobody to send to */
    raw_peer_close(&peer);
    CHECK_EQ(env_process_metric(&p, DENIED), 1);
    CHECK(raw_peer_open(&peer, p.address, env_process_file(&p, "alice.key"),
                        env_process_file(&p, "eve.pub")));
    CHECK_EQ(raw_peer_handshake(&peer, 5500), -1);
    raw_peer_close(&peer);
    CHECK(raw_peer_open(&peer, p.address, NULL, NULL)); /* no encryption */
    CHECK_EQ(raw_peer_handshake(&peer, 5500), -1);
    raw_peer_close(&peer);
    CHECK_EQ(env_process_metric(&p, OPENED), 0);
    CHECK_EQ(env_process_metric(&p, "textgen_messages_received_total"), 0);
    CHECK(env_process_metric(&p, "textgen_protocol_errors_total{kind=\"handshake\"}") >= 3);
    REQUIRE(join(&p, &peer, "alice"));
    CHECK_EQ(raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    raw_peer_close(&peer);
    CHECK(log_has(&p, "its key is not in the allow-list"));
    no_keys_in_log(&p);
    env_process_stop(&p);
}

TEST(S1_a_revoked_key_after_SIGHUP) {
    env_process p;
    raw_peer alice, bob, again;
    REQUIRE(env_process_start(&p, "s1-revoked", NULL));
    REQUIRE(join(&p, &alice, "alice") && join(&p, &bob, "bob"));
    CHECK_EQ(raw_peer_hello(&alice, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    CHECK_EQ(raw_peer_hello(&bob, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    CHECK_EQ(env_process_metric(&p, SESSIONS), 2);
    tg_error err;
    REQUIRE_OK(
        tg_file_write_atomic(p.allow, "no list\n", 8, &err)); /* a bad list changes nothing */
    kill(p.pid, SIGHUP);
    for (int i = 0; i < 100 && !log_has(&p, "old allow-list stays"); i++) usleep(50000);
    CHECK(log_has(&p, "old allow-list stays in force") && log_has(&p, "allow.txt:1:"));
    CHECK_EQ(env_process_metric(&p, SESSIONS), 2);
    CHECK(env_process_allow(&p, (const char *const[]){"bob client b", NULL}));
    kill(p.pid, SIGHUP);
    CHECK_EQ(raw_peer_answer(&alice, 10000), TG_CODE_PERMISSION_DENIED); /* told that it is over */
    CHECK_EQ(env_process_metric(&p, SESSIONS), 1);
    CHECK_EQ(raw_peer_hello(&alice, TG_ROLE_CLIENT, NULL), TG_CODE_PERMISSION_DENIED);
    CHECK_EQ(raw_peer_hello(&alice, TG_ROLE_CLIENT, &alice), TG_CODE_PERMISSION_DENIED);
    CHECK(raw_peer_open(&again, p.address, env_process_file(&p, "alice.key"),
                        env_process_file(&p, "server.pub")));
    CHECK_EQ(raw_peer_handshake(&again, 5000), -1);
    CHECK(raw_peer_send(&bob, TG_MSG_SAMPLE_RANGE, bob.session,
                        &(tg_sample_range){.split = TG_SPLIT_TRAIN, .n = 1}));
    CHECK_EQ(raw_peer_answer(&bob, 10000), TG_CODE_OK);
    no_keys_in_log(&p);
    raw_peer_close(&alice), raw_peer_close(&bob), raw_peer_close(&again);
    env_process_stop(&p);
}

static int tcp_dial(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

/* Passes bytes between a client and the server until the client's first message is through, and keeps what
 * the client said. */
static size_t record(int listener, const char *server, uint8_t *out, size_t size) {
    int client = accept(listener, NULL, NULL), back = tcp_dial(server);
    size_t len = 0;
    uint64_t end = tg_clock_ms() + 3000;
    while (tg_clock_ms() < end) {
        struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = back, .events = POLLIN}};
        uint8_t bytes[4096];
        if (poll(p, 2, 100) <= 0) continue;
        for (int i = 0; i < 2; i++) {
            if (!(p[i].revents & POLLIN)) continue;
            ssize_t n = recv(p[i].fd, bytes, sizeof bytes, 0);
            if (n <= 0) end = 0;
            for (ssize_t k = 0; i == 0 && k < n && len < size; k++) out[len++] = bytes[k];
            if (n > 0 && send(p[1 - i].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n) end = 0;
        }
    }
    close(client), close(back);
    return len;
}

/* Every byte that a good client said, said again by somebody else: the server's own short-term key is another
 * one, so nothing of it can be read. */
TEST(S1_a_replayed_handshake) {
    env_process p;
    REQUIRE(env_process_start(&p, "s1-replay", NULL));
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof any;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&any, sizeof any), 0);
    CHECK_EQ(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *)&any, &size);
    char proxy[64];
    snprintf(proxy, sizeof proxy, "tcp://127.0.0.1:%d", ntohs(any.sin_port));
    pid_t child = fork();
    if (child == 0) { /* the good client */
        raw_peer peer;
        bool ok = raw_peer_open(&peer, proxy, env_process_file(&p, "alice.key"),
                                env_process_file(&p, "server.pub")) &&
                  raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL) == TG_CODE_OK;
        _exit(ok ? 0 : 1);
    }
    static uint8_t said[65536];
    size_t len = record(listener, p.address, said, sizeof said);
    int status = 1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(len > 300); /* greeting, HELLO, INITIATE, READY and the message */
    CHECK_EQ(env_process_metric(&p, OPENED), 1);
    int fd = tcp_dial(p.address);
    CHECK(send(fd, said, len, MSG_NOSIGNAL) == (ssize_t)len);
    struct timeval limit = {6, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    uint64_t start = tg_clock_ms();
    uint8_t bytes[4096];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) continue;
    CHECK(n == 0 || errno == ECONNRESET); /* closed by the server */
    CHECK(tg_clock_ms() - start < 5900);
    close(fd), close(listener);
    CHECK_EQ(env_process_metric(&p, OPENED), 1);
    CHECK_EQ(env_process_metric(&p, "textgen_messages_received_total"), 1);
    env_process_stop(&p);
}

/* ---- S3 ------------------------------------------------------------------------------------- */

static const tg_msg_type requests[] = {TG_MSG_OPEN_SLOTS, TG_MSG_CLOSE_SLOTS,  TG_MSG_RESET,
                                       TG_MSG_STEP,       TG_MSG_SAMPLE_RANGE, TG_MSG_METRIC,
                                       TG_MSG_SCORE,      TG_MSG_HEARTBEAT,    TG_MSG_RESTORE,
                                       TG_MSG_SNAPSHOT,   TG_MSG_CANCEL};

static void try_all(raw_peer *thief, uint64_t session) {
    tg_arena arena = {0};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        tg_rng rng = tg_rng_at(3, TG_RNG_TEST, i, 0);
        CHECK(raw_peer_send(thief, requests[i], session,
                            tg_test_msg_random(&arena, &rng, requests[i])));
        tg_code code = raw_peer_answer(thief, 5000);
        tg_check(code == TG_CODE_PERMISSION_DENIED, __FILE__, __LINE__, "%s: %s",
                 tg_msg_name(requests[i]), tg_code_name(code));
    }
    tg_arena_fini(&arena);
}

TEST(S3_nothing_of_another_tenant_can_be_used) {
    env_process p;
    raw_peer alice, bob, stranger;
    tg_frame head;
    REQUIRE(env_process_start(&p, "s3", NULL));
    REQUIRE(join(&p, &alice, "alice") && join(&p, &bob, "bob") && join(&p, &stranger, "bob"));
    CHECK_EQ(raw_peer_hello(&alice, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    uint32_t slot = 10;
    CHECK(raw_peer_send(&alice, TG_MSG_OPEN_SLOTS, alice.session, &(tg_slot_list){&slot, 1}));
    CHECK_EQ(raw_peer_answer(&alice, 5000), TG_CODE_OK);
    tg_reset_item item = {.slot = 10, .episode = 1, .seed = 5, .split = TG_SPLIT_TRAIN};
    CHECK(raw_peer_send(&alice, TG_MSG_RESET, alice.session,
                        &(tg_reset_batch){.items = &item, .n = 1}));
    tg_reset_reply *r = raw_peer_receive(&alice, &head, 5000);
    REQUIRE(r && head.type == TG_MSG_RESET_REPLY && r->n == 1);
    uint64_t digest = r->items[0].state_digest;
    tg_msg_free(r);
    /* resume with her token: another key's. Before Hello: her session number. */
    CHECK(alice.has_token);
    CHECK_EQ(raw_peer_hello(&stranger, TG_ROLE_CLIENT, &alice), TG_CODE_PERMISSION_DENIED);
    try_all(&stranger, alice.session);
    CHECK_EQ(raw_peer_hello(&bob, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    try_all(&bob, alice.session);
    CHECK(raw_peer_send(&bob, TG_MSG_BYE, alice.session, &(tg_bye){"hers"}));
    /* her slot in his session: slots of sessions have nothing to do with each other */
    CHECK(
        raw_peer_send(&bob, TG_MSG_RESET, bob.session, &(tg_reset_batch){.items = &item, .n = 1}));
    do r = raw_peer_receive(&bob, &head, 5000);
    while (r && head.type == TG_MSG_ERROR && (tg_msg_free(r), true)); /* the answer to Bye */
    CHECK(r && head.type == TG_MSG_RESET_REPLY && r->items[0].code == TG_CODE_NOT_FOUND);
    tg_msg_free(r);
    CHECK_EQ(env_process_metric(&p, SESSIONS), 2);
    /* and hers is what it was */
    int32_t token = 5;
    tg_step_item step = {.slot = 10, .episode = 1, .step = 0, .tokens = &token, .n_tokens = 1};
    CHECK(raw_peer_send(&alice, TG_MSG_STEP, alice.session,
                        &(tg_step_batch){.items = &step, .n = 1}));
    tg_step_reply *s = raw_peer_receive(&alice, &head, 5000);
    CHECK(s && head.type == TG_MSG_STEP_REPLY && s->items[0].code == TG_CODE_OK &&
          s->items[0].state_digest != digest);
    tg_msg_free(s);
    raw_peer_close(&alice), raw_peer_close(&bob), raw_peer_close(&stranger);
    env_process_stop(&p);
}

TEST(S3_a_role_is_the_keys) {
    env_process p;
    raw_peer peer;
    REQUIRE(env_process_start(&p, "s3-role", NULL));
    REQUIRE(join(&p, &peer, "worker"));
    CHECK_EQ(raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL), TG_CODE_PERMISSION_DENIED);
    raw_peer_close(&peer);
    REQUIRE(join(&p, &peer, "alice"));
    CHECK_EQ(raw_peer_hello(&peer, TG_ROLE_REWARD, NULL), TG_CODE_PERMISSION_DENIED);
    raw_peer_close(&peer);
    REQUIRE(join(&p, &peer, "admin"));
    CHECK_EQ(raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    raw_peer_close(&peer);
    env_process_stop(&p);
}

/* ---- S5 ------------------------------------------------------------------------------------- */

static void page_lacks(const env_process *p, const char *path, const char *secret) {
    tg_buf page = {0};
    tg_error err = {0};
    int code = 0;
    CHECK_OK(tg_http_get(p->http, path, 5000, &code, &page, &err));
    CHECK(page.len > 0 && !strstr(page.data, secret));
    tg_buf_fini(&page);
}

/* All that others can look at, at the most talkative level of the log, and what a crash leaves. */
TEST(S5_the_secret_is_nowhere) {
    env_process p;
    raw_peer peer;
    tg_key_pair pair;
    tg_error err = {0};
    bool found;
    char path[64];
    struct rlimit core = {RLIM_INFINITY, RLIM_INFINITY}, before;
    getrlimit(RLIMIT_CORE, &before);
    if (before.rlim_max != RLIM_INFINITY) core = (struct rlimit){before.rlim_max, before.rlim_max};
    setrlimit(RLIMIT_CORE,
              &core); /* a core file would be written, had the server not turned it off */
    REQUIRE(env_process_start(&p, "s5", (const char *const[]){"--log-level", "debug", NULL}));
    REQUIRE_OK(tg_key_pair_read(&pair, env_process_file(&p, "server.key"), &err));
    REQUIRE(join(&p, &peer, "alice"));
    CHECK_EQ(raw_peer_hello(&peer, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    raw_peer_close(&peer);
    CHECK(raw_peer_open(&peer, p.address, env_process_file(&p, "eve.key"),
                        env_process_file(&p, "server.pub")));
    CHECK_EQ(raw_peer_handshake(&peer, 5000), -1);
    raw_peer_close(&peer);
    kill(p.pid, SIGHUP);
    static const char *const pages[] = {"/", "/metrics", "/status", "/readyz", "/livez"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        page_lacks(&p, pages[i], pair.secret_key);
    static const char *const files[] = {"cmdline", "environ", "status", "maps"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "/proc/%ld/%s", (long)p.pid, files[i]);
        if (env_process_file_contains(path, pair.secret_key, &found)) CHECK(!found);
    }
    no_keys_in_log(&p);
    CHECK(env_process_file_contains(p.out, pair.secret_key, &found) && !found);
    int status = 0;
    kill(p.pid, SIGSEGV);
    CHECK_EQ(waitpid(p.pid, &status, 0), p.pid);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(WIFSIGNALED(status) && !WCOREDUMP(status));
#endif
    no_keys_in_log(&p);
    setrlimit(RLIMIT_CORE, &before);
    tg_key_wipe(&pair, sizeof pair);
}

TEST_MAIN
