/* Two clients of one real server, doing what the input says: Hello, resumption of their own and of the other's session, slots,
 * resets, steps, restores, cancellations, payloads of any bytes, reconnections. Whatever they do, each request is answered
 * exactly once, by its reply or by an Error with its number, and the server stays. */
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/support/server_case.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_OPS = 48, WAIT_MS = 30000, EPISODES = 3, SLOTS = 4 };

typedef struct peer {
    void *sock;
    uint64_t session, seq;
    bool has_token, damaged; /* damaged: it sent a frame with a wrong head */
    uint8_t token[16];
} peer;

typedef struct input {
    const uint8_t *at, *end;
} input;

static server_case server;
static void *ctx;
static peer peers[2];

static uint8_t next(input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

static void *dial(void) {
    int zero = 0, wait = WAIT_MS;
    void *sock;
    for (int n = 0; !(sock = zmq_socket(ctx, ZMQ_DEALER)) && n < WAIT_MS; n++)
        usleep(1000); /* libzmq closes sockets behind one's back, when it has the time */
    if (!sock) fprintf(stderr, "fuzz_session: no socket: %s\n", zmq_strerror(zmq_errno()));
    TG_ASSERT(sock);
    zmq_setsockopt(sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    TG_ASSERT(zmq_connect(sock, server.address) == 0);
    return sock;
}

static void start(void) {
    if (ctx) return;
    tg_log_set_level(TG_LOG_ERROR); /* else thousands of lines */
    TG_ASSERT(server_case_start_quick(&server, "fuzz"));
    ctx = zmq_ctx_new();
    TG_ASSERT(ctx);
}

static void send_bytes(peer *p, const void *bytes, size_t len) {
    TG_ASSERT(zmq_send(p->sock, bytes, len, 0) >= 0);
}

static uint64_t tell(peer *p, tg_msg_type type, uint64_t session, const void *msg) {
    tg_buf b = {0};
    tg_frame head = {type, 0, session, ++p->seq};
    TG_ASSERT(tg_frame_encode(&head, msg, &b, NULL) == TG_OK);
    send_bytes(p, b.data, b.len);
    tg_buf_fini(&b);
    return p->seq;
}

/* The answer with this number. Others may come before it: heartbeats, answers to what was not waited for. */
static void *hear(peer *p, uint64_t seq, tg_frame *head) {
    for (;;) {
        zmq_msg_t part;
        void *msg = NULL;
        zmq_msg_init(&part);
        int len;
        do len = zmq_msg_recv(&part, p->sock, 0);
        while (len < 0 && zmq_errno() == EINTR); /* the fuzzer's own clock */
        TG_ASSERT(len >= 0);                     /* every call ends */
        tg_error err;
        tg_status st = tg_frame_decode(zmq_msg_data(&part), zmq_msg_size(&part), head, &msg, &err);
        zmq_msg_close(&part);
        TG_ASSERT(st == TG_OK); /* the server speaks the protocol */
        if (head->flags & TG_FRAME_REPLY && head->seq == seq) return msg;
        /* No answer to nothing; the answer to a damaged frame repeats its damaged number. */
        TG_ASSERT(!(head->flags & TG_FRAME_REPLY) || head->type == TG_MSG_ERROR ||
                  head->seq < seq || p->damaged);
        tg_msg_free(msg);
    }
}

static void answered(peer *p, uint64_t seq, tg_msg_type want) {
    tg_frame head;
    void *msg = hear(p, seq, &head);
    TG_ASSERT(head.type == want || head.type == TG_MSG_ERROR);
    tg_msg_free(msg);
}

static void hello(peer *p, const peer *resumed, uint8_t kind) {
    tg_hello h = {.proto_major = 1, .proto_minor = kind & 1, .role = TG_ROLE_CLIENT};
    h.software = "fuzz";
    h.heartbeat_ms = 60000;
    h.peer_uuid[0] = (uint8_t)(p - peers), h.peer_uuid[1] = kind & 2;
    if (resumed && resumed->has_token) {
        h.resume_session = resumed->session;
        h.has_resume_token = true;
        memcpy(h.resume_token, resumed->token, 16);
        if (kind & 4) h.resume_token[3] ^= 1;
    }
    tg_frame head;
    void *msg = hear(p, tell(p, TG_MSG_HELLO, 0, &h), &head);
    TG_ASSERT(head.type == TG_MSG_WELCOME || head.type == TG_MSG_ERROR);
    if (head.type == TG_MSG_WELCOME) {
        const tg_welcome *w = msg;
        p->session = w->session;
        p->has_token = w->has_resume_token;
        memcpy(p->token, w->resume_token, 16);
    }
    tg_msg_free(msg);
}

static void reconnect(peer *p) {
    zmq_close(p->sock);
    p->sock = dial();
}

/* Frames of any type and payload, whole or damaged. A question behind it, which must be answered, shows that the server lives. */
static void any_frame(peer *p, input *in, bool damage) {
    unsigned char frame[TG_FRAME_HEADER + 256];
    tg_msg_type type = (tg_msg_type)(1 + next(in) % TG_MSG_CANCEL);
    size_t len = next(in);
    tg_buf b = {0};
    tg_slot_list none = {0};
    tg_frame head = {TG_MSG_CANCEL, 0, p->session, ++p->seq};
    TG_ASSERT(tg_frame_encode(&head, &none, &b, NULL) == TG_OK);
    memcpy(frame, b.data, TG_FRAME_HEADER);
    frame[4] = (unsigned char)type;
    for (size_t i = 0; i < len; i++) frame[TG_FRAME_HEADER + i] = next(in);
    frame[24] = (unsigned char)len;
    uint32_t crc = tg_crc32c(0, frame + TG_FRAME_HEADER, len);
    memcpy(frame + 28, &crc, 4);
    if (damage) frame[next(in) % TG_FRAME_HEADER] ^= (unsigned char)(1 + next(in));
    p->damaged |= damage;
    send_bytes(p, frame, TG_FRAME_HEADER + len);
    tg_buf_fini(&b);
    tg_sample_range range = {TG_SPLIT_TRAIN, 0, 1};
    answered(p, tell(p, TG_MSG_SAMPLE_RANGE, p->session, &range), TG_MSG_SAMPLES);
}

static void one_op(input *in) {
    uint8_t op = next(in);
    peer *p = &peers[op >> 7], *other = &peers[!(op >> 7)];
    uint64_t session = op & 0x40 ? other->session : p->session;
    uint32_t slot = next(in) % (SLOTS + 1);
    uint64_t episode = next(in) % EPISODES;
    tg_slot_list one = {&slot, 1};
    int32_t tokens[3] = {next(in), 70, 71};
    double rewards[3] = {0, 0, (double)NAN};
    switch (op & 15) {
    case 0: hello(p, NULL, next(in)); break;
    case 1: hello(p, p, next(in)); break;
    case 2: hello(p, other, next(in)); break;
    case 3: answered(p, tell(p, TG_MSG_OPEN_SLOTS, session, &one), TG_MSG_SLOTS_OPENED); break;
    case 4: {
        tg_reset_item item = {.slot = slot, .episode = episode, .split = TG_SPLIT_TRAIN};
        tg_reset_batch batch = {&item, 1, op & 0x10};
        answered(p, tell(p, TG_MSG_RESET, session, &batch), TG_MSG_RESET_REPLY);
        break;
    }
    case 5:
    case 6: {
        tg_step_item item = {slot, episode, next(in) % 5, tokens, 1 + next(in) % 3};
        tg_step_batch batch = {.items = &item, .n = 1, .want_text = op & 0x10};
        answered(p, tell(p, TG_MSG_STEP, session, &batch), TG_MSG_STEP_REPLY);
        break;
    }
    case 7: {
        tg_restore_item item = {.slot = slot, .episode = episode, .split = TG_SPLIT_TRAIN};
        item.tokens = tokens, item.rewards = rewards, item.n_tokens = next(in) % 4;
        tg_restore_batch batch = {&item, 1};
        answered(p, tell(p, TG_MSG_RESTORE, session, &batch), TG_MSG_RESTORE_REPLY);
        break;
    }
    case 8:
        if (op & 0x10) one.n = 0;
        answered(p, tell(p, TG_MSG_SNAPSHOT, session, &one), TG_MSG_SNAPSHOT_REPLY);
        break;
    case 9: tell(p, TG_MSG_CANCEL, session, &one); break;
    case 10: tell(p, TG_MSG_CLOSE_SLOTS, session, &one); break;
    case 11: tell(p, TG_MSG_HEARTBEAT, session, &(tg_heartbeat){0}); break;
    case 12: tell(p, TG_MSG_BYE, session, &(tg_bye){"fuzz"}); break;
    case 13: any_frame(p, in, false); break;
    case 14: any_frame(p, in, true); break;
    default: reconnect(p); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    start();
    input in = {data, data + size};
    for (int i = 0; i < 2; i++) peers[i] = (peer){.sock = dial()};
    for (int i = 0; i < 2; i++) hello(&peers[i], NULL, 1);
    for (int n = 0; n < MAX_OPS && in.at < in.end; n++) one_op(&in);
    for (int i = 0; i < 2; i++) {
        hello(&peers[i], &peers[i], 1); /* it can still be had, or a new one */
        tell(&peers[i], TG_MSG_BYE, peers[i].session, &(tg_bye){"over"});
        zmq_close(peers[i].sock);
    }
    return 0;
}
