/* The socket in the loop: nothing lost while it sleeps, nothing lost when a peer stalls, bad frames
 * survived. */
#include "common/base/file.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

/* A loop with one or two endpoints and what they heard. */
typedef struct fixture {
    uv_loop_t loop;
    uv_timer_t deadline;
    tg_net *net;
    tg_endpoint *ep, *other;
    char address[128];
    uint64_t got, want, last_seq, gone, drops;
    tg_code error_code;
    char error[256];
    tg_peer peer;
    bool in_order, timed_out;
} fixture;

static void on_deadline(uv_timer_t *t) {
    fixture *f = t->data;
    f->timed_out = true;
    uv_stop(&f->loop);
}

static void on_message(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    fixture *f = arg;
    f->peer = peer;
    f->in_order = f->in_order && head->seq == f->last_seq + 1;
    f->last_seq = head->seq;
    if (head->type == TG_MSG_ERROR) {
        f->error_code = ((tg_wire_error *)msg)->code;
        snprintf(f->error, sizeof f->error, "%s", ((tg_wire_error *)msg)->message);
    }
    tg_msg_free(msg);
    if (++f->got == f->want) uv_stop(&f->loop);
}

static void on_gone(void *arg, tg_peer peer) {
    fixture *f = arg;
    (void)peer;
    f->gone++;
    uv_stop(&f->loop);
}

static void on_disconnect(void *arg, int fd) {
    (void)fd;
    fixture *f = arg;
    f->drops++;
    uv_stop(&f->loop);
}

static bool setup(fixture *f, bool listen, const char *name, int high_water) {
    tg_error err = {0};
    *f = (fixture){.in_order = true};
    uv_loop_init(&f->loop);
    uv_timer_init(&f->loop, &f->deadline);
    f->deadline.data = f;
    uv_timer_start(&f->deadline, on_deadline, 20000, 0);
    snprintf(f->address, sizeof f->address, "ipc://%s/%s", tg_test_tmpdir(), name);
    tg_endpoint_opts opts = {.address = f->address,
                             .listen = listen,
                             .high_water = high_water,
                             .max_queue = 5000,
                             .max_queue_bytes = 64 << 20,
                             .on_message = on_message,
                             .on_gone = on_gone,
                             .on_disconnect = on_disconnect,
                             .arg = f};
    return CHECK(tg_net_create(&f->net, &err) == TG_OK) &&
           tg_check(tg_endpoint_open(&f->ep, f->net, &f->loop, &opts, &err) == TG_OK, __FILE__,
                    __LINE__, "%s", err.msg);
}

static void teardown(fixture *f) {
    tg_endpoint_close(&f->ep, 0);
    tg_endpoint_close(&f->other, 0);
    uv_close((uv_handle_t *)&f->deadline, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&f->loop), 0);
    tg_net_destroy(&f->net);
    CHECK(!f->timed_out);
}

static void run_for(fixture *f, uint64_t want) {
    f->want = want;
    while (f->got < want && !f->timed_out) uv_run(&f->loop, UV_RUN_DEFAULT);
}

/* A plain ZeroMQ peer in a thread of its own. */
typedef struct sender {
    pthread_t thread;
    const char *address;
    int count, delay_ms;
    bool raw; /* frames of garbage instead of messages */
} sender;

static void *sender_main(void *arg) {
    sender *s = arg;
    void *ctx = zmq_ctx_new(), *sock = zmq_socket(ctx, ZMQ_DEALER);
    zmq_connect(sock, s->address);
    usleep((useconds_t)s->delay_ms * 1000);
    tg_buf b = {0};
    for (int i = 0; i < s->count; i++) {
        tg_buf_reset(&b);
        tg_frame head = {TG_MSG_BYE, 0, 0, (uint64_t)i + 1};
        tg_bye bye = {"x"};
        if (tg_frame_encode(&head, &bye, &b, NULL) == TG_OK) zmq_send(sock, b.data, b.len, 0);
    }
    tg_buf_fini(&b);
    zmq_close(sock); /* default linger: delivered before the context ends */
    zmq_ctx_term(ctx);
    return NULL;
}

/* The naive version (one receive for each wake-up) handles one of these and sleeps for ever. */
TEST(a_hundred_messages_sent_while_the_loop_sleeps) {
    fixture f;
    if (setup(&f, true, "sleep", 0)) {
        sender s = {.address = f.address, .count = 100, .delay_ms = 200};
        pthread_create(&s.thread, NULL, sender_main, &s);
        run_for(&f, 100);
        pthread_join(s.thread, NULL);
        CHECK_EQ(f.got, 100);
        CHECK(f.in_order);
        CHECK_EQ(tg_endpoint_get_stats(f.ep)->received, 100);
    }
    teardown(&f);
}

TEST(more_than_the_budget_of_one_turn) {
    fixture f;
    if (setup(&f, true, "budget", 4096)) {
        sender s = {.address = f.address, .count = 3000, .delay_ms = 0};
        pthread_create(&s.thread, NULL, sender_main, &s);
        usleep(300000); /* all of it is there before the loop first looks */
        run_for(&f, 3000);
        pthread_join(s.thread, NULL);
        CHECK_EQ(f.got, 3000);
        CHECK(f.in_order);
    }
    teardown(&f);
}

/* Two endpoints of one loop answer each other: each send happens inside the other's drain. */
static void on_ping(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    fixture *f = arg;
    tg_msg_free(msg);
    tg_frame back = {TG_MSG_HEARTBEAT, 0, 0, head->seq};
    tg_heartbeat beat = {0};
    CHECK(tg_endpoint_send(f->ep, peer, &back, &beat, NULL) == TG_OK);
}

static void on_pong(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    fixture *f = arg;
    tg_msg_free(msg);
    f->got++;
    if (f->got == f->want) {
        uv_stop(&f->loop);
        return;
    }
    tg_heartbeat beat = {0};
    CHECK(tg_endpoint_send(f->other, peer, &(tg_frame){TG_MSG_HEARTBEAT, 0, 0, head->seq + 1},
                           &beat, NULL) == TG_OK);
}

TEST(ping_pong_on_one_loop_never_stalls) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "pingpong", 0)) {
        tg_endpoint_close(&f.ep, 0);
        tg_endpoint_opts a = {
            .address = f.address, .listen = true, .on_message = on_ping, .arg = &f};
        tg_endpoint_opts b = {.address = f.address, .on_message = on_pong, .arg = &f};
        CHECK_OK(tg_endpoint_open(&f.ep, f.net, &f.loop, &a, &err));
        CHECK_OK(tg_endpoint_open(&f.other, f.net, &f.loop, &b, &err));
        tg_heartbeat beat = {0};
        /* Not connected yet: waits in the queue. */
        CHECK_OK(tg_endpoint_send(f.other, 0, &(tg_frame){TG_MSG_HEARTBEAT, 0, 0, 1}, &beat, &err));
        run_for(&f, 2000);
        CHECK_EQ(f.got, 2000);
    }
    teardown(&f);
}

/* Two endpoints of one loop, each answering through the other: a send may make a socket readable that has
 * had its turn already, without a new edge. One missed look and the exchange stands still. */
typedef struct crossing {
    fixture *f;
    tg_endpoint *through;
    tg_peer *reply_to;
    tg_peer peer;
} crossing;

static void on_crossing(void *arg, tg_peer peer, const tg_frame *head, void *msg) {
    crossing *x = arg;
    x->peer = peer;
    tg_msg_free(msg);
    tg_heartbeat beat = {0};
    tg_frame back = {TG_MSG_HEARTBEAT, 0, 0, head->seq};
    if (*x->reply_to && tg_endpoint_send(x->through, *x->reply_to, &back, &beat, NULL) != TG_OK)
        x->f->gone++;
    x->f->got++;
}

static void *crossing_main(void *arg) {
    fixture *f = arg;
    void *ctx = zmq_ctx_new(), *sock[2];
    int wait = 5000, zero = 0;
    char address[160], frame[256];
    tg_buf b = {0};
    if (tg_frame_encode(&(tg_frame){TG_MSG_BYE, 0, 0, 1}, &(tg_bye){"x"}, &b, NULL) != TG_OK)
        return NULL;
    for (int i = 0; i < 2; i++) {
        sock[i] = zmq_socket(ctx, ZMQ_DEALER);
        zmq_setsockopt(sock[i], ZMQ_RCVTIMEO, &wait, sizeof wait);
        zmq_setsockopt(sock[i], ZMQ_LINGER, &zero, sizeof zero);
        snprintf(address, sizeof address, "%s%s", f->address, i ? "b" : "");
        zmq_connect(sock[i], address);
        zmq_send(sock[i], b.data, b.len, 0); /* each is known before the exchange begins */
        usleep(100000);
    }
    zmq_recv(sock[0], frame, sizeof frame,
             0); /* the second greeting is answered through the first */
    for (int round = 0; round < 1000 && f->drops == 0; round++) {
        for (int i = 0; i < 2; i++) zmq_send(sock[i], b.data, b.len, 0);
        for (int i = 0; i < 2; i++) {
            if (zmq_recv(sock[i], frame, sizeof frame, 0) < 0)
                f->error_code = TG_CODE_DEADLINE_EXCEEDED;
        }
        if (f->error_code) break;
    }
    for (int i = 0; i < 2; i++) zmq_close(sock[i]);
    zmq_ctx_term(ctx);
    tg_buf_fini(&b);
    return NULL;
}

static void ignore_disconnect(void *arg, int fd) {
    (void)fd;
    fixture *f = ((crossing *)arg)->f;
    uv_stop(&f->loop);
}

TEST(endpoints_that_answer_through_each_other_never_stall) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "cross", 0)) {
        char second[160];
        snprintf(second, sizeof second, "%sb", f.address);
        tg_endpoint_close(&f.ep, 0);
        crossing a = {.f = &f}, b = {.f = &f};
        a.reply_to = &b.peer, b.reply_to = &a.peer;
        tg_endpoint_opts opts = {.address = f.address,
                                 .listen = true,
                                 .on_message = on_crossing,
                                 .on_disconnect = ignore_disconnect,
                                 .arg = &a};
        CHECK_OK(tg_endpoint_open(&f.ep, f.net, &f.loop, &opts, &err));
        opts.address = second, opts.arg = &b;
        CHECK_OK(tg_endpoint_open(&f.other, f.net, &f.loop, &opts, &err));
        a.through = f.other, b.through = f.ep;
        pthread_t t;
        pthread_create(&t, NULL, crossing_main, &f);
        uv_run(&f.loop, UV_RUN_DEFAULT); /* until the thread hangs up */
        pthread_join(t, NULL);
        CHECK_EQ(f.error_code, TG_CODE_OK);
        CHECK_EQ(f.got, 2 + 2 * 1000);
        CHECK_EQ(f.gone, 0);
    }
    teardown(&f);
}

/* A listening peer that does not read: past libzmq's high-water mark messages queue here, then are
 * refused, and none of the accepted ones is lost. */
TEST(a_stalled_peer_costs_no_message) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "stall", 50)) {
        void *ctx = zmq_ctx_new(), *sock = zmq_socket(ctx, ZMQ_DEALER);
        int hwm = 50, zero = 0;
        zmq_setsockopt(sock, ZMQ_RCVHWM, &hwm, sizeof hwm);
        zmq_setsockopt(sock, ZMQ_LINGER, &zero, sizeof zero);
        zmq_connect(sock, f.address);
        tg_buf b = {0};
        CHECK_OK(tg_frame_encode(&(tg_frame){TG_MSG_BYE, 0, 0, 1}, &(tg_bye){"hi"}, &b, &err));
        zmq_send(sock, b.data, b.len, 0);
        run_for(&f, 1);
        tg_buf_fini(&b);
        char *text = calloc(1, 4001); /* larger than what the kernel's buffers swallow */
        memset(text, 'x', 4000);
        uint64_t accepted = 0;
        tg_status st = TG_OK;
        while (accepted < 20000) {
            st = tg_endpoint_send(f.ep, f.peer, &(tg_frame){TG_MSG_BYE, 0, 0, accepted},
                                  &(tg_bye){text}, &err);
            if (st != TG_OK) break;
            accepted++;
            if (accepted % 100 == 0) uv_run(&f.loop, UV_RUN_NOWAIT);
        }
        CHECK_EQ(st, TG_BUSY);
        CHECK(accepted >= 5000);
        CHECK_EQ(tg_endpoint_queued(f.ep, f.peer), 5000);
        uint64_t arrived = 0;
        bool in_order = true;
        for (int quiet = 0; arrived < accepted && quiet < 2000;) {
            uv_run(&f.loop, UV_RUN_NOWAIT);
            char frame[8192];
            int len = zmq_recv(sock, frame, sizeof frame, ZMQ_DONTWAIT);
            if (len < 0) {
                quiet++;
                usleep(1000);
                continue;
            }
            quiet = 0;
            uint64_t seq;
            memcpy(&seq, frame + 16, 8);
            in_order = in_order && seq == arrived;
            arrived++;
        }
        CHECK_EQ(arrived, accepted);
        CHECK(in_order);
        CHECK_EQ(tg_endpoint_get_stats(f.ep)->refused, 1);
        zmq_close(sock);
        zmq_ctx_term(ctx);
        free(text);
    }
    teardown(&f);
}

TEST(a_vanished_peer_is_noticed) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "vanish", 0)) {
        sender s = {.address = f.address, .count = 1, .delay_ms = 0};
        pthread_create(&s.thread, NULL, sender_main, &s);
        run_for(&f, 1);
        pthread_join(s.thread, NULL);
        while (f.drops == 0 && !f.timed_out)
            uv_run(&f.loop, UV_RUN_DEFAULT); /* the transport says so */
        tg_status st = TG_OK;
        for (int i = 0; i < 200 && st == TG_OK; i++) { /* and the next send fails */
            st = tg_endpoint_send(f.ep, f.peer, &(tg_frame){TG_MSG_BYE, 0, 0, 9}, &(tg_bye){"x"},
                                  &err);
            usleep(1000);
        }
        CHECK_EQ(st, TG_UNAVAILABLE);
        CHECK_EQ(tg_endpoint_send(f.ep, 0x0512345678, &(tg_frame){TG_MSG_BYE, 0, 0, 9},
                                  &(tg_bye){"x"}, &err),
                 TG_UNAVAILABLE);
    }
    teardown(&f);
}

TEST(bad_frames_are_counted_answered_and_survived) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "garbage", 0)) {
        void *ctx = zmq_ctx_new(), *sock = zmq_socket(ctx, ZMQ_DEALER);
        int zero = 0, second = 1000;
        zmq_setsockopt(sock, ZMQ_LINGER, &zero, sizeof zero);
        zmq_setsockopt(sock, ZMQ_RCVTIMEO, &second, sizeof second);
        zmq_connect(sock, f.address);
        zmq_send(sock, "junk", 4, 0);
        zmq_send(sock, "", 0, 0);
        zmq_send(sock, "two", 3, ZMQ_SNDMORE);
        zmq_send(sock, "parts", 5, 0);
        tg_buf b = {0};
        CHECK_OK(tg_frame_encode(&(tg_frame){TG_MSG_BYE, 0, 77, 88}, &(tg_bye){"hi"}, &b, &err));
        b.data[b.len - 1] ^= 1;
        zmq_send(sock, b.data, b.len, 0); /* damaged */
        b.data[b.len - 1] ^= 1;
        zmq_send(sock, b.data, b.len, 0); /* good */
        tg_buf_fini(&b);
        run_for(&f, 1);
        CHECK_EQ(f.got, 1);
        CHECK_EQ(f.last_seq, 88);
        CHECK_EQ(tg_endpoint_get_stats(f.ep)->bad_frames, 4);
        static const char *const why[] = {"frame of 4 bytes", "frame of 0 bytes",
                                          "one message part", "checksum"};
        for (int i = 0; i < 4; i++) {
            char frame[512];
            tg_frame head;
            void *msg = NULL;
            uv_run(&f.loop, UV_RUN_NOWAIT);
            int len = zmq_recv(sock, frame, sizeof frame, 0);
            if (!CHECK(len > 0)) break;
            CHECK_OK(tg_frame_decode(frame, (size_t)len, &head, &msg, &err));
            CHECK_EQ(head.type, TG_MSG_ERROR);
            CHECK_EQ(head.seq, i == 3 ? 88 : 0);
            if (msg) {
                CHECK_EQ(((tg_wire_error *)msg)->code, TG_CODE_PROTOCOL);
                CHECK(strstr(((tg_wire_error *)msg)->message, why[i]) != NULL);
            }
            tg_msg_free(msg);
        }
        zmq_close(sock);
        zmq_ctx_term(ctx);
    }
    teardown(&f);
}

/* ---- addresses ------------------------------------------------------------------------------ */

TEST(listening_is_closed_to_others_by_default) {
    tg_error err;
    static const char *const open[] = {"tcp://*:5555", "tcp://0.0.0.0:5555",
                                       "tcp://192.168.1.2:5555", "tcp://[::]:5555"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        CHECK_EQ(tg_address_prepare(open[i], false, &err), TG_DENIED);
        CHECK(strstr(err.msg, "--insecure") != NULL);
        CHECK_OK(tg_address_prepare(open[i], true, &err));
        CHECK(!tg_address_is_local(open[i]));
    }
    static const char *const local[] = {"tcp://127.0.0.1:5555", "tcp://localhost:5555",
                                        "tcp://[::1]:5555", "tcp://127.0.0.1:*"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++) {
        CHECK_OK(tg_address_prepare(local[i], false, &err));
        CHECK(tg_address_is_local(local[i]));
    }
    static const char *const wrong[] = {
        "", "5555", "tcp://", "tcp://host", "tcp://host:", "udp://1.2.3.4:5", "ipc://", "ipc://@x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(tg_address_check(wrong[i], &err), TG_USAGE);
    char longest[300] = "ipc://";
    memset(longest + 6, 'x', 200);
    CHECK_EQ(tg_address_check(longest, &err), TG_USAGE);
}

TEST(ipc_sockets_belong_to_this_user) {
    fixture f;
    if (setup(&f, true, "deep/er/socket", 0)) {
        char path[256];
        struct stat st;
        snprintf(path, sizeof path, "%s/deep/er", tg_test_tmpdir());
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
        snprintf(path, sizeof path, "%s/deep/er/socket", tg_test_tmpdir());
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    }
    teardown(&f);
}

TEST(a_free_port_can_be_asked_for) {
    fixture f;
    tg_error err;
    if (setup(&f, true, "port", 0)) {
        tg_endpoint_opts opts = {
            .address = "tcp://127.0.0.1:*", .listen = true, .on_message = on_message, .arg = &f};
        CHECK_OK(tg_endpoint_open(&f.other, f.net, &f.loop, &opts, &err));
        CHECK(strncmp(tg_endpoint_address(f.other), "tcp://127.0.0.1:", 16) == 0);
        CHECK(strchr(tg_endpoint_address(f.other), '*') == NULL);
        tg_endpoint *twice = NULL;
        opts.address = tg_endpoint_address(f.other);
        CHECK_EQ(tg_endpoint_open(&twice, f.net, &f.loop, &opts, &err), TG_UNAVAILABLE);
        CHECK(strstr(err.msg, "cannot listen") != NULL);
    }
    teardown(&f);
}

TEST_MAIN
