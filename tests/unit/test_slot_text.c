/* The text that rewards see, in long episodes: as if it were decoded anew at each token, without the cost. */
#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/config/tree.h"
#include "env-server/env/slot.h"
#include "env-server/reward/reward.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH = 300 };

/* Compares what it is given with a decode of its own. */
static const tg_env *the_env;
static tg_buf whole;
static size_t calls, wrong;

static bool same(const int32_t *tokens, size_t n, const char *text, size_t len) {
    tg_ids ids = {0};
    tg_error err;
    const tg_ids *start = &the_env->context_start;
    size_t total = start->n + n, places = the_env->spec.max_episode_length;
    size_t skip = total > places ? total - places : 0;
    bool ok = true;
    for (size_t i = 0; i < start->n; i++) ok &= tg_ids_push(&ids, start->data[i]);
    for (size_t i = 0; i < n; i++) ok &= tg_ids_push(&ids, tokens[i]);
    ok &= tg_env_decode(the_env, ids.data + skip, ids.n - skip, &whole, &err) == TG_OK;
    ok &= whole.len == len && !memcmp(whole.data, text, len) && text[len] == '\0';
    tg_ids_fini(&ids);
    return ok;
}

static tg_status watch_score(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *err) {
    (void)state, (void)err;
    for (size_t i = 0; i < n; i++) {
        const tg_reward_input *x = &in[i];
        wrong += !same(x->tokens, x->n_tokens, x->text, x->text_len);
        wrong += x->n_tokens > 1 &&
                 (!x->before || !same(x->tokens, x->n_tokens - 1, x->before, x->before_len));
        calls++;
        out[i] = (tg_reward_value){TG_REWARD_OK, 1};
    }
    return TG_OK;
}

static tg_status idle_score(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err) {
    (void)state, (void)err;
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_OK, (double)in[i].text_len};
    return TG_OK;
}

static const tg_opt no_options[] = {TG_OPT_END};
static const tg_reward_ops watching = {
    .entry = {.name = "watching", .summary = "", .options = no_options, .built = true},
    .wants_before = true,
    .deterministic = true,
    .score = watch_score};
static const tg_reward_ops idle = {
    .entry = {.name = "idle", .summary = "", .options = no_options, .built = true},
    .deterministic = true,
    .score = idle_score};

typedef struct fixture {
    tg_run_config config;
    tg_env_settings settings;
    tg_env *env;
    tg_slot slot;
} fixture;

static bool open_fixture(fixture *f, const char *tokenizer, const char *more,
                         const tg_reward_ops *reward) {
    char yaml[1024], path[256];
    tg_error err = {0};
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "golden/env/%s", tokenizer);
    snprintf(yaml, sizeof yaml,
             "tokenizer: {model_name: \"%s\"}\n"
             "reward_fn: {id: sentences_with_dates}\n"
             "datapool: {id: dummy_pool, args: {prompt: \"Hello\"}}\n"
             "env: {args: {max_prompt_length: 8, max_episode_length: %d%s}}\n"
             "alg: {id: ppo}\ntrain_evaluation: {}\n",
             tg_test_path(path), LENGTH, more);
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK) st = tg_run_config_init(&f->config, &arena, root, &err);
    if (st == TG_OK) st = tg_env_settings_read(&f->settings, &f->config, &err);
    f->settings.reward.entry = &reward->entry;
    if (st == TG_OK) st = tg_env_open(&f->env, &f->settings, &err);
    if (st == TG_OK) st = tg_slot_init(&f->slot, f->env, 0, &err);
    the_env = f->env;
    return tg_check(st == TG_OK, __FILE__, __LINE__, "fixture: %s", err.msg);
}

static void close_fixture(fixture *f) {
    tg_slot_fini(&f->slot);
    tg_env_close(&f->env);
    tg_run_config_fini(&f->config);
    tg_buf_fini(&whole);
}

/* An episode of random tokens in runs of 1 to 4; texts are asked for now and then. */
static void play(fixture *f, uint64_t episode, bool texts) {
    tg_rng rng = tg_rng_at(3, TG_RNG_TEST, episode, 0);
    tg_reset_item item = {.episode = episode, .split = TG_SPLIT_TRAIN};
    tg_reset_result reset;
    tg_slot_reset(f->env, &f->slot, &item, false, &reset);
    CHECK_EQ(reset.code, TG_CODE_OK);
    tg_step_result r = {0};
    for (uint32_t at = 0; at < LENGTH && !r.truncated; at += r.n_applied) {
        int32_t tokens[4];
        size_t n = 1 + (size_t)tg_rng_below(&rng, 4);
        for (size_t i = 0; i < n; i++)
            tokens[i] = (int32_t)tg_rng_below(&rng, f->env->spec.vocab_size);
        tg_step_item step = {0, episode, at, tokens, n};
        tg_slot_step(f->env, &f->slot, &step, texts && tg_rng_below(&rng, 8) == 0, &r);
        CHECK_EQ(r.code, TG_CODE_OK);
    }
    CHECK(r.truncated);
}

static void watch(const char *tokenizer, const char *more) {
    fixture f;
    if (!open_fixture(&f, tokenizer, more, &watching)) return;
    calls = wrong = 0;
    for (uint64_t e = 0; e < 20; e++) play(&f, e, true);
    CHECK_EQ(calls, 20 * LENGTH);
    CHECK_EQ(wrong, 0);
    close_fixture(&f);
}

TEST(growing_texts_equal_whole_ones) {
    watch("tokenizer", "");
    watch("tokenizer", ", context_start_token: 7");
    watch("tokenizer-eos", "");
}

TEST(growing_texts_allocate_nothing) {
    fixture f;
    if (!open_fixture(&f, "tokenizer", "", &idle)) return;
    for (uint64_t e = 0; e < 40; e++) play(&f, e, false);
    uint64_t before = tg_alloc_calls();
    for (uint64_t e = 0; e < 40; e++) play(&f, e, false);
    CHECK_EQ(tg_alloc_calls() - before, 0);
    close_fixture(&f);
}

TEST_MAIN
