/* The scorer alone, before a function that does what the test wants: batches, deadlines, retries, breaker, cache,
 * queue, groups; and its parts. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "env-server/reward/score.h"
#include "env-server/reward/score_cache.h"
#include "env-server/reward/score_json.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- a function under control -------------------------------------------------------------- */

typedef struct judge {
    atomic_int calls, texts, largest, active, peak, gate; /* gate 1: calls wait */
    atomic_int fail_first;                                /* so many calls fail */
    atomic_bool retry;
    tg_status failure;
    double value; /* of every text; NaN: its length */
    int lies;     /* 1: NaN, 2: an unknown status, 3: nothing filled in */
} judge;

static tg_status judge_call(void *backend, int lane, const tg_score_call *c,
                            tg_score_result *results, tg_score_fault *fault, tg_error *err) {
    judge *j = backend;
    (void)lane;
    atomic_fetch_add(&j->calls, 1);
    atomic_fetch_add(&j->texts, (int)c->n);
    if ((int)c->n > atomic_load(&j->largest)) atomic_store(&j->largest, (int)c->n);
    int active = atomic_fetch_add(&j->active, 1) + 1;
    if (active > atomic_load(&j->peak)) atomic_store(&j->peak, active);
    while (atomic_load(&j->gate)) usleep(500);
    atomic_fetch_sub(&j->active, 1);
    if (atomic_load(&j->fail_first) > 0) {
        atomic_fetch_sub(&j->fail_first, 1);
        fault->retry = atomic_load(&j->retry);
        return tg_fail(err, j->failure, "out of order");
    }
    for (size_t i = 0; i < c->n && j->lies != 3; i++) {
        double v = isnan(j->value) ? (double)strlen(c->texts[i]->item.completion) : j->value;
        if (c->ranked) v += 100 * (double)c->n;
        results[i] = (tg_score_result){.status = TG_REWARD_OK, .value = v, .message = ""};
        if (j->lies == 1) results[i].value = (double)NAN;
        if (j->lies == 2) results[i].status = (tg_reward_status)77;
        tg_component *part = tg_arena_alloc(c->arena, sizeof *part);
        if (!part) return tg_fail_nomem(err, sizeof *part);
        *part = (tg_component){"length", v, TG_REWARD_OK};
        results[i].components = part, results[i].n_components = 1;
    }
    return TG_OK;
}
static const tg_score_ops judge_ops = {.call = judge_call};

static tg_score_opts defaults(void) {
    return (tg_score_opts){.name = "judge",
                           .identity = "judge 1",
                           .max_batch = 8,
                           .max_wait_ms = 1,
                           .concurrency = 1,
                           .max_queue = 1000,
                           .timeout_ms = 20000,
                           .retries = 2,
                           .breaker_ms = 50};
}

static tg_reward_value ask(tg_scorer *s, const char *text, tg_error *err) {
    tg_sample sample = {.prompt_text = "p", .meta_json = "", .id = ""};
    tg_reward_input in = {.sample = &sample, .text = text, .text_len = strlen(text), .done = true};
    tg_reward_value v = {TG_REWARD_PENDING, 0};
    tg_error mine = {0};
    if (tg_scorer_score(s, &in, 1, &v, err ? err : &mine) == TG_BUSY) v.status = TG_REWARD_PENDING;
    return v;
}

/* ---- the scorer ---------------------------------------------------------------------------- */

TEST(values_arrive_with_their_parts) {
    judge j = {.value = (double)NAN};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    tg_sample sample = {.prompt_text = "p"};
    tg_reward_details d[3] = {{.prefix = "judge"}, {.prefix = "judge"}, {.prefix = NULL}};
    tg_reward_input in[3];
    tg_reward_value v[3];
    const char *texts[] = {"one", "three", ""};
    for (int i = 0; i < 3; i++)
        in[i] = (tg_reward_input){.sample = &sample,
                                  .text = texts[i],
                                  .text_len = strlen(texts[i]),
                                  .done = true,
                                  .details = &d[i]};
    CHECK_OK(tg_scorer_score(s, in, 3, v, &err));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(v[i].status, TG_REWARD_OK);
        CHECK_NEAR(v[i].value, (double)strlen(texts[i]), 0);
        REQUIRE(d[i].n == 1);
        CHECK_STR(d[i].items[0].name, i < 2 ? "judge.length" : "length");
        CHECK_NEAR(d[i].items[0].value, v[i].value, 0);
        tg_reward_details_fini(&d[i]);
    }
    CHECK_EQ(atomic_load(&j.calls), 1);
    tg_scorer_destroy(&s);
}

static void *ask_thread(void *arg) {
    tg_scorer *s = arg;
    tg_reward_value v = ask(s, "12345", NULL);
    CHECK(v.status == TG_REWARD_OK && v.value == 5);
    return NULL;
}

TEST(texts_of_many_slots_share_a_call) {
    judge j = {.value = (double)NAN};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    pthread_t t[24];
    o.max_batch = 6, o.max_wait_ms = 2000, o.concurrency = 2;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    for (int i = 0; i < 24; i++) REQUIRE(!pthread_create(&t[i], NULL, ask_thread, s));
    for (int i = 0; i < 24; i++) pthread_join(t[i], NULL);
    CHECK_EQ(atomic_load(&j.texts), 24);
    CHECK_EQ(atomic_load(&j.calls), 4);
    CHECK_EQ(atomic_load(&j.largest), 6);
    CHECK(atomic_load(&j.peak) <= 2);
    tg_scorer_destroy(&s);
}

TEST(too_late_is_a_timeout_and_the_next_one_is_served) {
    judge j = {.value = 1, .gate = 1};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    o.timeout_ms = 50;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    tg_reward_value v = ask(s, "a", &err);
    CHECK_EQ(v.status, TG_REWARD_TIMEOUT);
    CHECK(isnan(v.value));
    CHECK(strstr(err.msg, "50 ms"));
    atomic_store(&j.gate, 0);
    tg_score_stats stats;
    do tg_scorer_get_stats(s, &stats);
    while (stats.active);
    v = ask(s, "b", &err);
    CHECK(v.status == TG_REWARD_OK && v.value == 1);
    tg_scorer_get_stats(s, &stats);
    CHECK_EQ(stats.results[TG_REWARD_TIMEOUT], 1);
    CHECK_EQ(stats.results[TG_REWARD_OK], 1);
    tg_scorer_destroy(&s);
}

TEST(what_is_not_a_number_is_a_status) {
    static const struct {
        tg_status failure;
        int lies;
        tg_reward_status want;
    } cases[] = {{TG_UNAVAILABLE, 0, TG_REWARD_FAILED}, {TG_TIMEOUT, 0, TG_REWARD_TIMEOUT},
                 {TG_DATA, 0, TG_REWARD_INVALID},       {TG_OK, 1, TG_REWARD_INVALID},
                 {TG_OK, 2, TG_REWARD_INVALID},         {TG_OK, 3, TG_REWARD_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        judge j = {.value = 1, .failure = cases[i].failure, .lies = cases[i].lies};
        tg_scorer *s;
        tg_error err = {0};
        tg_score_opts o = defaults();
        atomic_store(&j.fail_first, cases[i].failure == TG_OK ? 0 : 1);
        REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
        tg_reward_value v = ask(s, "text", &err);
        CHECK_EQ(v.status, cases[i].want);
        CHECK(isnan(v.value));
        CHECK(err.msg[0]);
        tg_scorer_destroy(&s);
    }
}

TEST(only_safe_calls_are_made_again) {
    for (int safe = 0; safe < 2; safe++) {
        judge j = {.value = 1, .failure = TG_UNAVAILABLE, .fail_first = 2, .retry = safe};
        tg_scorer *s;
        tg_error err = {0};
        tg_score_opts o = defaults();
        REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
        CHECK_EQ(ask(s, "text", &err).status, safe ? TG_REWARD_OK : TG_REWARD_FAILED);
        CHECK_EQ(atomic_load(&j.calls), safe ? 3 : 1);
        tg_scorer_destroy(&s);
    }
}

TEST(retries_end) {
    judge j = {.failure = TG_UNAVAILABLE, .fail_first = 100, .retry = true};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    CHECK_EQ(ask(s, "text", &err).status, TG_REWARD_FAILED);
    CHECK_STR(err.msg, "out of order");
    CHECK_EQ(atomic_load(&j.calls), 3);
    tg_scorer_destroy(&s);
}

TEST(a_broken_function_is_left_alone_and_tried_again) {
    judge j = {.value = 1, .failure = TG_UNAVAILABLE, .fail_first = TG_BREAKER_FAILURES};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_stats stats;
    tg_score_opts o = defaults();
    o.breaker_ms = 200;
    tg_log_set_level(TG_LOG_ERROR);
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    for (int i = 0; i < TG_BREAKER_FAILURES; i++)
        CHECK_EQ(ask(s, "text", &err).status, TG_REWARD_FAILED);
    tg_scorer_get_stats(s, &stats);
    CHECK_EQ(stats.breaker_opened, 1);
    if (stats.breaker == TG_BREAKER_OPEN) {
        int before = atomic_load(&j.calls);
        tg_reward_value v = ask(s, "text", &err);
        if (v.status != TG_REWARD_OK) { /* unless this machine slept over it */
            CHECK_EQ(atomic_load(&j.calls), before);
            CHECK(strstr(err.msg, "left alone"));
        }
    }
    usleep(250000);
    CHECK_EQ(ask(s, "text", &err).status, TG_REWARD_OK);
    tg_scorer_get_stats(s, &stats);
    CHECK_EQ(stats.breaker, TG_BREAKER_CLOSED);
    tg_scorer_destroy(&s);
}

TEST(deterministic_functions_are_not_asked_twice) {
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        judge j = {.value = (double)NAN};
        tg_scorer *s;
        tg_error err = {0};
        tg_score_opts o = defaults();
        o.cache = 10, o.deterministic = deterministic;
        REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
        for (int i = 0; i < 5; i++) CHECK(ask(s, "same", &err).value == 4);
        CHECK(ask(s, "other", &err).value == 5);
        CHECK_EQ(atomic_load(&j.calls), deterministic ? 2 : 6);
        tg_score_stats stats;
        tg_scorer_get_stats(s, &stats);
        CHECK_EQ(stats.cache_hits, deterministic ? 4 : 0);
        CHECK_EQ(stats.results[TG_REWARD_OK], 6);
        tg_scorer_destroy(&s);
    }
}

TEST(failures_are_not_remembered) {
    judge j = {.value = 1, .failure = TG_UNAVAILABLE, .fail_first = 1};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    o.cache = 10, o.deterministic = true;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    CHECK_EQ(ask(s, "same", &err).status, TG_REWARD_FAILED);
    CHECK_EQ(ask(s, "same", &err).status, TG_REWARD_OK);
    tg_scorer_destroy(&s);
}

TEST(a_full_queue_refuses) {
    judge j = {.value = 1, .gate = 1};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    pthread_t t[3];
    o.max_batch = 1, o.max_queue = 2, o.max_wait_ms = 0;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    j.value = 5;
    tg_score_stats stats;
    REQUIRE(!pthread_create(&t[0], NULL, ask_thread, s));
    while (!atomic_load(&j.active)) usleep(1000);
    for (int i = 1; i < 3; i++) REQUIRE(!pthread_create(&t[i], NULL, ask_thread, s));
    do tg_scorer_get_stats(s, &stats);
    while (stats.queued < 2);
    CHECK_EQ(ask(s, "one too many", &err).status, TG_REWARD_PENDING);
    CHECK(strstr(err.msg, "max_queue"));
    atomic_store(&j.gate, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    tg_scorer_get_stats(s, &stats);
    CHECK_EQ(stats.refused, 1);
    tg_scorer_destroy(&s);
}

TEST(a_group_is_one_call) {
    judge j = {.value = (double)NAN};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    tg_sample sample = {.prompt_text = "p"};
    tg_reward_input in[20];
    tg_reward_value v[20];
    o.ranked = true, o.max_batch = 4;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    for (int i = 0; i < 20; i++)
        in[i] = (tg_reward_input){
            .sample = &sample, .text = "01234567890123456789", .text_len = (size_t)i, .done = true};
    CHECK_OK(tg_scorer_score(s, in, 20, v, &err));
    CHECK_EQ(atomic_load(&j.calls), 1);
    for (int i = 0; i < 20; i++) CHECK(v[i].value == 2000 + i);
    tg_scorer_destroy(&s);
}

static void *close_gate(void *arg) {
    usleep(20000);
    atomic_store(&((judge *)arg)->gate, 0);
    return NULL;
}

TEST(closing_waits_for_the_call_under_way) {
    judge j = {.value = 1, .gate = 1};
    tg_scorer *s;
    tg_error err = {0};
    tg_score_opts o = defaults();
    o.timeout_ms = 10;
    pthread_t t;
    REQUIRE_OK(tg_scorer_create(&s, &o, &judge_ops, &j, &err));
    CHECK_EQ(ask(s, "a", &err).status, TG_REWARD_TIMEOUT);
    REQUIRE(!pthread_create(&t, NULL, close_gate, &j));
    tg_scorer_destroy(&s);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&j.active), 0);
}

TEST_MAIN
