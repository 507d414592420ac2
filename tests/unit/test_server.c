/* The server in a thread of this program, with rewards that are slow, so that the job pool and the
 * deferred replies are at work; and the job pool alone. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "env-server/server/jobs.h"
#include "env-server/server/server.h"
#include "proto/codec.h"
#include "tests/support/env_client.h"
#include "tests/support/server_case.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* ---- job pool ------------------------------------------------------------------------------ */

typedef struct count_job {
    tg_job job;
    atomic_int *ran;
    int *done;
    pthread_t loop_thread;
    bool on_loop;
} count_job;

static void count_run(tg_job *job) {
    count_job *j = (count_job *)job;
    j->on_loop = pthread_equal(pthread_self(), j->loop_thread);
    usleep(200);
    atomic_fetch_add(j->ran, 1);
}
static void count_done(tg_job *job) {
    count_job *j = (count_job *)job;
    CHECK(!j->on_loop);
    CHECK(pthread_equal(pthread_self(), j->loop_thread));
    ++*j->done;
}

TEST(jobs_run_off_the_loop_and_come_back) {
    enum { N = 200 };
    uv_loop_t loop;
    tg_jobs *jobs;
    tg_error err = {0};
    atomic_int ran = 0;
    int done = 0;
    count_job *all = tg_alloc_array(N, sizeof *all);
    uv_loop_init(&loop);
    REQUIRE_OK(tg_jobs_create(&jobs, &loop, 3, N, &err));
    for (int i = 0; i < N; i++) {
        all[i] = (count_job){.job = {.run = count_run, .done = count_done},
                             .ran = &ran,
                             .done = &done,
                             .loop_thread = pthread_self()};
        CHECK(tg_jobs_submit(jobs, &all[i].job));
    }
    CHECK_EQ(tg_jobs_in_flight(jobs), N);
    while (done < N / 2) uv_run(&loop, UV_RUN_ONCE);
    CHECK_EQ(tg_jobs_stop(&jobs, 20000), 0); /* waits for the rest */
    CHECK_EQ(done, N);
    CHECK_EQ(atomic_load(&ran), N);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&loop), 0);
    tg_free(all);
}

TEST(the_job_queue_is_bounded) {
    uv_loop_t loop;
    tg_jobs *jobs;
    tg_error err = {0};
    atomic_int ran = 0;
    int done = 0, taken = 0;
    count_job all[50];
    uv_loop_init(&loop);
    REQUIRE_OK(tg_jobs_create(&jobs, &loop, 1, 4, &err));
    for (int i = 0; i < 50; i++) {
        all[i] = (count_job){.job = {.run = count_run, .done = count_done},
                             .ran = &ran,
                             .done = &done,
                             .loop_thread = pthread_self()};
        taken += tg_jobs_submit(jobs, &all[i].job);
    }
    CHECK(taken >= 4 && taken < 50);
    CHECK_EQ(tg_jobs_stop(&jobs, 20000), 0);
    CHECK_EQ(done, taken);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

typedef struct stuck_job {
    tg_job job;
    atomic_int go, running;
} stuck_job;

static void stuck_run(tg_job *job) {
    stuck_job *j = (stuck_job *)job;
    atomic_store(&j->running, 1);
    while (!atomic_load(&j->go)) usleep(1000);
    atomic_store(&j->running, 0);
}

static void never_done(tg_job *job) {
    (void)job;
    CHECK(false);
}

/* A job that does not return holds up nobody for longer than asked; when it returns after all, nothing is called any more. */
TEST(jobs_that_never_return_are_given_up) {
    uv_loop_t loop;
    tg_jobs *jobs;
    tg_error err = {0};
    static stuck_job stuck, behind;    /* behind: never begun */
    static tg_jobs *volatile given_up; /* never freed: a thread may still use them */
    atomic_int ran = 0;
    int done = 0;
    count_job quick = {.job = {.run = count_run, .done = count_done},
                       .ran = &ran,
                       .done = &done,
                       .loop_thread = pthread_self()};
    stuck.job = behind.job = (tg_job){.run = stuck_run, .done = never_done};
    uv_loop_init(&loop);
    REQUIRE_OK(tg_jobs_create(&jobs, &loop, 1, 10, &err));
    CHECK(tg_jobs_submit(jobs, &quick.job));
    CHECK(tg_jobs_submit(jobs, &stuck.job));
    CHECK(tg_jobs_submit(jobs, &behind.job));
    while (!atomic_load(&stuck.running)) usleep(1000);
    given_up = jobs;
    CHECK_EQ(tg_jobs_stop(&jobs, 50), 2);
    CHECK(jobs == NULL && given_up);
    CHECK_EQ(done, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_EQ(uv_loop_close(&loop), 0);
    atomic_store(&stuck.go, 1);
    while (atomic_load(&stuck.running)) usleep(1000);
    usleep(50000);
    CHECK(!atomic_load(&behind.running));
}

/* ---- server -------------------------------------------------------------------------------- */

TEST(slow_rewards_do_not_stop_the_loop) {
    server_case f;
    env_client c, other;
    if (!server_case_start(&f, "slow")) return;
    REQUIRE(env_client_open(&c, f.address, false) && env_client_open(&other, f.address, false));
    REQUIRE(env_client_open_slots(&c, 3));
    server_case_reset(&c, 3);
    int32_t tokens[] = {1, 2, 3, 4};
    tg_step_item items[] = {
        {10, 1, 0, tokens, 2}, {11, 1, 0, tokens, 4}, {12, 1, 9, tokens, 1}, {99, 1, 0, tokens, 1}};
    tg_step_batch batch = {.items = items, .n = 4};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    while (atomic_load(&scoring) < 2) usleep(1000);
    uint64_t step_seq = c.seq;

    /* While the rewards wait, the same slots are busy, and everybody else is served. */
    tg_step_reply *busy = env_client_step(&c, items, 1);
    CHECK(busy && busy->items[0].code == TG_CODE_OVERLOADED);
    tg_msg_free(busy);
    tg_sample_range range = {TG_SPLIT_TEST, 0, 2};
    tg_samples *samples = env_client_ask(&other, TG_MSG_SAMPLE_RANGE, &range, TG_MSG_SAMPLES);
    CHECK(samples && samples->n == 2);
    tg_msg_free(samples);

    c.seq = step_seq, c.waiting = c.whole = true;
    atomic_store(&gate_open, 1);
    tg_step_reply *r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 4);
    CHECK(r->items[0].code == TG_CODE_OK && r->items[0].n_applied == 2);
    CHECK_NEAR(r->items[0].rewards[1], 2, 0);
    CHECK(r->items[1].truncated && r->items[1].n_applied == 4);
    CHECK_EQ(r->items[2].code, TG_CODE_GAP);
    CHECK_EQ(r->items[3].code, TG_CODE_NOT_FOUND);
    tg_msg_free(r);
    r = env_client_step(&c, items, 1);
    CHECK(r && r->items[0].replayed);
    tg_msg_free(r);
    env_client_close(&c);
    env_client_close(&other);
    server_case_finish(&f);
}

TEST(a_client_may_go_while_its_rewards_are_computed) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "gone")) return;
    REQUIRE(env_client_open(&c, f.address, false) && env_client_open_slots(&c, 2));
    server_case_reset(&c, 2);
    int32_t token = 1;
    tg_step_item items[] = {{10, 1, 0, &token, 1}, {11, 1, 0, &token, 1}};
    tg_step_batch batch = {.items = items, .n = 2};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    while (atomic_load(&scoring) < 2) usleep(1000);
    env_client_close(&c);
    REQUIRE(env_client_open(&c, f.address, false));
    atomic_store(&gate_open, 1);
    CHECK(env_client_open_slots(&c, 8)); /* its slots were given back */
    uint32_t ninth = 99;
    tg_slot_list more = {&ninth, 1};
    CHECK(!env_client_ask(&c, TG_MSG_OPEN_SLOTS, &more, TG_MSG_SLOTS_OPENED));
    CHECK_EQ(c.error, TG_CODE_OVERLOADED);
    env_client_close(&c);
    server_case_finish(&f);
}

TEST(one_slow_reward_does_not_hold_up_the_others) {
    server_case f;
    env_client c;
    if (!server_case_start(&f, "apart")) return;
    REQUIRE(env_client_open(&c, f.address, false) && env_client_open_slots(&c, 2));
    server_case_reset(&c, 2);
    int32_t tokens[] = {1, 2};
    tg_step_item items[] = {{10, 1, 0, tokens, 2}, {11, 1, 0, tokens, 1}};
    tg_step_batch batch = {.items = items, .n = 2};
    atomic_store(&gate_open, 2);
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    uint64_t step_seq = c.seq;
    tg_step_reply *r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 1);
    CHECK(r->items[0].slot == 11 && r->items[0].code == TG_CODE_OK);
    CHECK(c.reply_head.flags & TG_FRAME_MORE);
    tg_msg_free(r);
    tg_reset_item again = {.slot = 11, .episode = 2, .split = TG_SPLIT_TRAIN};
    tg_reset_reply *reset = env_client_reset(&c, &again, 1); /* it goes on while the other waits */
    CHECK(reset && reset->items[0].code == TG_CODE_OK);
    tg_msg_free(reset);
    tg_step_item next = {11, 2, 0, tokens, 1};
    r = env_client_step(&c, &next, 1);
    CHECK(r && r->n == 1 && r->items[0].code == TG_CODE_OK);
    tg_msg_free(r);
    c.seq = step_seq, c.waiting = true;
    atomic_store(&gate_open, 1);
    r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    REQUIRE(r && r->n == 1);
    CHECK(r->items[0].slot == 10 && r->items[0].code == TG_CODE_OK && r->items[0].n_applied == 2);
    CHECK(!(c.reply_head.flags & TG_FRAME_MORE));
    tg_msg_free(r);
    env_client_close(&c);
    server_case_finish(&f);
}

static void *open_gate(void *arg) {
    (void)arg;
    usleep(200000);
    atomic_store(&gate_open, 1);
    return NULL;
}

TEST(a_drain_finishes_what_is_in_hand) {
    server_case f;
    env_client c;
    pthread_t opener;
    if (!server_case_start(&f, "drain")) return;
    REQUIRE(env_client_open(&c, f.address, false) && env_client_open_slots(&c, 1));
    server_case_reset(&c, 1);
    int32_t token = 1;
    tg_step_item item = {10, 1, 0, &token, 1};
    tg_step_batch batch = {.items = &item, .n = 1};
    REQUIRE(env_client_send(&c, TG_MSG_STEP, &batch));
    while (atomic_load(&scoring) < 1) usleep(1000);
    kill(getpid(), SIGTERM);
    pthread_create(&opener, NULL, open_gate, NULL);
    tg_step_reply *r = env_client_receive(&c, TG_MSG_STEP_REPLY);
    CHECK(r && r->items[0].code == TG_CODE_OK);
    tg_msg_free(r);
    CHECK(env_client_wait_closed(&c));
    pthread_join(opener, NULL);
    pthread_join(f.thread, NULL);
    CHECK_EQ(f.status, TG_OK);
    env_client_close(&c);
    tg_env_close(&f.env);
    tg_run_config_fini(&f.config);
}

TEST_MAIN
