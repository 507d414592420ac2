/* A stand-in for the worker pool that answers late, early and in any order, and a collector that collects from it. Defines the real
 * pool's functions, so it is included by a test program's one file and is not part of the support library. */
#ifndef TG_COLLECT_CASE_H
#define TG_COLLECT_CASE_H

#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/net/pool.h"
#include "common/nn/model.h"
#include "learner/train/collect.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

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
    tg_arch arch = tg_tiny_arch();
    arch.vocab_size = VOCAB;
    arch.bos_id = arch.eos_id = EOS;
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

#endif
