/* Steps of a server in its steady state allocate nothing, whatever their number; nor do heartbeats. */
#include "common/base/alloc.h"
#include "proto/frame.h"
#include "tests/support/server_case.h"
#include "tests/support/tg_test.h"

#include <string.h>
#include <zmq.h>

/* A client that allocates nothing either. */
typedef struct peer {
    void *ctx, *sock;
    tg_buf out;
    tg_arena arena;
    tg_msg_pool *pool;
    uint64_t session, seq;
} peer;

static bool tell(peer *p, tg_msg_type type, const void *msg) {
    tg_frame head = {type, 0, p->session, ++p->seq};
    tg_buf_reset(&p->out);
    return tg_frame_encode_in(&p->arena, &head, msg, &p->out, NULL) == TG_OK &&
           zmq_send(p->sock, p->out.data, p->out.len, 0) >= 0;
}

static void *hear(peer *p, tg_msg_type want) {
    for (;;) {
        zmq_msg_t part;
        tg_frame head;
        void *msg = NULL;
        zmq_msg_init(&part);
        bool there = zmq_msg_recv(&part, p->sock, 0) >= 0;
        tg_status st = there ? tg_frame_decode_from(p->pool, zmq_msg_data(&part),
                                                    zmq_msg_size(&part), &head, &msg, NULL)
                             : TG_TIMEOUT;
        zmq_msg_close(&part);
        if (st != TG_OK || head.type == want) return msg;
        tg_msg_free(msg);
    }
}

static bool open_peer(peer *p, const char *address) {
    int zero = 0, wait = 20000;
    *p = (peer){.ctx = zmq_ctx_new(), .pool = tg_msg_pool_create()};
    p->sock = zmq_socket(p->ctx, ZMQ_DEALER);
    zmq_setsockopt(p->sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(p->sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    zmq_connect(p->sock, address);
    tg_hello hello = {
        .proto_major = 1, .role = TG_ROLE_CLIENT, .software = "", .heartbeat_ms = 200};
    tg_welcome *w = tell(p, TG_MSG_HELLO, &hello) ? hear(p, TG_MSG_WELCOME) : NULL;
    if (w) p->session = w->session;
    tg_msg_free(w);
    return p->session;
}

static void close_peer(peer *p) {
    zmq_close(p->sock);
    zmq_ctx_term(p->ctx);
    tg_buf_fini(&p->out);
    tg_arena_fini(&p->arena);
    tg_msg_pool_release(&p->pool);
}

enum { SLOTS = 8, LENGTH = 4 };

static bool run_episode(peer *p, uint64_t episode) {
    tg_reset_item resets[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++)
        resets[i] = (tg_reset_item){.slot = i, .episode = episode, .split = TG_SPLIT_TRAIN};
    tg_reset_batch batch = {resets, SLOTS, false};
    void *reply = tell(p, TG_MSG_RESET, &batch) ? hear(p, TG_MSG_RESET_REPLY) : NULL;
    bool ok = reply;
    tg_msg_free(reply);
    for (uint32_t step = 0; step < LENGTH && ok; step++) {
        int32_t tokens[SLOTS];
        tg_step_item items[SLOTS];
        for (uint32_t i = 0; i < SLOTS; i++) {
            tokens[i] = (int32_t)(70 + (i + step) % 100);
            items[i] = (tg_step_item){i, episode, step, &tokens[i], 1};
        }
        tg_step_batch steps = {.items = items, .n = SLOTS};
        tg_step_reply *r = tell(p, TG_MSG_STEP, &steps) ? hear(p, TG_MSG_STEP_REPLY) : NULL;
        ok = r && r->n == SLOTS && r->items[0].code == TG_CODE_OK;
        tg_msg_free(r);
        ok = ok && tell(p, TG_MSG_HEARTBEAT, &(tg_heartbeat){0});
    }
    return ok;
}

TEST(steps_allocate_nothing) {
    server_case f;
    peer p;
    if (!server_case_start_quick(&f, "steady")) return;
    REQUIRE(open_peer(&p, f.address));
    uint32_t ids[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) ids[i] = i;
    tg_slot_list list = {ids, SLOTS};
    void *opened = tell(&p, TG_MSG_OPEN_SLOTS, &list) ? hear(&p, TG_MSG_SLOTS_OPENED) : NULL;
    CHECK(opened != NULL);
    tg_msg_free(opened);
    for (uint64_t e = 0; e < 200; e++) CHECK(run_episode(&p, e)); /* every sample, every size */
    uint64_t before = tg_alloc_calls();
    for (uint64_t e = 200; e < 600; e++) CHECK(run_episode(&p, e));
    CHECK_EQ(tg_alloc_calls() - before, 0);
    close_peer(&p);
    server_case_finish(&f);
}

TEST_MAIN
