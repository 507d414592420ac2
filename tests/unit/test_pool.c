/* The worker pool: what it does with workers that behave, and what it says when something cannot be repaired. The measure is a transcript
 * (tests/support/pool_play.h), which must not depend on the workers. */
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/pool.h"
#include "proto/codec.h"
#include "tests/support/fake_worker.h"
#include "tests/support/pool_play.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- normal --------------------------------------------------------------------------------- */

TEST(the_transcript_does_not_depend_on_workers_or_slots) {
    const tg_transcript *want = tg_play_reference();
    for (int workers = 1; workers <= 5; workers += 2) {
        tg_fake_worker *w[5] = {0};
        tg_play_address();
        for (int i = 0; i < workers; i++)
            w[i] = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
        tg_pool *pool = tg_play_open(workers);
        REQUIRE(pool != NULL);
        tg_transcript got;
        tg_play(pool, 7, &got, NULL, NULL);
        CHECK(tg_play_same(want, &got));
        tg_pool_stats st;
        tg_pool_get_stats(pool, &st);
        CHECK_EQ(st.workers, workers);
        CHECK_EQ(st.workers_lost, 0);
        CHECK_EQ(st.replies_dropped, 0);
        CHECK_EQ(tg_pool_spec(pool)->vocab_size, 100);
        tg_pool_close(&pool);
        for (int i = 0; i < workers; i++) {
            CHECK(tg_fake_steps(w[i]) > 0); /* slots were spread over all */
            tg_fake_stop(&w[i], true);
        }
    }
}

TEST(a_pool_can_connect_to_workers_that_listen) {
    const tg_transcript *want = tg_play_reference();
    tg_error err;
    char first[128], both[300];
    snprintf(first, sizeof first, "%s", tg_play_address());
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = first, .listen = true});
    tg_fake_worker *b =
        tg_fake_start(&(tg_fake_opts){.address = tg_play_address(), .listen = true});
    snprintf(both, sizeof both, "%s,%s", first, tg_play_at());
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.connect = both, .min_workers = 2, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    tg_transcript got;
    tg_play(pool, 4, &got, NULL, NULL);
    CHECK(tg_play_same(want, &got));
    tg_pool_close(&pool);
    tg_fake_stop(&a, true);
    tg_fake_stop(&b, true);
}

TEST(samples_metrics_and_scores_go_to_any_worker) {
    tg_error err;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()});
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_samples *s = NULL;
    REQUIRE_OK(tg_pool_samples(pool, TG_SPLIT_VAL, 5, 3, &s, &err));
    CHECK_EQ(s->n, 3);
    CHECK_EQ(s->items[2].index, 7);
    tg_msg_free(s);
    int32_t tokens[] = {1, 2, 3};
    tg_generation g = {.sample = 1, .tokens = tokens, .n_tokens = 3};
    tg_metric_reply *m = NULL;
    REQUIRE_OK(tg_pool_metric(
        pool, &(tg_metric_request){.split = TG_SPLIT_VAL, .items = &g, .n = 1}, &m, 0, &err));
    CHECK_EQ(m->n_values, 1);
    CHECK_NEAR(m->values[0].corpus, 3, 0);
    tg_msg_free(m);
    tg_score_reply *score = NULL; /* the fake worker does not know Score: the deadline ends it */
    CHECK_EQ(tg_pool_score(pool, &(tg_score_request){.fn = "x"}, &score, 100, &err), TG_TIMEOUT);
    CHECK(score == NULL && strstr(err.msg, "did not answer") != NULL);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
}

/* Says so when it was asked for the second time. */
static bool second_time(const void *arg) {
    return ++*(int *)(uintptr_t)arg >= 2;
}

TEST(a_question_can_be_stopped) {
    tg_error err;
    int asked = 0;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()});
    tg_pool_opts opts = {
        .bind = tg_play_at(), .open_timeout_ms = 10000, .stop = second_time, .stop_arg = &asked};
    tg_pool *pool = NULL;
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    tg_score_reply *score = NULL; /* the fake worker never answers it */
    const uint64_t from = tg_clock_ms();
    CHECK_EQ(tg_pool_score(pool, &(tg_score_request){.fn = "x"}, &score, 60000, &err),
             TG_INTERRUPTED);
    CHECK(score == NULL && tg_clock_ms() - from < 30000);
    tg_samples *s = NULL; /* nor does anything wait for one that was stopped */
    asked = -1000;
    REQUIRE_OK(tg_pool_samples(pool, TG_SPLIT_VAL, 5, 3, &s, &err));
    CHECK_EQ(s->n, 3);
    tg_msg_free(s);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
}

TEST(misuse_is_refused) {
    tg_error err;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()});
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_pool_event e;
    CHECK_EQ(tg_pool_wait(pool, &e, 0, &err), TG_TIMEOUT);
    CHECK_EQ(tg_pool_open_slots(pool, 0, &err), TG_USAGE);
    CHECK_OK(tg_pool_open_slots(pool, 2, &err));
    tg_reset_item resets[2] = {{.slot = 0, .episode = 1}, {.slot = 2, .episode = 2}};
    CHECK_EQ(tg_pool_reset(pool, resets, 2, &err), TG_USAGE);
    CHECK_EQ(tg_pool_pending(pool), 0); /* nothing of it was queued */
    CHECK_OK(tg_pool_reset(pool, resets, 1, &err));
    CHECK_EQ(tg_pool_reset(pool, resets, 1, &err), TG_USAGE);
    CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
    CHECK_EQ(tg_pool_step(pool, &(tg_step_item){.slot = 0, .episode = 1}, 1, &err), TG_USAGE);
    int32_t token = 5;
    CHECK_OK(tg_pool_step(
        pool, &(tg_step_item){.slot = 0, .episode = 99, .tokens = &token, .n_tokens = 1}, 1, &err));
    CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
    CHECK_EQ(e.step.code, TG_CODE_STALE); /* the worker's word passes through */
    CHECK_OK(tg_pool_open_slots(pool, 5, &err));
    CHECK_OK(tg_pool_open_slots(pool, 1, &err));
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
}

/* ---- what cannot be repaired is said -------------------------------------------------------- */

static void abort_with(tg_fake_fault lie) {
    tg_transcript got;
    tg_play_address();
    tg_fake_opts opts = {.address = tg_play_at(), .fault = TG_FAKE_DIE, .fault_after = 20};
    tg_fake_worker *a = tg_fake_start(&opts);
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at(), .fault = lie});
    tg_play(pool, 6, &got, NULL, NULL);
    CHECK(got.aborted > 0);
    CHECK_EQ(got.deadline + got.other, 0);
    tg_pool_close(&pool);
    tg_fake_stop(&a, false);
    tg_fake_stop(&b, true);
}

TEST(another_digest_aborts_the_episode_instead_of_inventing_one) {
    abort_with(TG_FAKE_LIE);
    abort_with(TG_FAKE_LIE_LATER);
}

TEST(rewards_that_are_not_deterministic_come_from_the_log) {
    tg_transcript got;
    tg_play_address();
    tg_fake_opts opts = {.address = tg_play_at(),
                         .fault = TG_FAKE_DIE,
                         .fault_after = 20,
                         .not_deterministic = true};
    tg_fake_worker *a = tg_fake_start(&opts);
    opts.fault = TG_FAKE_NONE;
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&opts);
    tg_play(pool, 6, &got, NULL, NULL);
    CHECK_EQ(got.aborted, 0);
    CHECK_EQ(got.finished, TG_PLAY_EPISODES);
    tg_pool_close(&pool);
    tg_fake_stop(&a, false);
    tg_fake_stop(&b, true);
}

/* Nobody comes: after three seconds it says where it waits, and then that it has waited in vain. */
TEST(a_pool_says_where_it_waits_for_workers) {
    tg_error err;
    tg_pool *pool = NULL;
    char path[600];
    tg_buf said = {0};
    snprintf(path, sizeof path, "%s/waiting.log", tg_test_tmpdir());
    tg_pool_opts opts = {.bind = tg_play_address(), .open_timeout_ms = 3300};
    CHECK_OK(tg_log_set_file(path, &err));
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "0 of 1 workers joined at ipc://"));
    CHECK_OK(tg_log_set_file(NULL, &err));
    REQUIRE_OK(tg_file_read(path, 1 << 16, &said, &err));
    CHECK(said.data && strstr(said.data, "waiting for workers at ipc://") &&
          strstr(said.data, "--connect ADDRESS"));
    tg_buf_fini(&said);
}

TEST(a_call_without_an_answer_ends_at_its_deadline) {
    tg_error err;
    tg_fake_worker *w =
        tg_fake_start(&(tg_fake_opts){.address = tg_play_address(), .fault = TG_FAKE_MUTE});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = tg_play_at(), .call_timeout_ms = 300, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    REQUIRE_OK(tg_pool_open_slots(pool, 1, &err));
    tg_pool_event e;
    int32_t token = 4;
    tg_step_item step = {.slot = 0, .episode = 1, .tokens = &token, .n_tokens = 1};
    CHECK_OK(tg_pool_reset(pool, &(tg_reset_item){.slot = 0, .episode = 1}, 1, &err));
    CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
    CHECK_OK(tg_pool_step(pool, &step, 1, &err));
    CHECK_EQ(tg_pool_wait(pool, &e, 20, &err), TG_TIMEOUT); /* of the wait */
    CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
    CHECK_EQ(e.step.code, TG_CODE_DEADLINE_EXCEEDED);
    CHECK_STR(e.step.message, "the worker did not answer in time");
    CHECK_EQ(tg_pool_pending(pool), 0);
    /* Its worker goes, a sound one comes: the same step, asked for again, is answered. */
    tg_play_replace(&w);
    opts.call_timeout_ms = 10000;
    for (int i = 0; i < 20; i++) {
        CHECK_OK(tg_pool_step(pool, &step, 1, &err));
        CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
        if (e.step.code == TG_CODE_OK) break;
        CHECK_EQ(e.step.code, TG_CODE_DEADLINE_EXCEEDED);
    }
    CHECK_EQ(e.step.code, TG_CODE_OK);
    CHECK_EQ(e.step.n_applied, 1);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
}

TEST(calls_without_any_worker_end_at_their_deadline) {
    tg_error err;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = tg_play_at(), .call_timeout_ms = 300, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    REQUIRE_OK(tg_pool_open_slots(pool, 2, &err));
    tg_fake_stop(&w, false);
    CHECK_OK(tg_pool_reset(pool, &(tg_reset_item){.slot = 1, .episode = 1}, 1, &err));
    tg_pool_event e;
    CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
    CHECK_EQ(e.kind, TG_POOL_RESET);
    CHECK_EQ(e.reset.code, TG_CODE_DEADLINE_EXCEEDED);
    CHECK_STR(e.reset.message, "no worker is connected");
    tg_samples *s;
    CHECK_EQ(tg_pool_samples(pool, TG_SPLIT_VAL, 0, 1, &s, &err), TG_TIMEOUT);
    tg_pool_close(&pool);
}

TEST(no_worker_at_all_is_a_clear_error) {
    tg_error err;
    tg_pool *pool = NULL;
    tg_play_address();
    tg_pool_opts opts = {.bind = tg_play_at(), .open_timeout_ms = 150};
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_UNAVAILABLE);
    CHECK(pool == NULL);
    CHECK(strstr(err.msg, "0 of 1 workers joined") != NULL);
    opts = (tg_pool_opts){.bind = "tcp://0.0.0.0:5599", .open_timeout_ms = 150};
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_DENIED);
    opts = (tg_pool_opts){.connect = "nonsense"};
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_USAGE);
}

TEST(workers_of_another_configuration_are_refused) {
    tg_error err;
    tg_play_address();
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at(), .config_digest = 2});
    tg_fake_worker *c =
        tg_fake_start(&(tg_fake_opts){.address = tg_play_at(), .tokenizer_digest = 2});
    for (int i = 0; i < 2000 && (!tg_fake_last_error(b) || !tg_fake_last_error(c)); i++)
        usleep(1000);
    CHECK_EQ(tg_fake_last_error(b), TG_CODE_CONFIG_MISMATCH);
    CHECK_EQ(tg_fake_last_error(c), TG_CODE_CONFIG_MISMATCH);
    tg_pool_stats st;
    tg_pool_get_stats(pool, &st);
    CHECK_EQ(st.workers, 1);
    tg_pool_close(&pool);
    tg_fake_stop(&a, true);
    tg_fake_stop(&c, true);
    tg_pool_opts opts = {.bind = tg_play_address(), .open_timeout_ms = 500, .config_digest = 1};
    tg_fake_stop(&b, true);
    b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at(), .config_digest = 2});
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "another configuration") != NULL);
    tg_fake_stop(&b, true);
}

TEST(full_workers_are_said_to_be_full) {
    tg_error err;
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = tg_play_address(), .capacity = 3});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = tg_play_at(), .call_timeout_ms = 300, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    CHECK_EQ(tg_pool_open_slots(pool, 4, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "3 of 4 slots are open: 1 workers have room for 3") != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = tg_play_at(), .capacity = 1});
    for (int i = 0; i < 20 && tg_pool_open_slots(pool, 4, &err) != TG_OK; i++) continue;
    CHECK_OK(tg_pool_open_slots(pool, 4, &err)); /* a new worker has the place */
    tg_pool_close(&pool);
    tg_fake_stop(&a, true);
    tg_fake_stop(&b, true);
}

TEST(an_error_for_a_whole_request_ends_its_calls) {
    tg_error err;
    tg_fake_worker *w =
        tg_fake_start(&(tg_fake_opts){.address = tg_play_address(), .fault = TG_FAKE_REFUSE});
    tg_pool *pool = tg_play_open(1);
    REQUIRE(pool != NULL);
    CHECK_OK(tg_pool_open_slots(pool, 2, &err));
    CHECK_OK(tg_pool_reset(
        pool, (tg_reset_item[]){{.slot = 0, .episode = 1}, {.slot = 1, .episode = 2}}, 2, &err));
    for (int i = 0; i < 2; i++) {
        tg_pool_event e;
        CHECK_OK(tg_pool_wait(pool, &e, 5000, &err));
        CHECK_EQ(e.reset.code, TG_CODE_INTERNAL);
        CHECK_STR(e.reset.message, "no luck");
    }
    tg_metric_reply *m;
    CHECK_EQ(tg_pool_metric(pool, &(tg_metric_request){.split = TG_SPLIT_VAL}, &m, 0, &err),
             TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "no luck") != NULL);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
}

TEST_MAIN
