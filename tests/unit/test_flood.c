/* S2, S4: a real textgen-env under connections and messages that are meant to exhaust it, beside a good client.
 *
 * FLOOD=10000 is the size of the long run; 300 connections otherwise. FLOOD_RATE: at most so many of them a second, so that it is the
 * server that is looked at and not how the flood itself and everybody else share the cores. Times are printed, not judged. */
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "proto/codec.h"
#include "proto/limits.h"
#include "tests/support/env_process.h"
#include "tests/support/raw_peer.h"
#include "tests/support/tg_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define RSS "process_resident_memory_bytes"
#define SESSIONS "textgen_env_sessions"

/* ---- a client that works --------------------------------------------------------------------- */

typedef struct worker {
    raw_peer peer;
    pthread_t thread;
    atomic_bool stop;
    uint64_t episode;
    uint64_t n, failed;
    double slowest; /* ms */
    double times[1 << 16];
} worker;

static bool ask(worker *w, tg_msg_type type, const void *msg, tg_msg_type want) {
    tg_frame head;
    if (!raw_peer_send(&w->peer, type, w->peer.session, msg)) return false;
    void *reply = raw_peer_receive(&w->peer, &head, 30000);
    bool ok = reply && head.type == want;
    if (ok && want == TG_MSG_STEP_REPLY) ok = ((tg_step_reply *)reply)->items[0].code == TG_CODE_OK;
    tg_msg_free(reply);
    return ok;
}

static bool one_step(worker *w) {
    int32_t token = 7;
    if (w->n % 16 == 0) {
        tg_reset_item reset = {
            .slot = 1, .episode = ++w->episode, .seed = 1, .split = TG_SPLIT_TRAIN};
        tg_reset_batch batch = {.items = &reset, .n = 1};
        if (!ask(w, TG_MSG_RESET, &batch, TG_MSG_RESET_REPLY)) return false;
    }
    tg_step_item step = {.slot = 1,
                         .episode = w->episode,
                         .step = (uint32_t)(w->n % 16),
                         .tokens = &token,
                         .n_tokens = 1};
    tg_step_batch batch = {.items = &step, .n = 1};
    return ask(w, TG_MSG_STEP, &batch, TG_MSG_STEP_REPLY);
}

static void *work(void *arg) {
    worker *w = arg;
    while (!atomic_load(&w->stop)) {
        uint64_t start = tg_clock_ns();
        if (!one_step(w)) {
            w->failed++;
            break;
        }
        double ms = (double)(tg_clock_ns() - start) * 1e-6;
        w->times[w->n++ & 0xffff] = ms;
        if (ms > w->slowest) w->slowest = ms;
        usleep(500);
    }
    return NULL;
}

static bool start_work(worker *w, const env_process *p) {
    uint32_t slot = 1;
    atomic_store(&w->stop, false);
    w->n = w->failed = 0, w->slowest = 0, w->episode = 0;
    return raw_peer_open(&w->peer, p->address, env_process_file(p, "alice.key"),
                         env_process_file(p, "server.pub")) &&
           raw_peer_hello(&w->peer, TG_ROLE_CLIENT, NULL) == TG_CODE_OK &&
           ask(w, TG_MSG_OPEN_SLOTS, &(tg_slot_list){&slot, 1}, TG_MSG_SLOTS_OPENED) &&
           pthread_create(&w->thread, NULL, work, w) == 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double end_work(worker *w) {
    atomic_store(&w->stop, true);
    pthread_join(w->thread, NULL);
    raw_peer_close(&w->peer);
    size_t n = w->n < 65536 ? (size_t)w->n : 65536;
    qsort(w->times, n, sizeof *w->times, by_value);
    CHECK_EQ(w->failed, 0);
    return n ? w->times[n * 99 / 100] : -1;
}

/* ---- S2 -------------------------------------------------------------------------------------- */

static int tcp_dial(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* What connection i says: nothing, half a greeting, noise, a greeting and nothing after it, half a request. */
static void say(int fd, int i) {
    static const uint8_t greeting[64] = {0xff, 0, 0, 0,   0,   0,   0,   0,  1,
                                         0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E'};
    uint8_t noise[512];
    for (size_t k = 0; k < sizeof noise; k++) noise[k] = (uint8_t)(i * 31 + (int)k * 17);
    ssize_t n = 0;
    if (i % 4 == 1) n = send(fd, greeting, 11, MSG_NOSIGNAL);
    if (i % 4 == 2) n = send(fd, noise, sizeof noise, MSG_NOSIGNAL);
    if (i % 4 == 3) n = send(fd, greeting, sizeof greeting, MSG_NOSIGNAL);
    (void)n; /* it may have been closed already */
}

static int number_of(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

/* The end of connection i's share of time. */
static void pace(uint64_t start_ns, int i) {
    int rate = number_of("FLOOD_RATE", 0);
    if (rate <= 0) return;
    uint64_t due = start_ns + (uint64_t)i * 1000000000ull / (uint64_t)rate, now = tg_clock_ns();
    if (due > now) usleep((useconds_t)((due - now) / 1000));
}

/* Connections that never become one: to the server's own port, then half requests to its operations port. The number made. */
static int flood(const env_process *p, int *fds, int n, int n_http) {
    int made = 0;
    uint64_t start = tg_clock_ns();
    for (int i = 0; i < n; i++) {
        pace(start, i);
        fds[i] = tcp_dial(p->address);
        if (fds[i] < 0) continue;
        made++;
        say(fds[i], i);
    }
    char http[80];
    snprintf(http, sizeof http, "tcp://%s", p->http);
    for (int i = 0; i < n_http; i++) { /* slowloris */
        pace(start, n + i);
        int fd = fds[n + i] = tcp_dial(http);
        if (fd >= 0 && send(fd, "GET /metrics HTTP/1.1\r\nX: ", 26, MSG_NOSIGNAL) == 26) made++;
    }
    return made;
}

TEST(S2_connections_that_never_become_one) {
    static worker w;
    env_process p;
    int n = number_of("FLOOD", 300), n_http = n / 4;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    REQUIRE(env_process_start(&p, "s2", NULL));
    REQUIRE(start_work(&w, &p));
    sleep(2);
    double calm = end_work(&w), rss = env_process_metric(&p, RSS);
    int *fds = calloc((size_t)n + (size_t)n_http, sizeof *fds);
    REQUIRE(fds && start_work(&w, &p));
    uint64_t start = tg_clock_ms();
    int made = flood(&p, fds, n, n_http);
    uint64_t took = tg_clock_ms() - start;
    double flooded = end_work(&w), during = env_process_metric(&p, RSS);
    REQUIRE(start_work(&w, &p)); /* another client gets in while they are there */
    sleep(2);
    double held = end_work(&w), later = env_process_metric(&p, RSS);
    for (int i = 0; i < n + n_http; i++)
        if (fds[i] >= 0) close(fds[i]);
    free(fds);
    printf("  %d connections in %llu ms: memory %.1f MB, then %.1f and %.1f; a step's p99 %.3f ms, "
           "%.3f while they come, %.3f while they are there\n",
           made, (unsigned long long)took, rss * 1e-6, during * 1e-6, later * 1e-6, calm, flooded,
           held);
    CHECK(made > n / 2);
    CHECK(rss > 0 && during > 0 && during < rss + 100e6 && later < rss + 100e6);
    REQUIRE(start_work(&w, &p)); /* and after it a new client gets in */
    usleep(200000);
    end_work(&w);
    CHECK(w.n > 0);
    env_process_stop(&p);
}

/* ---- S4 -------------------------------------------------------------------------------------- */

static void put_u32(uint8_t *at, uint32_t v) {
    memcpy(at, &v, 4);
}

/* A frame with a right header and checksum around any payload. */
static uint8_t *frame(tg_msg_type type, uint64_t session, const uint8_t *payload, size_t len) {
    uint8_t *f = calloc(1, TG_FRAME_HEADER + len);
    if (!f) return NULL;
    put_u32(f, TG_FRAME_MAGIC);
    f[4] = (uint8_t)type;
    memcpy(f + 8, &session, 8);
    put_u32(f + 24, (uint32_t)len);
    put_u32(f + 28, tg_crc32c(0, payload, len));
    memcpy(f + TG_FRAME_HEADER, payload, len);
    return f;
}

static void send_payload(raw_peer *peer, const env_process *p, tg_msg_type type,
                         const uint8_t *payload, size_t len, tg_code want, const char *what) {
    uint8_t *f = frame(type, peer->session, payload, len);
    double before = env_process_metric(p, RSS);
    REQUIRE(f && raw_peer_send_bytes(peer, f, TG_FRAME_HEADER + len));
    tg_code code = raw_peer_answer(peer, 10000);
    tg_check(code == want, __FILE__, __LINE__, "%s: %s", what, tg_code_name(code));
    double after = env_process_metric(p, RSS);
    tg_check(after - before < 3.0 * (double)len + 8e6, __FILE__, __LINE__,
             "%s: memory grew by %.0f for %zu bytes", what, after - before, len);
    free(f);
}

static bool join(const env_process *p, raw_peer *peer, const char *key) {
    return CHECK(raw_peer_open(peer, p->address, env_process_file(p, key),
                               env_process_file(p, "server.pub"))) &&
           CHECK(raw_peer_hello(peer, TG_ROLE_CLIENT, NULL) == TG_CODE_OK);
}

TEST(S4_messages_beyond_the_limits) {
    static worker w;
    static uint8_t big[(4 << 20) + 1];
    env_process p;
    raw_peer peer;
    REQUIRE(env_process_start(&p, "s4", (const char *const[]){"--max-message", "4", NULL}));
    REQUIRE(start_work(&w, &p));
    REQUIRE(join(&p, &peer, "bob.key"));
    double rss = env_process_metric(&p, RSS);
    CHECK_EQ(env_process_metric(&p, SESSIONS), 2);
    CHECK(raw_peer_send_bytes(&peer, big, sizeof big)); /* one byte more than is taken */
    CHECK_EQ(raw_peer_handshake(&peer, 10000), 1);      /* of the beginning */
    CHECK_EQ(raw_peer_handshake(&peer, 10000), -1);     /* and now it is over */
    raw_peer_close(&peer);
    REQUIRE(join(&p, &peer, "bob.key"));
    /* a million items: field 1, length 0 */
    size_t n = 1000000;
    for (size_t i = 0; i < n; i++) big[2 * i] = 0x0a, big[2 * i + 1] = 0;
    send_payload(&peer, &p, TG_MSG_STEP, big, 2 * n, TG_CODE_PROTOCOL, "a million steps");
    send_payload(&peer, &p, TG_MSG_RESET, big, 2 * n, TG_CODE_PROTOCOL, "a million resets");
    send_payload(&peer, &p, TG_MSG_SCORE, big, 2 * n, TG_CODE_PROTOCOL, "a million texts");
    for (size_t i = 0; i < n; i++)
        big[2 * i] = 0x08, big[2 * i + 1] = 1; /* unpacked slot numbers */
    send_payload(&peer, &p, TG_MSG_OPEN_SLOTS, big, 2 * n, TG_CODE_PROTOCOL, "a million slots");
    /* lengths far beyond the message */
    static const uint8_t huge[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f};
    static const uint8_t huger[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    send_payload(&peer, &p, TG_MSG_STEP, huge, sizeof huge, TG_CODE_PROTOCOL, "a length of 4 GiB");
    send_payload(&peer, &p, TG_MSG_METRIC, huger, sizeof huger, TG_CODE_PROTOCOL,
                 "a length of 2^63");
    /* messages in messages in messages */
    size_t depth = 0;
    for (size_t at = 0; at + 6 < 60000; depth++) {
        size_t rest = 60000 - at - 4;
        big[at++] = 0x0a;
        big[at++] = (uint8_t)(rest & 0x7f) | 0x80;
        big[at++] = (uint8_t)(rest >> 7 & 0x7f) | 0x80;
        big[at++] = (uint8_t)(rest >> 14);
    }
    CHECK(depth > 10000);
    send_payload(&peer, &p, TG_MSG_STEP, big, 60000, TG_CODE_PROTOCOL, "nesting");
    /* a header that promises more than comes */
    uint8_t *f = frame(TG_MSG_STEP, peer.session, big, 100);
    put_u32(f + 24, 0x7fffffff);
    CHECK(raw_peer_send_bytes(&peer, f, TG_FRAME_HEADER + 100));
    CHECK_EQ(raw_peer_answer(&peer, 10000), TG_CODE_PROTOCOL);
    free(f);
    double after = env_process_metric(&p, RSS);
    printf("  memory %.1f MB before, %.1f MB after\n", rss * 1e-6, after * 1e-6);
    CHECK(after < rss + 40e6);
    CHECK(env_process_metric(&p, "textgen_protocol_errors_total{kind=\"frame\"}") >= 8);
    raw_peer_close(&peer);
    end_work(&w);
    CHECK(w.n > 0);
    env_process_stop(&p);
}

TEST(S4_slots_and_batches_of_one_client) {
    env_process p;
    raw_peer a;
    uint32_t slots[6] = {1, 2, 3, 4, 5, 6};
    tg_reset_item items[4];
    REQUIRE(env_process_start(&p, "s4-slots",
                              (const char *const[]){"--max-slots", "5", "--max-batch", "3", NULL}));
    REQUIRE(join(&p, &a, "alice.key"));
    CHECK(raw_peer_send(&a, TG_MSG_OPEN_SLOTS, a.session, &(tg_slot_list){slots, 6}));
    CHECK_EQ(raw_peer_answer(&a, 5000), TG_CODE_OVERLOADED);
    CHECK(raw_peer_send(&a, TG_MSG_OPEN_SLOTS, a.session, &(tg_slot_list){slots, 5}));
    CHECK_EQ(raw_peer_answer(&a, 5000), TG_CODE_OK);
    for (uint32_t i = 0; i < 4; i++)
        items[i] = (tg_reset_item){.slot = i + 1, .episode = 1, .split = TG_SPLIT_TRAIN};
    CHECK(raw_peer_send(&a, TG_MSG_RESET, a.session, &(tg_reset_batch){.items = items, .n = 4}));
    CHECK_EQ(raw_peer_answer(&a, 5000), TG_CODE_TOO_LARGE);
    CHECK(raw_peer_send(&a, TG_MSG_RESET, a.session, &(tg_reset_batch){.items = items, .n = 3}));
    CHECK_EQ(raw_peer_answer(&a, 5000), TG_CODE_OK);
    CHECK_EQ(a.limits.max_slots, 5);
    CHECK_EQ(a.limits.max_batch, 3);
    raw_peer_close(&a);
    env_process_stop(&p);
}

TEST(S4_sessions_of_one_tenant) {
    env_process p;
    raw_peer a, b, c, other;
    REQUIRE(env_process_start(&p, "s4-sessions",
                              (const char *const[]){"--max-tenant-sessions", "2", NULL}));
    REQUIRE(join(&p, &a, "alice.key") && join(&p, &b, "alice.key"));
    CHECK(raw_peer_open(&c, p.address, env_process_file(&p, "alice.key"),
                        env_process_file(&p, "server.pub")));
    CHECK_EQ(raw_peer_hello(&c, TG_ROLE_CLIENT, NULL), TG_CODE_OVERLOADED);
    REQUIRE(join(&p, &other, "bob.key"));
    CHECK(raw_peer_send(&a, TG_MSG_BYE, a.session, &(tg_bye){"done"}));
    usleep(300000);
    CHECK_EQ(raw_peer_hello(&c, TG_ROLE_CLIENT, NULL), TG_CODE_OK);
    raw_peer_close(&a), raw_peer_close(&b), raw_peer_close(&c), raw_peer_close(&other);
    env_process_stop(&p);
}

TEST_MAIN
