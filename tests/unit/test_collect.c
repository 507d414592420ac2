/* Collecting rollouts from workers that answer late, early and in any order: the rollout is always the same. The worker pool here is a
 * stand-in with the real one's interface. */
#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/net/pool.h"
#include "common/nn/model.h"
#include "learner/train/collect.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { VOCAB = 13, EOS = 0, MAX_NEW = 9, MAX_PROMPT = 4, CALLS = 256 };

typedef struct call {
    bool step;
    tg_reset_item reset;
    tg_step_item item;
    int32_t tokens[MAX_NEW];
} call;

struct tg_pool {
    tg_env_spec spec;
    call calls[CALLS];
    int n_calls;
    tg_rng mood;         /* which answer comes next, and whether one comes at all */
    uint64_t fail_every; /* rewards of episodes divisible by this fail; 0: none */
    bool ranks;          /* rewards are pending; those of a group are its places by sum of tokens */
    int bad_ranking;     /* 1: none has a value, 2: the first has none, 3: the question fails */
    atomic_int rankings;
    int opened;
    int resets, steps;
    uint64_t last_reset; /* episodes must be asked for in order */
    int32_t prompt[MAX_PROMPT];
    double rewards[MAX_NEW];
    char text[32];
    int group, min_valid; /* of the collector */
    bool abort_on_failure;
};

const tg_env_spec *tg_pool_spec(const tg_pool *p) {
    return &p->spec;
}
void tg_pool_get_stats(tg_pool *p, tg_pool_stats *out) {
    (void)p;
    *out = (tg_pool_stats){.workers = 1};
}
tg_status tg_pool_open_slots(tg_pool *p, int n, tg_error *err) {
    (void)err;
    p->opened = n;
    return TG_OK;
}
tg_status tg_pool_reset(tg_pool *p, const tg_reset_item *items, size_t n, tg_error *err) {
    (void)err;
    for (size_t i = 0; i < n; i++) {
        CHECK(p->n_calls < CALLS);
        CHECK((int)items[i].slot < p->opened);
        CHECK(p->resets == 0 || items[i].episode == p->last_reset + 1);
        p->last_reset = items[i].episode;
        p->resets++;
        p->calls[p->n_calls++] = (call){.reset = items[i]};
    }
    return TG_OK;
}
tg_status tg_pool_step(tg_pool *p, const tg_step_item *items, size_t n, tg_error *err) {
    (void)err;
    for (size_t i = 0; i < n; i++) {
        CHECK(p->n_calls < CALLS);
        call *c = &p->calls[p->n_calls++];
        *c = (call){.step = true, .item = items[i]};
        memcpy(c->tokens, items[i].tokens, items[i].n_tokens * sizeof *c->tokens);
        p->steps++;
    }
    return TG_OK;
}

int tg_pool_pending(const tg_pool *p) {
    return p->n_calls;
}

static void *owned(tg_msg_type type, const void *msg) {
    tg_buf bytes = {0};
    tg_error err = {0};
    void *copy = NULL;
    CHECK_OK(tg_msg_encode(type, msg, &bytes, &err));
    CHECK_OK(tg_msg_decode(type, bytes.data, bytes.len, &copy, &err));
    tg_buf_fini(&bytes);
    return copy;
}
tg_status tg_pool_samples(tg_pool *p, tg_split split, uint64_t first, uint32_t n, tg_samples **out,
                          tg_error *err) {
    (void)p, (void)err;
    CHECK(split == TG_SPLIT_TRAIN && n == 1);
    char id[32];
    snprintf(id, sizeof id, "sample %llu", (unsigned long long)first);
    tg_sample sample = {.index = first, .id = id, .prompt_text = id, .meta_json = ""};
    *out = owned(TG_MSG_SAMPLES, &(tg_samples){&sample, 1});
    return TG_OK;
}
/* The text of an episode is its sum of tokens. */
tg_status tg_pool_score(tg_pool *p, const tg_score_request *req, tg_score_reply **out,
                        int timeout_ms, tg_error *err) {
    (void)timeout_ms;
    tg_score_result r[16] = {{0}};
    CHECK(req->ranked && req->n <= 16 && !*req->fn);
    atomic_fetch_add(&p->rankings, 1);
    usleep(1000);
    *out = NULL;
    if (p->bad_ranking == 3) return tg_fail(err, TG_UNAVAILABLE, "no judge is there");
    for (size_t i = 0; i < req->n; i++) {
        CHECK_STR(req->items[i].prompt, req->items[0].prompt);
        double place = 0;
        for (size_t k = 0; k < req->n; k++)
            place += atof(req->items[k].completion) < atof(req->items[i].completion);
        bool bad = p->bad_ranking == 1 || (p->bad_ranking == 2 && i == 0);
        r[i] = (tg_score_result){.id = i,
                                 .status = bad ? TG_REWARD_FAILED : TG_REWARD_OK,
                                 .value = bad ? (double)NAN : place,
                                 .message = bad ? "no opinion" : ""};
    }
    *out = owned(TG_MSG_SCORE_REPLY, &(tg_score_reply){r, req->n});
    return TG_OK;
}

/* A sample is drawn by the episode's number, or named. */
static tg_reset_result answer_reset(tg_pool *p, const call *c) {
    uint64_t sample = c->reset.has_sample ? c->reset.sample : c->reset.episode;
    size_t n = 1 + sample % MAX_PROMPT;
    for (size_t i = 0; i < n; i++) p->prompt[i] = (int32_t)(1 + (sample * 7 + i) % (VOCAB - 1));
    return (tg_reset_result){.sample = sample,
                             .slot = c->reset.slot,
                             .episode = c->reset.episode,
                             .message = "",
                             .sample_id = "s",
                             .prompt_text = "",
                             .prompt = p->prompt,
                             .n_prompt = n};
}

static tg_step_result answer_step(tg_pool *p, const call *c) {
    size_t n = c->item.n_tokens;
    memset(p->rewards, 0, sizeof p->rewards);
    for (size_t i = 0; i < n; i++) p->rewards[n - 1] += c->tokens[i] * 0.125 * (double)(i + 1);
    bool ended = c->tokens[n - 1] == EOS;
    bool fails = p->fail_every && c->item.episode % p->fail_every == 0;
    if (p->ranks && !fails) {
        snprintf(p->text, sizeof p->text, "%.17g", p->rewards[n - 1]);
        p->rewards[n - 1] = (double)NAN;
    }
    return (tg_step_result){.slot = c->item.slot,
                            .episode = c->item.episode,
                            .n_applied = (uint32_t)n,
                            .code = fails ? TG_CODE_REWARD_FAILED : TG_CODE_OK,
                            .message = fails ? "model server is down" : "",
                            .text = p->text,
                            .rewards = p->rewards,
                            .reward_status = fails      ? TG_REWARD_FAILED
                                             : p->ranks ? TG_REWARD_PENDING
                                                        : TG_REWARD_OK,
                            .terminated = ended,
                            .truncated = !ended};
}

tg_status tg_pool_wait(tg_pool *p, tg_pool_event *event, int timeout_ms, tg_error *err) {
    bool late = tg_rng_below(&p->mood, 4) != 0;
    if (p->n_calls == 0 || (timeout_ms == 0 && late))
        return tg_fail(err, TG_TIMEOUT, "nothing yet");
    int i = (int)tg_rng_below(&p->mood, (uint64_t)p->n_calls);
    call c = p->calls[i];
    p->calls[i] = p->calls[--p->n_calls];
    *event = (tg_pool_event){.kind = c.step ? TG_POOL_STEP : TG_POOL_RESET};
    if (c.step)
        event->step = answer_step(p, &c);
    else
        event->reset = answer_reset(p, &c);
    return TG_OK;
}

typedef struct fixture {
    tg_backend *be;
    tg_model *model;
    tg_gen_settings gen;
} fixture;

static bool setup(fixture *f) {
    *f = (fixture){0};
    tg_error err;
    tg_arch arch = {.family = "gpt2",
                    .n_layers = 1,
                    .n_heads = 2,
                    .n_kv_heads = 2,
                    .head_dim = 4,
                    .width = 8,
                    .mlp_width = 32,
                    .vocab_size = VOCAB,
                    .max_positions = 16,
                    .norm_eps = 1e-5f,
                    .tied_head = true,
                    .bos_id = EOS,
                    .eos_id = EOS,
                    .pad_id = -1};
    if (tg_backend_open(&f->be, "ref", 1, &err) != TG_OK) return CHECK(false);
    CHECK_OK(tg_model_create(&f->model, f->be, &arch, 0, 1, &err));
    f->gen = (tg_gen_settings){.do_sample = true,
                               .temperature = 1,
                               .top_p = 1,
                               .repetition_penalty = 1,
                               .typical_p = 1,
                               .max_new_tokens = MAX_NEW,
                               .max_length = 20,
                               .num_return_sequences = 1,
                               .num_beams = 1,
                               .num_beam_groups = 1,
                               .length_penalty = 1,
                               .encoder_repetition_penalty = 1,
                               .min_new_tokens = INT64_MIN,
                               .forced_bos_token_id = INT64_MIN,
                               .decay_start = INT64_MIN,
                               .eos_ids = {EOS},
                               .n_eos = 1,
                               .pad_id = -1};
    return f->model != NULL;
}

static void teardown(fixture *f) {
    tg_model_destroy(&f->model);
    tg_backend_close(&f->be);
}

static tg_status collect_with(fixture *f, tg_pool *pool, double max_failed, int rows,
                              int iterations, tg_buf *log, tg_collect_info *info,
                              const tg_halt *halt, tg_error *err) {
    tg_collect_opts opts = {.n_envs = 5,
                            .max_prompt = MAX_PROMPT,
                            .max_new = MAX_NEW,
                            .seed = 3,
                            .max_failed = max_failed,
                            .abort_on_failure = pool->abort_on_failure,
                            .group = pool->group,
                            .min_valid = pool->min_valid,
                            .gen = &f->gen,
                            .stop = halt};
    tg_collector *c = NULL;
    tg_status st = tg_collector_create(&c, pool, f->model, &opts, err);
    for (int k = 0; st == TG_OK && k < iterations; k++) {
        tg_rollout *r = NULL;
        uint64_t before = tg_collector_next_episode(c);
        st = tg_collect(c, rows, &r, info, err);
        if (st == TG_INTERRUPTED) CHECK(tg_collector_next_episode(c) == before);
        if (st != TG_OK) break;
        CHECK_EQ(r->n_rows, rows);
        CHECK(r->n_actions >= rows);
        CHECK(tg_collector_next_episode(c) == before + (uint64_t)info->episodes);
        for (int e = 0; e < r->n_episodes; e++) {
            const tg_episode *ep = &r->episodes[e];
            CHECK(e == 0 || ep->id > ep[-1].id);
            tg_buf_printf(log, "%llu %d %d:", (unsigned long long)ep->id, ep->terminated,
                          ep->truncated);
            for (int t = 0; t < ep->n_prompt + ep->n_actions; t++)
                tg_buf_printf(log, " %d", ep->tokens[t]);
            for (int t = 0; t < ep->n_actions; t++)
                tg_buf_printf(log, " %.17g", r->task_reward[ep->first_action + t]);
            tg_buf_puts(log, "\n");
        }
        tg_rollout_destroy(&r);
    }
    tg_collector_destroy(&c);
    return st;
}

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

/* ---- groups -------------------------------------------------------------------------------- */

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
