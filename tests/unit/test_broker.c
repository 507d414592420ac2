/* The broker against fake workers: what it tells of slots, and what it still does while it drains. */
#include "common/base/clock.h"
#include "env-server/broker/broker.h"
#include "proto/codec.h"
#include "tests/support/fake_worker.h"
#include "tests/support/raw_peer.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 10000, DRAIN_MS = 60000 };

typedef struct world {
    char front[300], back[300];
    pthread_t thread;
    tg_status status;
    tg_fake_worker *worker;
    raw_peer client;
} world;

static void *mediate(void *arg) {
    world *w = arg;
    tg_error err = {0};
    tg_broker_opts o = {.front = w->front,
                        .back = w->back,
                        .heartbeat_ms = 5000,
                        .drain_ms = DRAIN_MS,
                        .limits = TG_LIMIT_OPTS_DEFAULT};
    w->status = tg_broker_run(&o, &err);
    if (w->status != TG_OK) fprintf(stderr, "broker: %s\n", err.msg);
    return NULL;
}

/* A client with the slots 10 to 10 + n. A worker that is to die answers one step before. */
static bool start(world *w, tg_fake_fault fault, uint32_t n) {
    static int k;
    tg_code code = TG_CODE_INTERNAL;
    *w = (world){0};
    snprintf(w->front, sizeof w->front, "ipc://%s/front%d", tg_test_tmpdir(), k);
    snprintf(w->back, sizeof w->back, "ipc://%s/back%d", tg_test_tmpdir(), k++);
    if (pthread_create(&w->thread, NULL, mediate, w)) return false;
    w->worker = tg_fake_start(
        &(tg_fake_opts){.address = w->back, .fault = fault, .fault_after = fault == TG_FAKE_DIE});
    while (access(w->front + strlen("ipc://"), F_OK)) usleep(1000);
    for (uint64_t end = tg_clock_ms() + WAIT_MS; tg_clock_ms() < end; usleep(20000)) {
        if (!raw_peer_open(&w->client, w->front, NULL, NULL)) return false;
        code = raw_peer_hello(&w->client, TG_ROLE_CLIENT, NULL);
        if (code == TG_CODE_OK) break;
        raw_peer_close(&w->client); /* no worker has joined as yet */
    }
    CHECK_EQ(code, TG_CODE_OK);
    uint32_t slots[16];
    for (uint32_t i = 0; i < n; i++) slots[i] = 10 + i;
    tg_frame head;
    raw_peer_send(&w->client, TG_MSG_OPEN_SLOTS, w->client.session, &(tg_slot_list){slots, n});
    void *opened = raw_peer_receive(&w->client, &head, WAIT_MS);
    CHECK(opened && head.type == TG_MSG_SLOTS_OPENED);
    tg_msg_free(opened);
    return code == TG_CODE_OK;
}

/* The one who drains has been told to end. */
static void finish(world *w, bool draining) {
    if (!draining) kill(getpid(), SIGTERM);
    pthread_join(w->thread, NULL);
    CHECK_EQ(w->status, TG_OK);
    raw_peer_close(&w->client);
    tg_fake_stop(&w->worker, true);
}

static void *ask(world *w, tg_msg_type type, const void *msg, tg_msg_type want, tg_frame *head) {
    raw_peer_send(&w->client, type, w->client.session, msg);
    void *reply = raw_peer_receive(&w->client, head, WAIT_MS);
    if (reply && head->type == want) return reply;
    tg_msg_free(reply);
    return NULL;
}

static tg_reset_reply *reset(world *w, uint32_t slot) {
    tg_reset_item item = {.slot = slot, .episode = 1, .seed = 7, .split = TG_SPLIT_VAL};
    tg_frame head;
    tg_reset_batch batch = {&item, 1, false};
    return ask(w, TG_MSG_RESET, &batch, TG_MSG_RESET_REPLY, &head);
}

static tg_step_reply *step(world *w, uint32_t slot, uint32_t at, const int32_t *tokens, size_t n) {
    tg_step_item item = {slot, 1, at, tokens, n};
    tg_frame head;
    tg_step_batch batch = {.items = &item, .n = 1};
    return ask(w, TG_MSG_STEP, &batch, TG_MSG_STEP_REPLY, &head);
}

static tg_snapshot_reply *snapshot(world *w, const uint32_t *slots, size_t n, tg_frame *head) {
    return ask(w, TG_MSG_SNAPSHOT, &(tg_slot_list){slots, n}, TG_MSG_SNAPSHOT_REPLY, head);
}

static const int32_t tokens[] = {5, 6, 0}; /* 0 ends it */

static void check_over(const tg_snapshot *x, const tg_reset_result *begun, uint64_t digest) {
    CHECK(x->live && x->episode == 1 && x->seed == 7 && x->sample == begun->sample);
    CHECK_EQ(x->split, TG_SPLIT_VAL);
    CHECK_STR(x->sample_id, "id");
    CHECK(x->n_prompt == begun->n_prompt &&
          !memcmp(x->prompt, begun->prompt, x->n_prompt * sizeof *x->prompt));
    CHECK(x->n_tokens == 3 && !memcmp(x->tokens, tokens, sizeof tokens));
    CHECK_EQ(x->state_digest, digest);
    CHECK(x->terminated && !x->truncated);
    CHECK_EQ(x->stop, TG_STOP_EOS);
    CHECK_EQ(x->reward_status, TG_REWARD_OK);
}

TEST(an_episode_that_is_over_is_told_of_also_after_a_refusal_and_when_put_back) {
    world w;
    tg_frame head;
    if (!start(&w, TG_FAKE_NONE, 2)) return;
    tg_reset_reply *begun = reset(&w, 10);
    REQUIRE(begun && begun->n == 1);
    tg_step_reply *r = step(&w, 10, 0, tokens, 3);
    REQUIRE(r && r->n == 1 && r->items[0].terminated);
    uint64_t digest = r->items[0].state_digest;
    tg_step_reply *beyond = step(&w, 10, 3, tokens, 1);
    REQUIRE(beyond && beyond->n == 1 && beyond->items[0].code != TG_CODE_OK);
    tg_msg_free(beyond);
    uint32_t first = 10, second = 11;
    tg_snapshot_reply *s = snapshot(&w, &first, 1, &head);
    REQUIRE(s && s->n == 1);
    check_over(&s->items[0], begun->items, digest);
    tg_restore_item item = {.slot = 11,
                            .episode = 1,
                            .seed = 7,
                            .sample = s->items[0].sample,
                            .split = TG_SPLIT_VAL,
                            .tokens = s->items[0].tokens,
                            .rewards = s->items[0].rewards,
                            .n_tokens = 3,
                            .reset_digest = begun->items[0].state_digest,
                            .state_digest = digest};
    tg_restore_batch batch = {&item, 1};
    tg_restore_reply *back = ask(&w, TG_MSG_RESTORE, &batch, TG_MSG_RESTORE_REPLY, &head);
    REQUIRE(back && back->n == 1 && back->items[0].code == TG_CODE_OK);
    CHECK_EQ(back->items[0].stop, TG_STOP_EOS);
    tg_msg_free(back);
    tg_snapshot_reply *t = snapshot(&w, &second, 1, &head);
    REQUIRE(t && t->n == 1);
    check_over(&t->items[0], begun->items, digest);
    tg_msg_free(t);
    batch.items = &(tg_restore_item){.slot = 11, .episode = 2, .split = TG_SPLIT_VAL};
    back = ask(&w, TG_MSG_RESTORE, &batch, TG_MSG_RESTORE_REPLY, &head);
    REQUIRE(back && back->n == 1 && back->items[0].code != TG_CODE_OK);
    tg_msg_free(back);
    t = snapshot(&w, &second, 1, &head); /* it is not the old one that is there */
    REQUIRE(t && t->n == 1);
    CHECK(!t->items[0].live && t->items[0].n_tokens == 0);
    tg_msg_free(t);
    tg_msg_free(s);
    tg_msg_free(r);
    tg_msg_free(begun);
    finish(&w, false);
}

/* Each number asked for is answered, in as many messages as it takes. */
TEST(what_slots_hold_is_told_in_parts) {
    enum { ASKED = 2500 };
    static uint32_t slots[ASKED];
    world w;
    tg_frame head;
    if (!start(&w, TG_FAKE_NONE, 2)) return;
    tg_msg_free(reset(&w, 11));
    for (uint32_t i = 0; i < ASKED; i++) slots[i] = i;
    size_t n = 0, parts = 0;
    tg_snapshot_reply *s = snapshot(&w, slots, ASKED, &head);
    for (; s; s = raw_peer_receive(&w.client, &head, WAIT_MS)) {
        REQUIRE(head.type == TG_MSG_SNAPSHOT_REPLY);
        for (size_t i = 0; i < s->n; i++, n++)
            if (s->items[i].slot != n || s->items[i].live != (n == 11))
                tg_check(false, __FILE__, __LINE__, "item %zu: slot %u", n, s->items[i].slot);
        parts++;
        tg_msg_free(s);
        if (!(head.flags & TG_FRAME_MORE)) break;
    }
    CHECK_EQ(n, ASKED);
    CHECK_EQ(parts, 3);
    finish(&w, false);
}

/* The worker dies, and the next one comes to another state with the same tokens. */
TEST(an_episode_that_was_aborted_is_begun_anew) {
    world w;
    tg_frame head;
    uint32_t slot = 10;
    if (!start(&w, TG_FAKE_DIE, 1)) return;
    tg_msg_free(reset(&w, slot));
    tg_msg_free(step(&w, slot, 0, tokens, 1));
    tg_fake_worker *next =
        tg_fake_start(&(tg_fake_opts){.address = w.back, .fault = TG_FAKE_LIE_LATER});
    tg_step_reply *r = step(&w, slot, 1, tokens + 1, 1);
    REQUIRE(r && r->n == 1);
    CHECK_EQ(r->items[0].code, TG_CODE_EPISODE_ABORTED);
    tg_msg_free(r);
    tg_snapshot_reply *s = snapshot(&w, &slot, 1, &head);
    CHECK(s && s->n == 1 && !s->items[0].live);
    tg_msg_free(s);
    tg_msg_free(reset(&w, slot));
    r = step(&w, slot, 0, tokens, 1);
    REQUIRE(r && r->n == 1);
    CHECK_EQ(r->items[0].code, TG_CODE_OK);
    tg_msg_free(r);
    finish(&w, false);
    tg_fake_stop(&next, true);
}

/* The worker never answers: without Cancel or CloseSlots the broker would wait for it until drain_ms. */
static void drain_with_a_call_under_way(tg_msg_type type) {
    world w;
    tg_frame head;
    uint32_t slot = 10;
    if (!start(&w, TG_FAKE_MUTE, 1)) return;
    tg_msg_free(reset(&w, slot));
    tg_step_item item = {slot, 1, 0, tokens, 1};
    tg_step_batch batch = {.items = &item, .n = 1};
    raw_peer_send(&w.client, TG_MSG_STEP, w.client.session, &batch);
    while (tg_fake_steps(w.worker) < 1) usleep(1000);
    uint64_t begin = tg_clock_ms();
    kill(getpid(), SIGTERM);
    for (bool draining = false; !draining;) { /* a new episode is refused once it drains */
        tg_reset_reply *r = reset(&w, slot);
        draining = !r;
        tg_msg_free(r);
    }
    raw_peer_send(&w.client, type, w.client.session, &(tg_slot_list){&slot, 1});
    tg_step_reply *r = raw_peer_receive(&w.client, &head, WAIT_MS);
    CHECK(r && head.type == TG_MSG_STEP_REPLY && r->n == 1 &&
          r->items[0].code == TG_CODE_FAILED_STATE);
    tg_msg_free(r);
    finish(&w, true);
    CHECK(tg_clock_ms() - begin < DRAIN_MS / 2);
}

TEST(a_call_can_be_given_up_while_the_broker_drains) {
    drain_with_a_call_under_way(TG_MSG_CANCEL);
    drain_with_a_call_under_way(TG_MSG_CLOSE_SLOTS);
}

TEST_MAIN
