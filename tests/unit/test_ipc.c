/* Sockets of the file system without libzmq: with libzmq's own sockets at the other end, with each other, and with peers that
 * speak bytes. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/net/ipc.h"
#include "common/net/zmtp.h"
#include "tests/support/tg_test.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

enum { MAX = 1 << 20 };

typedef struct side {
    tg_ipc *ipc;
    size_t messages, parts, accepted, connected, ended, failed, bytes;
    uint64_t peer;
    unsigned char last[64];
    size_t last_len;
    bool echo, shut_on_message;
    uint32_t sum;
} side;

static void on_message(void *arg, uint64_t peer, int fd, const void *bytes, size_t len,
                       bool whole) {
    side *s = arg;
    CHECK(fd >= 0);
    s->peer = peer;
    s->messages += whole;
    s->parts += !whole;
    s->bytes += len;
    for (size_t i = 0; i < len; i++) s->sum = s->sum * 31 + ((const unsigned char *)bytes)[i];
    s->last_len = len;
    memcpy(s->last, bytes ? bytes : "", len < sizeof s->last ? len : sizeof s->last);
    if (s->echo) CHECK_EQ(tg_ipc_send(s->ipc, peer, bytes, len), TG_IPC_SENT);
    if (s->shut_on_message) tg_ipc_shut(s->ipc);
}

static void on_accept(void *arg, int fd) {
    CHECK(fd >= 0);
    ((side *)arg)->accepted++;
}

static void on_connect(void *arg) {
    ((side *)arg)->connected++;
}

static void on_end(void *arg, uint64_t peer, int fd, bool ready) {
    side *s = arg;
    (void)peer;
    CHECK(fd >= 0);
    s->ended++;
    s->failed += !ready;
}

static const char *path_of(const char *name) {
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", tg_test_tmpdir(), name);
    return path;
}

static const char *address_of(const char *name) {
    static char address[220];
    snprintf(address, sizeof address, "ipc://%s", path_of(name));
    return address;
}

static bool open_side(side *s, const char *name, bool listen) {
    tg_ipc_opts o = {.listen = listen,
                     .max_message = MAX,
                     .handshake_ms = 300,
                     .on_message = on_message,
                     .on_accept = on_accept,
                     .on_connect = on_connect,
                     .on_end = on_end,
                     .arg = s};
    tg_error err = {0};
    *s = (side){0};
    return tg_check(tg_ipc_open(&s->ipc, path_of(name), &o, &err) == TG_OK, __FILE__, __LINE__,
                    "%s", err.msg);
}

/* Until the count is there, or five seconds have passed. */
static bool drain_until(side *a, side *b, const size_t *count, size_t want) {
    for (uint64_t end = tg_clock_ms() + 5000; *count < want && tg_clock_ms() < end;) {
        struct pollfd p[2] = {{tg_ipc_fd(a->ipc), POLLIN, 0},
                              {b ? tg_ipc_fd(b->ipc) : -1, POLLIN, 0}};
        poll(p, 2, 20);
        if (p[0].revents) tg_ipc_drain(a->ipc, 256);
        if (b && p[1].revents) tg_ipc_drain(b->ipc, 256);
    }
    return *count >= want;
}

static void *zmq_peer(void *ctx, int type, const char *address, bool bind) {
    void *s = zmq_socket(ctx, type);
    int zero = 0, wait = 3000;
    zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(s, ZMQ_RCVTIMEO, &wait, sizeof wait);
    CHECK_EQ(bind ? zmq_bind(s, address) : zmq_connect(s, address), 0);
    return s;
}

TEST(libzmq_dials_and_is_answered) {
    side s;
    if (!open_side(&s, "a", true)) return;
    s.echo = true;
    void *ctx = zmq_ctx_new(), *z = zmq_peer(ctx, ZMQ_DEALER, address_of("a"), false);
    int beat = 50;
    zmq_setsockopt(z, ZMQ_HEARTBEAT_IVL, &beat, sizeof beat);
    void *beating = zmq_socket(ctx, ZMQ_DEALER); /* its PINGs must be answered, or it hangs up */
    zmq_setsockopt(beating, ZMQ_HEARTBEAT_IVL, &beat, sizeof beat);
    int zero = 0;
    zmq_setsockopt(beating, ZMQ_LINGER, &zero, sizeof zero);
    zmq_connect(beating, address_of("a"));
    static char sent[200000], back[200000];
    for (size_t i = 0; i < sizeof sent; i++) sent[i] = (char)(i * 7 + i / 251);
    static const size_t lengths[] = {0, 1, 255, 256, 5000, 40000, 200000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        zmq_send(z, sent, lengths[i], 0);
        CHECK(drain_until(&s, NULL, &s.messages, i + 1));
        int n = -1;
        for (int tries = 0; n < 0 && tries < 500; tries++) { /* the rest of a long one wants room */
            n = zmq_recv(z, back, sizeof back, ZMQ_DONTWAIT);
            tg_ipc_drain(s.ipc, 256);
            if (n < 0) usleep(2000);
        }
        CHECK_EQ(n, lengths[i]);
        CHECK(n < 0 || !memcmp(back, sent, (size_t)n));
    }
    for (uint64_t end = tg_clock_ms() + 400; tg_clock_ms() < end; usleep(5000))
        tg_ipc_drain(s.ipc, 256);
    CHECK_EQ(s.accepted, 2);
    CHECK_EQ(s.ended, 0); /* eight heartbeats of the silent one later */
    zmq_send(z, "several", 7, ZMQ_SNDMORE);
    zmq_send(z, "parts", 5, 0);
    CHECK(drain_until(&s, NULL, &s.parts, 1));
    CHECK_EQ(s.last_len, 0);
    zmq_close(z);
    zmq_close(beating);
    CHECK(drain_until(&s, NULL, &s.ended, 2));
    CHECK_EQ(s.failed, 0);
    CHECK_EQ(tg_ipc_send(s.ipc, s.peer, "x", 1), TG_IPC_GONE);
    zmq_ctx_term(ctx);
    tg_ipc_destroy(&s.ipc);
}

TEST(libzmq_listens_and_is_dialled_again_when_it_returns) {
    side s;
    void *ctx = zmq_ctx_new();
    for (int round = 0; round < 2; round++) {
        if (round == 0 && !open_side(&s, "b", false)) return; /* nobody is there yet */
        CHECK_EQ(tg_ipc_send(s.ipc, 0, "x", 1), TG_IPC_BLOCKED);
        void *z = zmq_peer(ctx, ZMQ_ROUTER, address_of("b"), true);
        CHECK(drain_until(&s, NULL, &s.connected, (size_t)round + 1));
        CHECK_EQ(tg_ipc_send(s.ipc, 0, "hello", 5), TG_IPC_SENT);
        char id[16], text[16];
        int id_len = zmq_recv(z, id, sizeof id, 0);
        CHECK(id_len > 0);
        CHECK_EQ(zmq_recv(z, text, sizeof text, 0), 5);
        zmq_send(z, id, (size_t)id_len, ZMQ_SNDMORE);
        zmq_send(z, "and back", 8, 0);
        CHECK(drain_until(&s, NULL, &s.messages, (size_t)round + 1));
        CHECK(s.last_len == 8 && !memcmp(s.last, "and back", 8));
        CHECK_EQ(s.peer, 0);
        zmq_close(z);
        CHECK(drain_until(&s, NULL, &s.ended, (size_t)round + 1));
    }
    zmq_ctx_term(ctx);
    tg_ipc_destroy(&s.ipc);
}

TEST(what_was_sent_before_an_end_arrives) {
    side a, b;
    if (!open_side(&a, "c", true) || !open_side(&b, "c", false)) return;
    CHECK(drain_until(&a, &b, &b.connected, 1));
    for (int i = 0; i < 100; i++) CHECK_EQ(tg_ipc_send(b.ipc, 0, "last words", 10), TG_IPC_SENT);
    tg_ipc_destroy(&b.ipc);
    CHECK(drain_until(&a, NULL, &a.ended, 1));
    CHECK_EQ(a.messages, 100);
    tg_ipc_destroy(&a.ipc);
    CHECK(access(path_of("c"), F_OK) != 0); /* the file goes with the server */
}

TEST(a_peer_that_does_not_read_blocks_and_loses_nothing) {
    side a, b;
    if (!open_side(&a, "d", true) || !open_side(&b, "d", false)) return;
    CHECK(drain_until(&a, &b, &b.connected, 1));
    static char text[30000];
    uint32_t sum = 0;
    size_t sent = 0;
    tg_ipc_sent r = TG_IPC_SENT;
    while (r == TG_IPC_SENT && sent < 10000) {
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 13 + sent);
        r = tg_ipc_send(b.ipc, 0, text, sizeof text);
        if (r != TG_IPC_SENT) break;
        for (size_t i = 0; i < sizeof text; i++) sum = sum * 31 + (unsigned char)text[i];
        sent++;
    }
    CHECK_EQ(r, TG_IPC_BLOCKED);
    CHECK(sent > 1);
    CHECK(drain_until(&a, &b, &a.messages, sent));
    CHECK_EQ(a.messages, sent);
    CHECK_EQ(a.sum, sum);
    CHECK_EQ(tg_ipc_send(b.ipc, 0, "again", 5), TG_IPC_SENT);
    tg_ipc_destroy(&a.ipc);
    tg_ipc_destroy(&b.ipc);
}

/* ---- peers that speak bytes ----------------------------------------------------------------- */

static int raw_dial(const char *name) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path_of(name));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void raw_say(int fd, const void *bytes, size_t n) {
    CHECK_EQ(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

static void raw_handshake(int fd) {
    uint8_t g[TG_ZMTP_GREETING], r[TG_ZMTP_READY];
    tg_zmtp_put_greeting(g);
    raw_say(fd, g, sizeof g);
    raw_say(fd, r, tg_zmtp_put_ready(r, false));
}

/* One byte at a time, from the first of the greeting on. */
TEST(every_byte_may_come_alone) {
    side s;
    if (!open_side(&s, "e", true)) return;
    int fd = raw_dial("e");
    uint8_t all[TG_ZMTP_GREETING + TG_ZMTP_READY + 600];
    tg_zmtp_put_greeting(all);
    size_t n = TG_ZMTP_GREETING;
    n += tg_zmtp_put_ready(all + n, false);
    n += tg_zmtp_put_head(all + n, 0, 3);
    memcpy(all + n, "abc", 3);
    n += 3;
    n += tg_zmtp_put_head(all + n, 0, 300);
    memset(all + n, 'x', 300);
    n += 300;
    for (size_t i = 0; i < n; i++) {
        raw_say(fd, all + i, 1);
        tg_ipc_drain(s.ipc, 256);
    }
    CHECK_EQ(s.messages, 2);
    CHECK_EQ(s.bytes, 303);
    CHECK_EQ(s.ended, 0);
    close(fd);
    tg_ipc_destroy(&s.ipc);
}

/* A length beyond the limit ends the connection when its head is there: no byte of it has to come, and no memory is
 * taken for it. One of exactly the limit passes. */
TEST(one_byte_above_the_limit_ends_the_connection_before_anything_is_allocated) {
    side s;
    if (!open_side(&s, "f", true)) return;
    for (size_t extra = 0; extra < 2; extra++) {
        int fd = raw_dial("f");
        raw_handshake(fd);
        CHECK(drain_until(&s, NULL, &s.accepted, extra + 1));
        tg_ipc_drain(s.ipc, 256);
        uint8_t head[TG_ZMTP_HEAD];
        raw_say(fd, head, tg_zmtp_put_head(head, 0, MAX + extra));
        uint64_t calls = tg_alloc_calls();
        for (int i = 0; i < 20; i++) {
            tg_ipc_drain(s.ipc, 256);
            usleep(1000);
        }
        CHECK_EQ(s.ended, extra);
        CHECK(tg_alloc_calls() - calls <= 1); /* the nine bytes of the head that promises MAX */
        if (!extra) {
            char *body = calloc(1, MAX);
            for (size_t at = 0; at < MAX;) {
                ssize_t n = send(fd, body + at, MAX - at, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n > 0) at += (size_t)n;
                tg_ipc_drain(s.ipc, 256);
            }
            free(body);
            CHECK(drain_until(&s, NULL, &s.messages, 1));
            CHECK_EQ(s.bytes, MAX);
        }
        close(fd);
        CHECK(drain_until(&s, NULL, &s.ended, 1));
        s.ended = 0;
    }
    tg_ipc_destroy(&s.ipc);
}

TEST(who_speaks_something_else_is_ended) {
    static const char *const words[] = {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01", "\xff",
                                        "\x01\x00"};
    side s;
    if (!open_side(&s, "g", true)) return;
    for (size_t i = 0; i < 4; i++) {
        int fd = raw_dial("g");
        raw_say(fd, words[i], strlen(words[i]) + (i == 3));
        CHECK(drain_until(&s, NULL, &s.failed, i + 1)); /* 2: by the handshake's deadline */
        close(fd);
    }
    int fd = raw_dial("g"), other = raw_dial("g");
    uint8_t g[TG_ZMTP_GREETING];
    tg_zmtp_put_greeting(g);
    raw_say(fd, g, sizeof g);
    raw_say(fd, "\4\5\4NOPE", 7); /* a command, but not READY */
    raw_say(other, g, sizeof g);
    raw_say(other, "\0\1x", 3); /* a message before READY */
    CHECK(drain_until(&s, NULL, &s.failed, 6));
    CHECK_EQ(s.messages, 0);
    close(fd), close(other);
    tg_ipc_destroy(&s.ipc);
}

TEST(a_callback_may_shut_it) {
    side a, b;
    if (!open_side(&a, "h", true) || !open_side(&b, "h", false)) return;
    CHECK(drain_until(&a, &b, &b.connected, 1));
    a.shut_on_message = true;
    CHECK_EQ(tg_ipc_send(b.ipc, 0, "one", 3), TG_IPC_SENT);
    CHECK_EQ(tg_ipc_send(b.ipc, 0, "two", 3), TG_IPC_SENT);
    for (int i = 0; i < 100 && !a.messages; i++) {
        tg_ipc_drain(a.ipc, 256);
        usleep(1000);
    }
    CHECK_EQ(a.messages, 1);
    tg_ipc_destroy(&a.ipc);
    CHECK(drain_until(&b, NULL, &b.ended, 1));
    tg_ipc_destroy(&b.ipc);
}

/* The newest server has the address; the older one's end does not take it away. */
TEST(an_older_server_does_not_remove_the_file_of_its_successor) {
    side a, b, c;
    if (!open_side(&a, "i", true) || !open_side(&b, "i", true)) return;
    tg_ipc_destroy(&a.ipc);
    CHECK(access(path_of("i"), F_OK) == 0);
    if (open_side(&c, "i", false)) CHECK(drain_until(&b, &c, &c.connected, 1));
    tg_ipc_destroy(&b.ipc);
    tg_ipc_destroy(&c.ipc);
    tg_error err = {0};
    tg_ipc_opts o = {.listen = true};
    CHECK_EQ(tg_ipc_open(&a.ipc, "/proc/no-sockets-here", &o, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "cannot listen") != NULL);
}

TEST(without_descriptors_connections_are_refused_and_the_others_go_on) {
    side s, good;
    if (!open_side(&s, "j", true) || !open_side(&good, "j", false)) return;
    CHECK(drain_until(&s, &good, &good.connected, 1));
    int waiting[4], extra[64], n = 0;
    for (int i = 0; i < 4; i++) waiting[i] = raw_dial("j");
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    while (n < 64 && (extra[n] = dup(0)) >= 0 && extra[n] < 40) n++; /* no holes below */
    few = before, few.rlim_cur = (rlim_t)extra[n];
    close(extra[n]);
    setrlimit(RLIMIT_NOFILE, &few);
    char byte;
    for (int i = 0; i < 50; i++) {
        tg_ipc_drain(s.ipc, 256);
        usleep(1000);
    }
    CHECK_EQ(s.accepted, 1);
    for (int i = 0; i < 4; i++) CHECK(recv(waiting[i], &byte, 1, MSG_DONTWAIT) == 0);
    CHECK_EQ(tg_ipc_send(good.ipc, 0, "still here", 10), TG_IPC_SENT);
    CHECK(drain_until(&s, NULL, &s.messages, 1));
    setrlimit(RLIMIT_NOFILE, &before);
    int again = raw_dial("j");
    CHECK(drain_until(&s, NULL, &s.accepted, 2));
    close(again);
    for (int i = 0; i < 4; i++) close(waiting[i]);
    for (int i = 0; i < n; i++) close(extra[i]);
    tg_ipc_destroy(&s.ipc);
    tg_ipc_destroy(&good.ipc);
}

/* Out of memory anywhere: an error at opening, an ended connection later; never a crash. */
TEST(every_allocation_may_fail) {
    for (int64_t k = 0; k < 30; k++) {
        side s = {0};
        tg_ipc_opts o = {.listen = true,
                         .max_message = MAX,
                         .handshake_ms = 300,
                         .on_message = on_message,
                         .on_accept = on_accept,
                         .on_connect = on_connect,
                         .on_end = on_end,
                         .arg = &s};
        tg_error err = {0};
        char path[100];
        snprintf(path, sizeof path, "%s", path_of("k"));
        tg_alloc_fail_after(k);
        tg_status st = tg_ipc_open(&s.ipc, path, &o, &err);
        if (st == TG_OK) {
            int fd = raw_dial("k");
            raw_handshake(fd);
            static char text[100000];
            uint8_t head[TG_ZMTP_HEAD];
            tg_ipc_drain(s.ipc, 256);
            send(fd, head, tg_zmtp_put_head(head, 0, sizeof text), MSG_NOSIGNAL);
            for (size_t at = 0, tries = 0; at < sizeof text && tries < 200; tries++) {
                ssize_t n = send(fd, text + at, sizeof text - at, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n > 0) at += (size_t)n;
                tg_ipc_drain(s.ipc, 256);
            }
            close(fd);
            tg_ipc_drain(s.ipc, 256);
            tg_ipc_destroy(&s.ipc);
        } else {
            CHECK_EQ(st, TG_NOMEM);
        }
        tg_alloc_fail_after(-1);
    }
}

TEST_MAIN
