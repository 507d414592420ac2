/* The worker pool against workers that die, stall, make noise and come back: the transcript is that of a run in which nothing happened. */
#include "common/net/pool.h"
#include "proto/codec.h"
#include "tests/support/fake_worker.h"
#include "tests/support/pool_play.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <unistd.h>

/* Two workers, the first with a fault: the tg_transcript is that of an undisturbed run. */
static void survive(tg_fake_fault fault, int after, tg_pool_stats *st) {
    const tg_transcript *want = tg_play_reference();
    tg_transcript got;
    tg_play_address();
    tg_fake_opts opts = {.address = tg_play_at(), .fault = fault, .fault_after = after};
    if (fault == TG_FAKE_STALL) opts.heartbeat_ms = 60; /* noticed after 180 ms */
    tg_fake_worker *a = tg_fake_start(&opts);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
    tg_pool *pool = tg_play_open(2);
    REQUIRE(pool != NULL);
    tg_play(pool, 8, &got, NULL, NULL);
    CHECK(tg_play_same(want, &got));
    CHECK_EQ(got.aborted + got.deadline + got.other, 0);
    tg_pool_get_stats(pool, st);
    tg_pool_close(&pool);
    tg_fake_stop(&a, false);
    tg_fake_stop(&b, true);
}

TEST(a_worker_that_dies_is_replaced_without_a_trace) {
    tg_pool_stats st = {0};
    for (int after = 1; after < 40; after += 13) {
        survive(TG_FAKE_DIE, after, &st);
        CHECK_EQ(st.workers, 1);
        CHECK_EQ(st.workers_lost, 1);
        CHECK(st.episodes_rebuilt > 0);
    }
}

TEST(a_worker_that_stalls_is_replaced) {
    tg_pool_stats st = {0};
    survive(TG_FAKE_STALL, 10, &st);
    CHECK(st.workers_lost >= 1);
    CHECK(st.episodes_rebuilt > 0);
}

TEST(noise_is_survived) {
    tg_pool_stats st = {0};
    survive(TG_FAKE_GARBAGE, 0, &st);
    CHECK_EQ(st.workers, 2);
}

TEST(duplicate_and_old_replies_are_dropped) {
    tg_pool_stats st = {0};
    survive(TG_FAKE_DUPLICATE, 0, &st);
    CHECK(st.replies_dropped > 10);
}

TEST(overload_is_retried) {
    tg_pool_stats st = {0};
    survive(TG_FAKE_OVERLOAD, 0, &st);
}

/* The only worker dies again and again; a new one joins each time. */
typedef struct relay {
    tg_fake_worker *now;
    int restarts;
} relay;

static void restart(void *arg, int event) {
    relay *r = arg;
    if (event % 25 != 24 || r->restarts == 4) return;
    tg_fake_stop(&r->now, r->restarts % 2 == 0); /* with Bye and without */
    r->now = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
    r->restarts++;
}

TEST(a_restarted_worker_is_taken_in) {
    const tg_transcript *want = tg_play_reference();
    tg_transcript got;
    relay r = {.now = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()})};
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_play(pool, 6, &got, restart, &r);
    CHECK(tg_play_same(want, &got));
    CHECK_EQ(r.restarts, 4);
    tg_pool_stats st;
    tg_pool_get_stats(pool, &st);
    CHECK_EQ(st.workers_lost, 4);
    CHECK(st.episodes_rebuilt > 0);
    tg_pool_close(&pool);
    tg_fake_stop(&r.now, true);
}

TEST(a_metric_is_asked_again_when_its_worker_dies) {
    tg_error err;
    tg_fake_worker *a =
        tg_fake_start(&(tg_fake_opts){.address = tg_play_address(), .fault = TG_FAKE_DIE});
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
    int32_t token = 3;
    tg_generation g = {.tokens = &token, .n_tokens = 1};
    tg_metric_reply *m = NULL;
    CHECK_OK(tg_pool_metric(pool, &(tg_metric_request){.split = TG_SPLIT_VAL, .items = &g, .n = 1},
                            &m, 8000, &err));
    CHECK(m && m->n_values == 1);
    tg_msg_free(m);
    tg_pool_close(&pool);
    tg_fake_stop(&a, false);
    tg_fake_stop(&b, true);
}

TEST_MAIN
