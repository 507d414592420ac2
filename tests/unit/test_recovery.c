/* What a server does when calls are late, given up, repeated out of order, and when episodes come from a log. */
#include "proto/codec.h"
#include "tests/support/raw_peer.h"
#include "tests/support/server_case.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool open_client(server_case *f, env_client *c, uint32_t slots) {
    if (!env_client_open(c, f->address, false) || !env_client_open_slots(c, slots)) return false;
    server_case_reset(c, slots);
    return true;
}

static void wait_scoring(int n) {
    while (atomic_load(&scoring) < n) usleep(1000);
}

static tg_snapshot_reply *snapshot(env_client *c, uint32_t slot) {
    tg_slot_list list = {&slot, 1};
    return env_client_ask(c, TG_MSG_SNAPSHOT, &list, TG_MSG_SNAPSHOT_REPLY);
}

TEST(a_late_reward_is_answered_and_dropped) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "late")) return;
    REQUIRE(open_client(&f, &c, 2));
    int32_t tokens[] = {1, 2, 3};
    tg_step_item items[] = {{10, 1, 0, tokens, 2}, {11, 1, 0, tokens, 1}};
    tg_step_batch batch = {.items = items, .n = 2, .deadline_ms = 60};
    tg_step_reply *r = env_client_ask(&c, TG_MSG_STEP, &batch, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(r->items[i].code, TG_CODE_REWARD_TIMEOUT);
        CHECK_EQ(r->items[i].reward_status, TG_REWARD_TIMEOUT);
        CHECK(isnan(r->items[i].rewards[0]));
    }
    CHECK_EQ(r->items[0].n_applied, 2);
    uint64_t digest = r->items[0].state_digest;
    tg_msg_free(r);
    r = env_client_step(&c, items, 1); /* the same answer again */
    REQUIRE(r && r->n == 1);
    CHECK(r->items[0].replayed && r->items[0].code == TG_CODE_REWARD_TIMEOUT);
    CHECK_EQ(r->items[0].state_digest, digest);
    tg_msg_free(r);
    tg_snapshot_reply *s = snapshot(&c, 10);
    REQUIRE(s && s->n == 1 && s->items[0].live);
    CHECK_EQ(s->items[0].n_tokens, 2);
    CHECK_EQ(s->items[0].state_digest, digest);
    CHECK_EQ(s->items[0].reward_status, TG_REWARD_TIMEOUT);
    tg_restore_item back = {.slot = 11,
                            .episode = 5,
                            .seed = s->items[0].seed,
                            .split = s->items[0].split,
                            .sample = s->items[0].sample,
                            .tokens = s->items[0].tokens,
                            .rewards = s->items[0].rewards,
                            .n_tokens = 2,
                            .state_digest = digest};
    atomic_store(&gate_open, 1);
    while (atomic_load(&scoring)) usleep(1000); /* the late ones end, and change nothing */
    tg_step_item next = {10, 1, 2, tokens + 2, 1};
    tg_step_reply *n = env_client_step(&c, &next, 1);
    REQUIRE(n && n->n == 1);
    CHECK_EQ(n->items[0].code, TG_CODE_OK);
    CHECK_NEAR(n->items[0].rewards[0], 3, 0);
    tg_msg_free(n);
    /* The log with its NaN gives the digest again. */
    tg_reset_item reset = {.slot = 11,
                           .episode = 4,
                           .split = TG_SPLIT_TRAIN,
                           .has_sample = true,
                           .sample = back.sample};
    tg_reset_reply *fresh = env_client_reset(&c, &reset, 1);
    REQUIRE(fresh && fresh->n == 1);
    back.reset_digest = fresh->items[0].state_digest;
    tg_msg_free(fresh);
    tg_restore_batch all = {&back, 1};
    tg_restore_reply *rr = env_client_ask(&c, TG_MSG_RESTORE, &all, TG_MSG_RESTORE_REPLY);
    REQUIRE(rr && rr->n == 1);
    CHECK_EQ(rr->items[0].code, TG_CODE_OK);
    CHECK_EQ(rr->items[0].state_digest, digest);
    tg_msg_free(rr);
    tg_msg_free(s);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(a_late_question_is_answered) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "question")) return;
    REQUIRE(env_client_open(&c, f.address, false));
    tg_score_item item = {.id = 3, .prompt = "p", .completion = "c"};
    tg_score_request ask = {.fn = "slow", .items = &item, .n = 1, .deadline_ms = 50};
    CHECK(!env_client_ask(&c, TG_MSG_SCORE, &ask, TG_MSG_SCORE_REPLY));
    CHECK_EQ(c.error, TG_CODE_DEADLINE_EXCEEDED);
    atomic_store(&gate_open, 1);
    tg_score_reply *r = env_client_ask(&c, TG_MSG_SCORE, &ask, TG_MSG_SCORE_REPLY);
    CHECK(r && r->n == 1 && r->items[0].id == 3);
    tg_msg_free(r);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(a_call_can_be_cancelled) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "cancel")) return;
    REQUIRE(open_client(&f, &c, 2));
    int32_t token = 1;
    tg_step_item items[] = {{10, 1, 0, &token, 1}, {11, 1, 0, &token, 1}};
    tg_step_batch batch = {.items = items, .n = 2};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    wait_scoring(2);
    uint64_t step_seq = c.seq;
    uint32_t slot = 10;
    tg_slot_list list = {&slot, 1};
    REQUIRE(env_client_send(&c, TG_MSG_CANCEL, &list));
    c.seq = step_seq;
    tg_step_reply *r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 1); /* the other one follows */
    CHECK_EQ(r->items[0].slot, 10);
    CHECK_EQ(r->items[0].code, TG_CODE_FAILED_STATE);
    CHECK_STR(r->items[0].message, "cancelled");
    CHECK(c.reply_head.flags & TG_FRAME_MORE);
    tg_msg_free(r);
    c.waiting = true;
    atomic_store(&gate_open, 1);
    r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 1);
    CHECK(r->items[0].slot == 11 && r->items[0].code == TG_CODE_OK);
    CHECK(!(c.reply_head.flags & TG_FRAME_MORE));
    tg_msg_free(r);
    c.seq = step_seq + 2;
    r = env_client_step(&c, items, 1);
    CHECK(r && r->items[0].code == TG_CODE_FAILED_STATE); /* the episode is over */
    tg_msg_free(r);
    server_case_reset(&c, 1);
    r = env_client_step(&c, items, 1);
    CHECK(r && r->items[0].code == TG_CODE_OK);
    tg_msg_free(r);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(a_reset_gives_up_the_step_of_another_episode_only) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "reset")) return;
    REQUIRE(open_client(&f, &c, 1));
    int32_t token = 1;
    tg_step_item item = {10, 1, 0, &token, 1};
    tg_step_batch batch = {.items = &item, .n = 1};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    wait_scoring(1);
    uint64_t step_seq = c.seq;
    server_case_reset(&c, 1); /* a copy of the reset: the same answer, the step goes on */
    tg_reset_item late = {.slot = 10, .episode = 9, .split = TG_SPLIT_TRAIN};
    uint64_t now = c.seq;
    c.seq = 1; /* sent long ago */
    tg_reset_reply *r = env_client_reset(&c, &late, 1);
    CHECK(r && r->items[0].code == TG_CODE_STALE);
    tg_msg_free(r);
    c.seq = now + 1;
    tg_reset_batch other = {&late, 1, false};
    REQUIRE(env_client_send(&c, TG_MSG_RESET, &other));
    uint64_t reset_seq = c.seq;
    c.seq = step_seq;
    tg_step_reply *s = env_client_receive(&c, TG_MSG_STEP_REPLY);
    CHECK(s && s->items[0].code == TG_CODE_FAILED_STATE);
    tg_msg_free(s);
    c.seq = reset_seq;
    late.episode = 9;
    r = env_client_reset(&c, &late, 1);
    CHECK(r && r->items[0].code == TG_CODE_OK);
    tg_msg_free(r);
    atomic_store(&gate_open, 1);
    item.episode = 9;
    s = env_client_step(&c, &item, 1);
    CHECK(s && s->items[0].code == TG_CODE_OK);
    tg_msg_free(s);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(slots_with_a_call_can_be_closed) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "close")) return;
    REQUIRE(open_client(&f, &c, 8));
    int32_t token = 1;
    tg_step_item item = {10, 1, 0, &token, 1};
    tg_step_batch batch = {.items = &item, .n = 1};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    wait_scoring(1);
    uint64_t step_seq = c.seq;
    uint32_t slots[] = {10, 11, 12, 13, 14, 15, 16, 17};
    tg_slot_list list = {slots, 8};
    REQUIRE(env_client_send(&c, TG_MSG_CLOSE_SLOTS, &list));
    uint64_t now = c.seq;
    c.seq = step_seq;
    tg_step_reply *s = env_client_receive(&c, TG_MSG_STEP_REPLY);
    CHECK(s && s->items[0].code == TG_CODE_FAILED_STATE);
    tg_msg_free(s);
    c.seq = now;
    CHECK(env_client_open_slots(&c, 8)); /* there is room for them again */
    env_client_close(&c);
    server_case_finish(&f);
}

/* Steps slot 10 by one token each and notes what came back. */
typedef struct noted {
    int32_t tokens[4];
    double rewards[4];
    uint64_t reset_digest, digest, sample;
    uint32_t n;
} noted;

static bool step_on(env_client *c, uint32_t slot, uint64_t episode, noted *log, int32_t token) {
    tg_step_item item = {slot, episode, log->n, &token, 1};
    tg_step_reply *r = env_client_step(c, &item, 1);
    bool ok = r && r->n == 1 && r->items[0].code == TG_CODE_OK;
    if (ok) {
        log->tokens[log->n] = token;
        log->rewards[log->n++] = r->items[0].rewards[0];
        log->digest = r->items[0].state_digest;
    }
    tg_msg_free(r);
    return ok;
}

static tg_code restore(env_client *c, uint32_t slot, const noted *log, uint64_t *digest) {
    tg_restore_item item = {.slot = slot,
                            .episode = 1,
                            .sample = log->sample,
                            .split = TG_SPLIT_TRAIN,
                            .tokens = log->tokens,
                            .rewards = log->rewards,
                            .n_tokens = log->n,
                            .reset_digest = log->reset_digest,
                            .state_digest = log->digest};
    tg_restore_batch batch = {&item, 1};
    tg_restore_reply *r = env_client_ask(c, TG_MSG_RESTORE, &batch, TG_MSG_RESTORE_REPLY);
    tg_code code = r && r->n == 1 ? r->items[0].code : TG_CODE_INTERNAL;
    if (r && r->n == 1) *digest = r->items[0].state_digest;
    tg_msg_free(r);
    return code;
}

TEST(episodes_are_rebuilt_without_a_second_call_of_their_rewards) {
    server_case f;
    env_client c;
    if (!server_case_start_varying(&f, "restore")) return;
    CHECK(!f.env->spec.deterministic);
    atomic_store(&gate_open, 1);
    REQUIRE(open_client(&f, &c, 3));
    tg_snapshot_reply *s = snapshot(&c, 10);
    REQUIRE(s && s->n == 1);
    noted log = {.reset_digest = s->items[0].state_digest, .sample = s->items[0].sample};
    CHECK(s->items[0].live && s->items[0].n_tokens == 0 && s->items[0].n_prompt > 0);
    tg_msg_free(s);
    CHECK(step_on(&c, 10, 1, &log, 1) && step_on(&c, 10, 1, &log, 2) &&
          step_on(&c, 10, 1, &log, 3));
    int calls = atomic_load(&scored);
    uint64_t digest = 0;
    CHECK_EQ(restore(&c, 11, &log, &digest), TG_CODE_OK);
    CHECK_EQ(digest, log.digest);
    CHECK_EQ(atomic_load(&scored), calls);
    s = snapshot(&c, 11);
    REQUIRE(s && s->n == 1);
    CHECK_EQ(s->items[0].n_tokens, 3);
    CHECK(!memcmp(s->items[0].rewards, log.rewards, sizeof(double) * 3));
    tg_msg_free(s);
    noted more = log;
    CHECK(step_on(&c, 11, 1, &more, 4)); /* it goes on */
    CHECK_EQ(more.n, 4);
    CHECK_EQ(restore(&c, 12, &more, &digest), TG_CODE_OK); /* one that has ended, too */
    s = snapshot(&c, 12);
    CHECK(s && s->items[0].truncated && s->items[0].stop == TG_STOP_LENGTH);
    tg_msg_free(s);

    noted wrong = log;
    wrong.rewards[1] += 1e-9;
    CHECK_EQ(restore(&c, 12, &wrong, &digest), TG_CODE_EPISODE_ABORTED);
    s = snapshot(&c, 12);
    CHECK(s && !s->items[0].live);
    tg_msg_free(s);
    wrong = log, wrong.digest++;
    CHECK_EQ(restore(&c, 12, &wrong, &digest), TG_CODE_EPISODE_ABORTED);
    wrong = log, wrong.reset_digest++;
    CHECK_EQ(restore(&c, 12, &wrong, &digest), TG_CODE_EPISODE_ABORTED);
    wrong = log, wrong.sample = 1 << 20;
    CHECK_EQ(restore(&c, 12, &wrong, &digest), TG_CODE_INVALID_ARGUMENT);
    wrong = log, wrong.tokens[0] = 1 << 30;
    CHECK_EQ(restore(&c, 12, &wrong, &digest), TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(restore(&c, 77, &log, &digest), TG_CODE_NOT_FOUND);
    server_case_reset(&c, 3); /* the slot works */
    env_client_close(&c);
    server_case_finish(&f);
}

/* The answer to the last step of a log, whichever way it was cut into steps; nothing is scored again. */
/* Prompts of many episodes that are put back at once are more than one message should have. */
TEST(many_episodes_are_put_back_in_parts) {
    enum { TOKENS = 60000, SLOTS = 24 };
    server_case f;
    raw_peer p;
    tg_frame head = {0};
    uint32_t slots[SLOTS];
    tg_restore_item items[SLOTS] = {0};
    bool seen[SLOTS] = {0};
    if (!server_case_start_long(&f, "parts", TOKENS, SLOTS)) return;
    while (access(f.address + strlen("ipc://"), F_OK)) usleep(1000);
    REQUIRE(raw_peer_open(&p, f.address, NULL, NULL));
    REQUIRE(raw_peer_hello(&p, TG_ROLE_CLIENT, NULL) == TG_CODE_OK);
    for (uint32_t i = 0; i < SLOTS; i++) slots[i] = i;
    raw_peer_send(&p, TG_MSG_OPEN_SLOTS, p.session, &(tg_slot_list){slots, SLOTS});
    tg_msg_free(raw_peer_receive(&p, &head, 10000));
    tg_reset_item item = {.slot = 0, .episode = 1, .split = TG_SPLIT_TRAIN};
    raw_peer_send(&p, TG_MSG_RESET, p.session, &(tg_reset_batch){&item, 1, false});
    tg_reset_reply *begun = raw_peer_receive(&p, &head, 10000);
    REQUIRE(begun && head.type == TG_MSG_RESET_REPLY && begun->items[0].n_prompt == TOKENS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        items[i] = (tg_restore_item){.slot = i, .episode = 2, .split = TG_SPLIT_TRAIN};
        items[i].reset_digest = items[i].state_digest = begun->items[0].state_digest;
    }
    raw_peer_send(&p, TG_MSG_RESTORE, p.session, &(tg_restore_batch){items, SLOTS});
    size_t parts = 0, n = 0;
    do {
        tg_restore_reply *r = raw_peer_receive(&p, &head, 10000);
        REQUIRE(r && head.type == TG_MSG_RESTORE_REPLY);
        for (size_t i = 0; i < r->n; i++, n++) {
            const tg_restore_result *x = &r->items[i];
            CHECK(x->code == TG_CODE_OK && x->slot < SLOTS && !seen[x->slot]);
            CHECK_STR(x->sample_id, "train_0");
            CHECK(x->n_prompt == TOKENS &&
                  !memcmp(x->prompt, begun->items[0].prompt, TOKENS * sizeof *x->prompt));
            seen[x->slot % SLOTS] = true;
        }
        parts++;
        tg_msg_free(r);
    } while (head.flags & TG_FRAME_MORE);
    CHECK_EQ(n, SLOTS);
    CHECK_EQ(parts, 2);
    tg_msg_free(begun);
    raw_peer_close(&p);
    server_case_finish(&f);
}

TEST(the_last_step_of_a_restored_episode_is_answered_again) {
    server_case f;
    env_client c;
    if (!server_case_start_varying(&f, "recall")) return;
    atomic_store(&gate_open, 1);
    REQUIRE(open_client(&f, &c, 3));
    tg_snapshot_reply *s = snapshot(&c, 10);
    REQUIRE(s && s->n == 1);
    noted log = {.reset_digest = s->items[0].state_digest, .sample = s->items[0].sample};
    tg_msg_free(s);
    CHECK(step_on(&c, 10, 1, &log, 1) && step_on(&c, 10, 1, &log, 2) &&
          step_on(&c, 10, 1, &log, 3));
    uint64_t digest = 0;
    CHECK_EQ(restore(&c, 11, &log, &digest), TG_CODE_OK);
    int calls = atomic_load(&scored);
    for (int round = 0; round < 2; round++) {
        for (uint32_t first = 0; first < 3; first++) {
            tg_step_item item = {11, 1, first, log.tokens + first, 3 - first};
            tg_step_reply *r = env_client_step(&c, &item, 1);
            REQUIRE(r && r->n == 1);
            const tg_step_result *x = &r->items[0];
            CHECK(x->code == TG_CODE_OK && x->replayed && x->n_applied == 3 - first);
            CHECK(x->reward_status == TG_REWARD_OK && x->state_digest == log.digest);
            CHECK(!memcmp(x->rewards, log.rewards + first, sizeof(double) * (3 - first)));
            tg_msg_free(r);
        }
    }
    int32_t other[] = {2, 4}, longer[] = {3, 4};
    tg_step_item wrong[] = {
        {11, 1, 1, other, 2},      /* other tokens */
        {11, 1, 1, log.tokens, 1}, /* older than the last */
        {11, 1, 2, longer, 2},     /* more than was applied, of an episode that goes on */
        {11, 2, 2, log.tokens, 1}, /* another episode */
    };
    for (size_t i = 0; i < 4; i++) {
        tg_step_reply *r = env_client_step(&c, &wrong[i], 1);
        CHECK(r && r->n == 1 && r->items[0].code == (i == 2 ? TG_CODE_CONFLICT : TG_CODE_STALE));
        tg_msg_free(r);
    }
    CHECK_EQ(atomic_load(&scored), calls);
    noted more = log;
    CHECK(step_on(&c, 11, 1, &more, 4)); /* it goes on and ends; then its own last step counts */
    tg_step_item again = {11, 1, 2, log.tokens + 2, 1};
    tg_step_reply *r = env_client_step(&c, &again, 1);
    CHECK(r && r->items[0].code == TG_CODE_STALE);
    tg_msg_free(r);
    /* an ended one: the last run was longer than what was applied of it */
    CHECK_EQ(restore(&c, 12, &more, &digest), TG_CODE_OK);
    int32_t run[] = {3, 4, 5, 6};
    tg_step_item beyond = {12, 1, 2, run, 4};
    r = env_client_step(&c, &beyond, 1);
    REQUIRE(r && r->n == 1);
    CHECK(r->items[0].code == TG_CODE_OK && r->items[0].replayed && r->items[0].n_applied == 2);
    CHECK(r->items[0].truncated && r->items[0].stop == TG_STOP_LENGTH);
    tg_msg_free(r);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(a_leaving_worker_still_tells_what_it_holds) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "leaving")) return;
    REQUIRE(open_client(&f, &c, 2));
    int32_t token = 1;
    tg_step_item item = {10, 1, 0, &token, 1};
    tg_step_batch batch = {.items = &item, .n = 1};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    wait_scoring(1);
    uint64_t step_seq = c.seq;
    kill(getpid(), SIGTERM);
    tg_sample_range range = {TG_SPLIT_TRAIN, 0, 1};
    for (void *m; (m = env_client_ask(&c, TG_MSG_SAMPLE_RANGE, &range, TG_MSG_SAMPLES));)
        tg_msg_free(m); /* until the signal is there */
    CHECK_EQ(c.error, TG_CODE_DRAINING);
    tg_snapshot_reply *s = snapshot(&c, 10);
    CHECK(s && s->n == 1 && s->items[0].live && s->items[0].n_tokens == 0);
    tg_msg_free(s);
    c.seq = step_seq, c.waiting = true;
    atomic_store(&gate_open, 1);
    tg_step_reply *r = env_client_receive(&c, TG_MSG_STEP_REPLY); /* what was in hand is finished */
    CHECK(r && r->items[0].code == TG_CODE_OK);
    tg_msg_free(r);
    CHECK(env_client_wait_closed(&c));
    pthread_join(f.thread, NULL);
    CHECK_EQ(f.status, TG_OK);
    env_client_close(&c);
    tg_env_close(&f.env);
    tg_run_config_fini(&f.config);
}

TEST_MAIN
