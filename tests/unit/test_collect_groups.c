/* Groups of samples of one prompt, and rewards that rank the samples of a group. */
#include "tests/support/collect_case.h"

/* One line of the log: episode, flags, then tokens and rewards. */
TEST(a_group_has_one_prompt_and_its_samples_do_not_depend_on_grouping) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_buf first = {0};
    for (uint64_t mood = 0; mood < 8; mood++) {
        tg_pool pool = {.spec = {.capacity = mood % 3 == 0 ? 4 : 64},
                        .mood = tg_rng_at(mood, TG_RNG_TEST, 0, 0),
                        .group = 4};
        tg_buf log = {0};
        tg_collect_info info = {0};
        CHECK_OK(collect_with(&f, &pool, 0, 80, 3, &log, &info, NULL, &err));
        CHECK_EQ(info.episodes % 4, 0);
        if (mood == 0)
            first = log;
        else
            CHECK_STR(log.data, first.data);
        if (mood) tg_buf_fini(&log);
    }
    REQUIRE(first.data);
    /* Episode 4's prompt is that of sample 4, and so is that of 5, 6 and 7: one token, 1 + 28 % 12 = 5. */
    for (int e = 4; e < 8; e++) {
        char line[32];
        snprintf(line, sizeof line, "\n%d ", e);
        const char *at = strstr(first.data, line);
        REQUIRE(at);
        at = strchr(at + 1, ':');
        CHECK(!strncmp(at, ": 5 ", 4));
    }
    tg_buf_fini(&first);
    teardown(&f);
}

static tg_status ranked_run(fixture *f, tg_pool *pool, uint64_t mood, tg_buf *log,
                            tg_collect_info *info, tg_error *err) {
    pool->spec.capacity = 64;
    pool->mood = tg_rng_at(mood, TG_RNG_TEST, 0, 0);
    pool->ranks = true;
    return collect_with(f, pool, 0.9, 60, 2, log, info, NULL, err);
}

TEST(ranked_groups) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_buf first = {0};
    for (uint64_t mood = 0; mood < 6; mood++) {
        tg_pool pool = {.group = 3, .min_valid = 2};
        tg_buf log = {0};
        tg_collect_info info = {0};
        CHECK_OK(ranked_run(&f, &pool, mood, &log, &info, &err));
        CHECK(info.failed == 0 && info.dropped_groups == 0);
        CHECK(atomic_load(&pool.rankings) > 2);
        CHECK(!strstr(log.data, "nan"));
        if (mood == 0)
            first = log;
        else
            CHECK_STR(log.data, first.data);
        if (mood) tg_buf_fini(&log);
    }
    /* Every reward is a place: 0, 1 or 2. */
    for (char *at = first.data; at && *at; at = strchr(at, '\n') + 1) {
        char *end = strchr(at, '\n');
        CHECK(end[-2] == ' ' && end[-1] >= '0' && end[-1] <= '2');
    }
    tg_buf_fini(&first);
    teardown(&f);
}

TEST(members_without_a_reward_are_not_ranked) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_buf log = {0};
    tg_collect_info info = {0};
    tg_pool pool = {.group = 3, .min_valid = 2, .fail_every = 3}; /* the first of each group */
    CHECK_OK(ranked_run(&f, &pool, 1, &log, &info, &err));
    CHECK(info.failed > 0 && info.dropped_groups == 0);
    CHECK(!strstr(log.data, "\n3 ") && strstr(log.data, "\n4 ") && !strstr(log.data, "nan"));
    tg_buf_fini(&log);
    /* Now that leaves too few of them: the groups are dropped, and the run ends by its policy. */
    tg_pool strict = {.group = 3, .min_valid = 3, .fail_every = 3};
    CHECK_EQ(ranked_run(&f, &strict, 1, &log, &info, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "max_failed_rewards"));
    CHECK_EQ(atomic_load(&strict.rankings), 0);
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(rankings_that_fail) {
    fixture f;
    REQUIRE(setup(&f));
    for (int bad = 1; bad <= 3; bad++) {
        tg_error err = {0};
        tg_buf log = {0};
        tg_collect_info info = {0};
        tg_pool pool = {.group = 3, .min_valid = 2, .bad_ranking = bad};
        tg_status st = ranked_run(&f, &pool, 1, &log, &info, &err);
        if (bad == 2) {
            CHECK_EQ(st, TG_OK);
            CHECK(info.failed > 0 && info.dropped_groups == 0 && !strstr(log.data, "nan"));
        } else {
            CHECK_EQ(st, TG_UNAVAILABLE);
            CHECK(strstr(err.msg, bad == 1 ? "no opinion" : "no judge is there"));
        }
        tg_buf_fini(&log);
    }
    teardown(&f);
}

/* Nothing but the end is allowed: a second beam has no text. */
TEST(beams_that_find_too_few_texts) {
    static const int32_t all_but_eos[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    fixture f;
    REQUIRE(setup(&f));
    f.gen.num_beams = 2;
    f.gen.suppress = (tg_id_list){all_but_eos, VOCAB - 1};
    tg_error err = {0};
    tg_pool pool = {.spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0), .group = 2};
    tg_buf log = {0};
    tg_collect_info info = {0};
    CHECK_EQ(collect_with(&f, &pool, 0, 60, 1, &log, &info, NULL, &err), TG_DATA);
    CHECK(strstr(err.msg, "fewer texts") && strstr(err.msg, "compare_sample"));
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(more_samples_than_beams_are_refused) {
    fixture f;
    REQUIRE(setup(&f));
    f.gen.num_beams = 2;
    tg_error err = {0};
    tg_pool pool = {.spec = {.capacity = 64}, .mood = tg_rng_at(1, TG_RNG_TEST, 0, 0), .group = 3};
    tg_buf log = {0};
    tg_collect_info info = {0};
    CHECK_EQ(collect_with(&f, &pool, 0, 60, 1, &log, &info, NULL, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "compare_sample") && strstr(err.msg, "num_beams"));
    tg_buf_fini(&log);
    teardown(&f);
}

TEST(a_ranking_reward_needs_groups) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err = {0};
    tg_buf log = {0};
    tg_collect_info info = {0};
    tg_pool pool = {.group = 1, .min_valid = 2};
    CHECK_EQ(ranked_run(&f, &pool, 1, &log, &info, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "compare_sample"));
    f.gen.do_sample = false;
    tg_pool greedy = {.group = 3, .min_valid = 2};
    CHECK_EQ(ranked_run(&f, &greedy, 1, &log, &info, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "do_sample"));
    tg_buf_fini(&log);
    teardown(&f);
}

TEST_MAIN
