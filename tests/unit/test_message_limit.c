/* The limit of a message on every kind of socket, ipc and tcp, listening and dialling: a peer of bytes completes ZeroMQ's handshake and
 * announces a frame, of which it sends nothing more. One byte above the limit ends the connection on the spot, so nothing can have been
 * allocated for it; the limit itself is waited for. */
#include "common/net/endpoint.h"
#include "common/net/zmtp.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LIMIT = 4 << 20, HELD_MS = 300, ENDED_MS = 10000 };

typedef struct limit_case {
    uv_loop_t loop;
    tg_net *net;
    tg_endpoint *ep;
    int listener, fd; /* ours */
    size_t messages;
} limit_case;

static void on_message(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    (void)peer, (void)head;
    ((limit_case *)arg)->messages++;
    tg_msg_free(msg);
}

static socklen_t address_of(const char *text, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (!strncmp(text, "ipc://", 6)) {
        struct sockaddr_un *u = (struct sockaddr_un *)out;
        u->sun_family = AF_UNIX;
        memcpy(u->sun_path, text + 6, strlen(text + 6));
        return sizeof *u;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)atoi(strrchr(text, ':') + 1));
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof *in;
}

/* Turns the loop for a moment. */
static void turn(limit_case *c) {
    for (int i = 0; i < 5; i++) uv_run(&c->loop, UV_RUN_NOWAIT);
    poll(NULL, 0, 2);
}

static void send_all(limit_case *c, const void *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(c->fd, (const char *)bytes + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0)
            at += (size_t)sent;
        else if (!CHECK(errno == EAGAIN))
            return;
        turn(c);
    }
}

/* Whether the other side hangs up within the time; what it says before that is read and ignored. */
static bool hangs_up(limit_case *c, int ms) {
    char bytes[512];
    for (int i = 0; i < ms / 2; i++) {
        turn(c);
        ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) return true;
    }
    return false;
}

/* Ours listens or dials, the endpoint the other. A tcp port for us to listen on is chosen by the system. */
static bool open_pair(limit_case *c, bool ipc, bool endpoint_listens) {
    struct sockaddr_storage at;
    char address[128];
    tg_error err = {0};
    *c = (limit_case){.listener = -1, .fd = -1};
    uv_loop_init(&c->loop);
    if (!CHECK(tg_net_create(&c->net, &err) == TG_OK)) return false;
    snprintf(address, sizeof address, ipc ? "ipc://%s/limit" : "tcp://127.0.0.1:%s",
             ipc                ? tg_test_tmpdir()
             : endpoint_listens ? "*"
                                : "0");
    int family = ipc ? AF_UNIX : AF_INET;
    if (!endpoint_listens) {
        socklen_t len = address_of(address, &at);
        if (ipc) unlink(address + 6);
        c->listener = socket(family, SOCK_STREAM, 0);
        if (!CHECK(bind(c->listener, (struct sockaddr *)&at, len) == 0) ||
            !CHECK(listen(c->listener, 4) == 0))
            return false;
        getsockname(c->listener, (struct sockaddr *)&at, &len);
        if (!ipc)
            snprintf(address, sizeof address, "tcp://127.0.0.1:%d",
                     ntohs(((struct sockaddr_in *)&at)->sin_port));
    }
    tg_endpoint_opts o = {.address = address,
                          .listen = endpoint_listens,
                          .max_message = LIMIT,
                          .on_message = on_message,
                          .arg = c};
    if (!tg_check(tg_endpoint_open(&c->ep, c->net, &c->loop, &o, &err) == TG_OK, __FILE__, __LINE__,
                  "%s", err.msg))
        return false;
    if (!endpoint_listens) {
        struct pollfd p = {c->listener, POLLIN, 0};
        for (int i = 0; i < 2000 && poll(&p, 1, 0) == 0; i++) turn(c);
        c->fd = accept(c->listener, NULL, NULL);
    } else {
        socklen_t len = address_of(tg_endpoint_address(c->ep), &at);
        c->fd = socket(family, SOCK_STREAM, 0);
        CHECK_EQ(connect(c->fd, (struct sockaddr *)&at, len), 0);
    }
    return CHECK(c->fd >= 0);
}

static void close_pair(limit_case *c) {
    tg_endpoint_close(&c->ep, 0);
    if (c->fd >= 0) close(c->fd);
    if (c->listener >= 0) close(c->listener);
    uv_run(&c->loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&c->loop), 0);
    tg_net_destroy(&c->net);
}

static void announce(bool ipc, bool endpoint_listens, size_t len, bool ends) {
    limit_case c;
    uint8_t bytes[TG_ZMTP_GREETING + TG_ZMTP_READY + TG_ZMTP_HEAD];
    if (open_pair(&c, ipc, endpoint_listens)) {
        tg_zmtp_put_greeting(bytes);
        send_all(&c, bytes, TG_ZMTP_GREETING);
        send_all(&c, bytes, tg_zmtp_put_ready(bytes, !endpoint_listens));
        CHECK(!hangs_up(&c, HELD_MS)); /* a connection like any other */
        send_all(&c, bytes, tg_zmtp_put_head(bytes, 0, len));
        tg_check(hangs_up(&c, ends ? ENDED_MS : HELD_MS) == ends, __FILE__, __LINE__,
                 "%s, %s: a frame of %zu bytes %s", ipc ? "ipc" : "tcp",
                 endpoint_listens ? "listening" : "dialling", len,
                 ends ? "was not refused" : "was refused");
        CHECK_EQ(c.messages, 0);
    }
    close_pair(&c);
}

TEST(every_socket_refuses_a_message_above_its_limit_before_it_comes) {
    for (int kind = 0; kind < 4; kind++) {
        bool ipc = kind & 1, listens = kind & 2;
        announce(ipc, listens, LIMIT, false);
        announce(ipc, listens, (size_t)LIMIT + 1, true);
        announce(ipc, listens, (size_t)1 << 62, true);
    }
}

/* What we would not be allowed to send is refused here, and says what to do. */
TEST(a_sender_knows_the_limit_of_the_other_side) {
    limit_case c;
    tg_error err = {0};
    if (open_pair(&c, true, false)) {
        static char text[4000];
        memset(text, 'x', sizeof text - 1);
        tg_endpoint_limit_send(c.ep, 4000);
        CHECK_EQ(tg_endpoint_send(c.ep, 0, &(tg_frame){.type = TG_MSG_BYE}, &(tg_bye){text}, &err),
                 TG_DATA);
        CHECK(strstr(err.msg, "--max-message") != NULL);
    }
    close_pair(&c);
}

TEST_MAIN
