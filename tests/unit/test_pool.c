/* The worker pool against workers that behave, die, stall, lie and come back. The measure is a transcript: every
 * episode's prompt, rewards and end, in order of episodes. It must not depend on the workers. */
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/net/pool.h"
#include "proto/codec.h"
#include "tests/support/fake_worker.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <unistd.h>

enum { EPISODES = 60, SEED = 11 };

static char address[128];

static const char *fresh_address(void) {
    static int n;
    snprintf(address, sizeof address, "ipc://%s/pool%d", tg_test_tmpdir(), n++);
    return address;
}

static tg_pool *open_pool(int min_workers) {
    tg_error err;
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = address,
                         .min_workers = min_workers,
                         .open_timeout_ms = 10000,
                         .call_timeout_ms = 10000,
                         .heartbeat_ms = 1000};
    tg_status st = tg_pool_open(&pool, &opts, &err);
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s", st == TG_OK ? "" : err.msg);
    return pool;
}

/* What happened, by episode. */
typedef struct transcript {
    uint64_t episode[EPISODES]; /* hash of prompt, rewards and end */
    int aborted, deadline, other;
    int finished;
} transcript;

/* The policy: tokens are a function of (episode, step); runs of 1 to 3. */
static size_t choose_tokens(uint64_t episode, uint32_t step, int32_t out[3]) {
    uint64_t key[2] = {episode, step};
    uint64_t h = tg_siphash(9, 9, key, sizeof key);
    size_t n = 1 + h % 3;
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)((h >> (8 * (i + 1))) % 12); /* 0 ends the episode */
    return n;
}

typedef struct player {
    uint64_t episode[64];
    uint32_t step[64];
    uint64_t next;
} player;

static void begin_episode(tg_pool *pool, player *pl, uint32_t slot) {
    tg_error err;
    pl->episode[slot] = pl->next++;
    pl->step[slot] = 0;
    tg_reset_item item = {
        .slot = slot, .episode = pl->episode[slot], .seed = SEED, .split = TG_SPLIT_TRAIN};
    CHECK_OK(tg_pool_reset(pool, &item, 1, &err));
}

static void next_step(tg_pool *pool, player *pl, uint32_t slot) {
    tg_error err;
    int32_t tokens[3];
    tg_step_item item = {
        .slot = slot, .episode = pl->episode[slot], .step = pl->step[slot], .tokens = tokens};
    item.n_tokens = choose_tokens(item.episode, item.step, tokens);
    CHECK_OK(tg_pool_step(pool, &item, 1, &err));
}

/* True when the slot's episode is over. */
static bool take(transcript *t, player *pl, const tg_pool_event *e) {
    if (e->kind == TG_POOL_RESET) {
        const tg_reset_result *r = &e->reset;
        uint64_t *h = &t->episode[pl->episode[r->slot]];
        if (r->code == TG_CODE_OK)
            *h = tg_siphash(*h, 1, r->prompt, r->n_prompt * sizeof *r->prompt);
        if (r->code == TG_CODE_OK) return false;
        t->deadline += r->code == TG_CODE_DEADLINE_EXCEEDED;
        t->other += r->code != TG_CODE_DEADLINE_EXCEEDED;
        return true;
    }
    const tg_step_result *r = &e->step;
    uint64_t *h = &t->episode[pl->episode[r->slot]];
    CHECK_EQ(r->episode, pl->episode[r->slot]);
    CHECK_EQ(r->step, pl->step[r->slot]);
    if (r->code == TG_CODE_OK) {
        *h = tg_siphash(*h, r->state_digest, r->rewards, r->n_applied * sizeof *r->rewards);
        pl->step[r->slot] += r->n_applied;
        return r->terminated || r->truncated;
    }
    t->aborted += r->code == TG_CODE_EPISODE_ABORTED;
    t->deadline += r->code == TG_CODE_DEADLINE_EXCEEDED;
    t->other += r->code != TG_CODE_EPISODE_ABORTED && r->code != TG_CODE_DEADLINE_EXCEEDED;
    *h = 0;
    return true;
}

/* Plays all episodes over n slots; `meanwhile` is called after each event. */
static void play(tg_pool *pool, uint32_t n, transcript *t, void (*meanwhile)(void *arg, int event),
                 void *arg) {
    tg_error err;
    player pl = {.next = 0};
    *t = (transcript){0};
    CHECK_OK(tg_pool_open_slots(pool, (int)n, &err));
    for (uint32_t s = 0; s < n; s++) begin_episode(pool, &pl, s);
    for (int event = 0; t->finished < EPISODES; event++) {
        tg_pool_event e;
        tg_status st = tg_pool_wait(pool, &e, 30000, &err);
        if (!tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg)) return;
        uint32_t slot = e.kind == TG_POOL_RESET ? e.reset.slot : e.step.slot;
        if (!take(t, &pl, &e)) {
            next_step(pool, &pl, slot);
        } else {
            t->finished++;
            if (pl.next < EPISODES) begin_episode(pool, &pl, slot);
        }
        if (meanwhile) meanwhile(arg, event);
    }
    CHECK_EQ(tg_pool_pending(pool), 0);
}

static bool same(const transcript *a, const transcript *b) {
    return !memcmp(a->episode, b->episode, sizeof a->episode);
}

/* The undisturbed run with one worker. */
static const transcript *reference(void) {
    static transcript t;
    static bool made;
    if (made) return &t;
    made = true;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = fresh_address()});
    tg_pool *pool = open_pool(1);
    if (pool) play(pool, 1, &t, NULL, NULL);
    CHECK_EQ(t.finished, EPISODES);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
    return &t;
}

/* ---- normal --------------------------------------------------------------------------------- */

TEST(the_transcript_does_not_depend_on_workers_or_slots) {
    const transcript *want = reference();
    for (int workers = 1; workers <= 5; workers += 2) {
        tg_fake_worker *w[5] = {0};
        fresh_address();
        for (int i = 0; i < workers; i++) w[i] = tg_fake_start(&(tg_fake_opts){.address = address});
        tg_pool *pool = open_pool(workers);
        REQUIRE(pool != NULL);
        transcript got;
        play(pool, 7, &got, NULL, NULL);
        CHECK(same(want, &got));
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
    const transcript *want = reference();
    tg_error err;
    char first[128], both[300];
    snprintf(first, sizeof first, "%s", fresh_address());
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = first, .listen = true});
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = fresh_address(), .listen = true});
    snprintf(both, sizeof both, "%s,%s", first, address);
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.connect = both, .min_workers = 2, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    transcript got;
    play(pool, 4, &got, NULL, NULL);
    CHECK(same(want, &got));
    tg_pool_close(&pool);
    tg_fake_stop(&a, true);
    tg_fake_stop(&b, true);
}

TEST(samples_metrics_and_scores_go_to_any_worker) {
    tg_error err;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = fresh_address()});
    tg_pool *pool = open_pool(1);
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

TEST(misuse_is_refused) {
    tg_error err;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = fresh_address()});
    tg_pool *pool = open_pool(1);
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

/* ---- faults --------------------------------------------------------------------------------- */

/* Two workers, the first with a fault: the transcript is that of an undisturbed run. */
static void survive(tg_fake_fault fault, int after, tg_pool_stats *st) {
    const transcript *want = reference();
    transcript got;
    fresh_address();
    tg_fake_opts opts = {.address = address, .fault = fault, .fault_after = after};
    if (fault == TG_FAKE_STALL) opts.heartbeat_ms = 60; /* noticed after 180 ms */
    tg_fake_worker *a = tg_fake_start(&opts);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = address});
    tg_pool *pool = open_pool(2);
    REQUIRE(pool != NULL);
    play(pool, 8, &got, NULL, NULL);
    CHECK(same(want, &got));
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
    r->now = tg_fake_start(&(tg_fake_opts){.address = address});
    r->restarts++;
}

TEST(a_restarted_worker_is_taken_in) {
    const transcript *want = reference();
    transcript got;
    relay r = {.now = tg_fake_start(&(tg_fake_opts){.address = fresh_address()})};
    tg_pool *pool = open_pool(1);
    REQUIRE(pool != NULL);
    play(pool, 6, &got, restart, &r);
    CHECK(same(want, &got));
    CHECK_EQ(r.restarts, 4);
    tg_pool_stats st;
    tg_pool_get_stats(pool, &st);
    CHECK_EQ(st.workers_lost, 4);
    CHECK(st.episodes_rebuilt > 0);
    tg_pool_close(&pool);
    tg_fake_stop(&r.now, true);
}

static void replace_soon(tg_fake_worker **w) {
    tg_fake_stop(w, false);
    *w = tg_fake_start(&(tg_fake_opts){.address = address});
}

TEST(a_metric_is_asked_again_when_its_worker_dies) {
    tg_error err;
    tg_fake_worker *a =
        tg_fake_start(&(tg_fake_opts){.address = fresh_address(), .fault = TG_FAKE_DIE});
    tg_pool *pool = open_pool(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = address});
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

/* ---- what cannot be repaired is said -------------------------------------------------------- */

static void abort_with(tg_fake_fault lie) {
    transcript got;
    fresh_address();
    tg_fake_opts opts = {.address = address, .fault = TG_FAKE_DIE, .fault_after = 20};
    tg_fake_worker *a = tg_fake_start(&opts);
    tg_pool *pool = open_pool(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = address, .fault = lie});
    play(pool, 6, &got, NULL, NULL);
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
    transcript got;
    fresh_address();
    tg_fake_opts opts = {
        .address = address, .fault = TG_FAKE_DIE, .fault_after = 20, .not_deterministic = true};
    tg_fake_worker *a = tg_fake_start(&opts);
    opts.fault = TG_FAKE_NONE;
    tg_pool *pool = open_pool(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&opts);
    play(pool, 6, &got, NULL, NULL);
    CHECK_EQ(got.aborted, 0);
    CHECK_EQ(got.finished, EPISODES);
    tg_pool_close(&pool);
    tg_fake_stop(&a, false);
    tg_fake_stop(&b, true);
}

TEST(a_call_without_an_answer_ends_at_its_deadline) {
    tg_error err;
    tg_fake_worker *w =
        tg_fake_start(&(tg_fake_opts){.address = fresh_address(), .fault = TG_FAKE_MUTE});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = address, .call_timeout_ms = 300, .open_timeout_ms = 10000};
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
    replace_soon(&w);
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
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = fresh_address()});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = address, .call_timeout_ms = 300, .open_timeout_ms = 10000};
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
    fresh_address();
    tg_pool_opts opts = {.bind = address, .open_timeout_ms = 150};
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
    fresh_address();
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = address});
    tg_pool *pool = open_pool(1);
    REQUIRE(pool != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = address, .config_digest = 2});
    tg_fake_worker *c = tg_fake_start(&(tg_fake_opts){.address = address, .tokenizer_digest = 2});
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
    tg_pool_opts opts = {.bind = fresh_address(), .open_timeout_ms = 500, .config_digest = 1};
    tg_fake_stop(&b, true);
    b = tg_fake_start(&(tg_fake_opts){.address = address, .config_digest = 2});
    CHECK_EQ(tg_pool_open(&pool, &opts, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "another configuration") != NULL);
    tg_fake_stop(&b, true);
}

TEST(full_workers_are_said_to_be_full) {
    tg_error err;
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = fresh_address(), .capacity = 3});
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = address, .call_timeout_ms = 300, .open_timeout_ms = 10000};
    REQUIRE_OK(tg_pool_open(&pool, &opts, &err));
    CHECK_EQ(tg_pool_open_slots(pool, 4, &err), TG_UNAVAILABLE);
    CHECK(strstr(err.msg, "3 of 4 slots are open: 1 workers have room for 3") != NULL);
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = address, .capacity = 1});
    for (int i = 0; i < 20 && tg_pool_open_slots(pool, 4, &err) != TG_OK; i++) continue;
    CHECK_OK(tg_pool_open_slots(pool, 4, &err)); /* a new worker has the place */
    tg_pool_close(&pool);
    tg_fake_stop(&a, true);
    tg_fake_stop(&b, true);
}

TEST(an_error_for_a_whole_request_ends_its_calls) {
    tg_error err;
    tg_fake_worker *w =
        tg_fake_start(&(tg_fake_opts){.address = fresh_address(), .fault = TG_FAKE_REFUSE});
    tg_pool *pool = open_pool(1);
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
