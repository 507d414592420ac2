#include "tests/support/raw_peer.h"

#include "common/base/clock.h"
#include "common/net/keys.h"
#include "proto/codec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

static bool set_keys(void *socket, const char *key, const char *server_key) {
    tg_key_pair pair;
    char server[TG_KEY_TEXT + 1];
    tg_error err = {0};
    if (tg_key_pair_read(&pair, key, &err) != TG_OK ||
        tg_key_public_read(server, server_key, &err) != TG_OK) {
        printf("  %s\n", err.msg);
        return false;
    }
    return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, TG_KEY_TEXT + 1) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, pair.public_key, TG_KEY_TEXT + 1) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, pair.secret_key, TG_KEY_TEXT + 1) == 0;
}

bool raw_peer_open(raw_peer *p, const char *address, const char *key, const char *server_key) {
    static unsigned serial;
    char name[64];
    int linger = 0, again = 60000; /* one attempt */
    memset(p, 0, sizeof *p);
    snprintf(name, sizeof name, "inproc://raw-peer-%u", serial++);
    p->ctx = zmq_ctx_new();
    p->socket = zmq_socket(p->ctx, ZMQ_DEALER);
    zmq_setsockopt(p->socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(p->socket, ZMQ_RECONNECT_IVL, &again, sizeof again);
    p->monitor = zmq_socket(p->ctx, ZMQ_PAIR);
    zmq_socket_monitor(p->socket, name, ZMQ_EVENT_ALL);
    zmq_connect(p->monitor, name);
    return (!key || set_keys(p->socket, key, server_key)) && zmq_connect(p->socket, address) == 0;
}

void raw_peer_close(raw_peer *p) {
    if (!p->ctx) return;
    zmq_socket_monitor(p->socket, NULL, 0);
    zmq_close(p->monitor);
    zmq_close(p->socket);
    zmq_ctx_term(p->ctx);
    p->ctx = NULL;
}

int raw_peer_handshake(raw_peer *p, int timeout_ms) {
    uint64_t end = tg_clock_ms() + (uint64_t)timeout_ms;
    for (uint64_t now; (now = tg_clock_ms()) < end;) {
        int left = (int)(end - now);
        uint8_t event[6];
        char address[256];
        zmq_setsockopt(p->monitor, ZMQ_RCVTIMEO, &left, sizeof left);
        if (zmq_recv(p->monitor, event, sizeof event, 0) != 6) continue;
        zmq_recv(p->monitor, address, sizeof address, 0);
        uint16_t what;
        memcpy(&what, event, sizeof what);
        if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return 1;
        if (what & (ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_DISCONNECTED))
            return -1;
    }
    return 0;
}

bool raw_peer_send_bytes(raw_peer *p, const void *bytes, size_t len) {
    int limit = 5000;
    zmq_setsockopt(p->socket, ZMQ_SNDTIMEO, &limit, sizeof limit);
    return zmq_send(p->socket, bytes, len, 0) >= 0;
}

bool raw_peer_send(raw_peer *p, tg_msg_type type, uint64_t session, const void *msg) {
    tg_buf b = {0};
    tg_error err = {0};
    tg_frame head = {type, 0, session, ++p->seq};
    bool ok = tg_frame_encode(&head, msg, &b, &err) == TG_OK;
    if (!ok) printf("  %s\n", err.msg);
    ok = ok && raw_peer_send_bytes(p, b.data, b.len);
    tg_buf_fini(&b);
    return ok;
}

void *raw_peer_receive(raw_peer *p, tg_frame *head, int timeout_ms) {
    uint64_t end = tg_clock_ms() + (uint64_t)timeout_ms;
    for (uint64_t now; (now = tg_clock_ms()) < end;) {
        int left = (int)(end - now);
        zmq_msg_t part;
        void *msg = NULL;
        tg_error err;
        zmq_msg_init(&part);
        zmq_setsockopt(p->socket, ZMQ_RCVTIMEO, &left, sizeof left);
        if (zmq_msg_recv(&part, p->socket, 0) >= 0 &&
            tg_frame_decode(zmq_msg_data(&part), zmq_msg_size(&part), head, &msg, &err) != TG_OK)
            msg = NULL;
        zmq_msg_close(&part);
        if (msg && head->type != TG_MSG_HEARTBEAT) return msg;
        tg_msg_free(msg);
    }
    return NULL;
}

tg_code raw_peer_hello(raw_peer *p, tg_role role, const raw_peer *resume) {
    tg_hello hello = {.proto_major = TG_PROTO_MAJOR,
                      .proto_minor = TG_PROTO_MINOR,
                      .heartbeat_ms = 60000,
                      .role = role,
                      .software = "raw"};
    tg_frame head;
    if (getrandom(hello.peer_uuid, sizeof hello.peer_uuid, 0) < 0) return TG_CODE_INTERNAL;
    if (resume) {
        hello.resume_session = resume->session;
        hello.has_resume_token = true;
        memcpy(hello.resume_token, resume->token, sizeof hello.resume_token);
    }
    if (!raw_peer_send(p, TG_MSG_HELLO, 0, &hello)) return TG_CODE_INTERNAL;
    void *msg = raw_peer_receive(p, &head, 5000);
    if (!msg) return TG_CODE_DEADLINE_EXCEEDED;
    tg_code code = TG_CODE_OK;
    if (head.type == TG_MSG_ERROR) {
        code = ((tg_wire_error *)msg)->code;
    } else if (head.type == TG_MSG_WELCOME) {
        const tg_welcome *w = msg;
        p->session = w->session;
        p->limits = w->limits;
        p->has_token = w->has_resume_token;
        memcpy(p->token, w->resume_token, sizeof p->token);
    } else {
        code = TG_CODE_PROTOCOL;
    }
    tg_msg_free(msg);
    return code;
}

tg_code raw_peer_answer(raw_peer *p, int timeout_ms) {
    tg_frame head;
    void *msg = raw_peer_receive(p, &head, timeout_ms);
    if (!msg) return TG_CODE_DEADLINE_EXCEEDED;
    tg_code code = head.type == TG_MSG_ERROR ? ((tg_wire_error *)msg)->code : TG_CODE_OK;
    tg_msg_free(msg);
    return code;
}
