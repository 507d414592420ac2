/* Collecting rollouts from workers that answer late, early and in any order: the rollout is always the same. */
#include "tests/support/collect_case.h"

TEST(late_and_shuffled_answers_do_not_change_a_rollout) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    tg_buf first = {0};
    for (uint64_t mood = 0; mood < 12; mood++) {
        tg_pool pool = {.spec = {.capacity = mood % 3 == 0 ? 5 : 64},
                        .mood = tg_rng_at(mood, TG_RNG_TEST, 0, 0)};
        tg_buf log = {0};
        tg_collect_info info;
        CHECK_OK(collect_with(&f, &pool, 0, 50, 3, &log, &info, NULL, &err));
        if (mood == 0)
            first = log;
        else
            CHECK_STR(log.data, first.data);
        if (mood) tg_buf_fini(&log);
    }
    CHECK(first.len > 200);
    tg_buf_fini(&first);
    teardown(&f);
}

TEST(not_many_more_tokens_are_generated_than_wanted) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    tg_pool pool = {.spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0)};
    tg_buf log = {0};
    tg_collect_info info = {0};
    CHECK_OK(collect_with(&f, &pool, 0, 300, 1, &log, &info, NULL, &err));
    CHECK(info.tokens >= 300 && info.tokens < 300 + 5 * MAX_NEW);
    CHECK_EQ(info.failed, 0);
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(a_failed_reward_is_left_out_and_replaced) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    tg_buf first = {0};
    for (uint64_t mood = 0; mood < 4; mood++) {
        tg_pool pool = {
            .spec = {.capacity = 64}, .mood = tg_rng_at(mood, TG_RNG_TEST, 0, 0), .fail_every = 4};
        tg_buf log = {0};
        tg_collect_info info = {0};
        CHECK_OK(collect_with(&f, &pool, 0.5, 60, 2, &log, &info, NULL, &err));
        CHECK(info.failed > 0);
        REQUIRE(log.data != NULL);
        CHECK(strstr(log.data, "\n4 ") == NULL && strstr(log.data, "\n5 ") != NULL);
        if (mood == 0)
            first = log;
        else
            CHECK_STR(log.data, first.data);
        if (mood) tg_buf_fini(&log);
    }
    tg_buf_fini(&first);
    teardown(&f);
}

TEST(too_many_failed_rewards_end_the_run_with_the_reason) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_pool pool = {
        .spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0), .fail_every = 2};
    tg_buf log = {0};
    tg_collect_info info;
    CHECK_EQ(collect_with(&f, &pool, 0.1, 60, 1, &log, &info, NULL, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "max_failed_rewards") && strstr(err.msg, "model server is down"));
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(a_failed_reward_may_end_the_run) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_pool pool = {.spec = {.capacity = 64},
                    .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0),
                    .fail_every = 7,
                    .abort_on_failure = true};
    tg_buf log = {0};
    tg_collect_info info;
    CHECK_EQ(collect_with(&f, &pool, 1, 60, 1, &log, &info, NULL, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "on_reward_failure") && strstr(err.msg, "model server is down"));
    tg_buf_fini(&log);
    teardown(&f);
}

static void must_not_die(int code) {
    (void)code;
    CHECK(false);
}

TEST(a_stop_leaves_the_episode_counter_where_it_was) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_halt *halt = NULL;
    REQUIRE_OK(tg_halt_create(&halt, -1, must_not_die, &err));
    CHECK(!tg_halt_requested(halt));
    tg_halt_request(halt, "a test");
    CHECK_STR(tg_halt_reason(halt), "a test");
    tg_pool pool = {.spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0)};
    tg_buf log = {0};
    tg_collect_info info;
    CHECK_EQ(collect_with(&f, &pool, 0.1, 60, 1, &log, &info, halt, &err), TG_INTERRUPTED);
    tg_halt_destroy(&halt);
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(nothing_leaks_when_memory_runs_out) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    bool done = false;
    for (int n = 0; n < 2000 && !done; n += 7) {
        tg_pool pool = {.spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0)};
        tg_buf log = {0};
        tg_collect_info info;
        tg_alloc_fail_after(n);
        tg_status st = collect_with(&f, &pool, 0, 30, 1, &log, &info, NULL, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        done = st == TG_OK && !log.failed;
        tg_buf_fini(&log);
    }
    CHECK(done);
    teardown(&f);
}

TEST_MAIN
