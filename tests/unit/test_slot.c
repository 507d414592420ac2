/* The environment and its slots: prompts, order, steps, identity, rewards, failures. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "env-server/env/slot.h"
#include "tests/support/tg_test.h"

#include <stdio.h>

enum { EOS = 264 }; /* of golden/env/tokenizer */

static tg_error err;

typedef struct fixture {
    tg_run_config config;
    tg_env_settings settings;
    tg_env *env;
    tg_slot slot;
} fixture;

/* A config with this env section; more is appended (top-level sections). */
static bool open_fixture(fixture *f, const char *env_args, const char *datapool,
                         const char *tokenizer) {
    char yaml[2048];
    memset(f, 0, sizeof *f);
    snprintf(yaml, sizeof yaml,
             "tokenizer: {model_name: \"%s\"}\n"
             "reward_fn: {id: increasing_numbers, args: {min_tokens: 4}}\n"
             "datapool: %s\n"
             "env: {args: %s}\n"
             "alg: {id: ppo}\n"
             "train_evaluation: {metrics: [{id: dates}, {id: increasing_numbers, args: "
             "{min_tokens: 4}}]}\n",
             tg_test_path(tokenizer ? tokenizer : "golden/env/tokenizer"),
             datapool ? datapool : "{id: dummy_pool, args: {prompt: \"Hello the\", n_samples: 10}}",
             env_args ? env_args
                      : "{max_prompt_length: 8, max_episode_length: 6, terminate_on_eos: true}");
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK) st = tg_run_config_init(&f->config, &arena, root, &err);
    if (st == TG_OK) st = tg_env_settings_read(&f->settings, &f->config, &err);
    if (st == TG_OK) st = tg_env_open(&f->env, &f->settings, &err);
    if (st == TG_OK) st = tg_slot_init(&f->slot, f->env, 3, &err);
    return tg_check(st == TG_OK, __FILE__, __LINE__, "fixture: %s", err.msg);
}

static void close_fixture(fixture *f) {
    tg_slot_fini(&f->slot);
    tg_env_close(&f->env);
    tg_run_config_fini(&f->config);
}

static tg_reset_result reset(fixture *f, uint64_t episode, uint64_t seed) {
    tg_reset_item item = {.slot = 3, .episode = episode, .seed = seed, .split = TG_SPLIT_TRAIN};
    tg_reset_result r;
    tg_slot_reset(f->env, &f->slot, &item, true, &r);
    return r;
}

static tg_step_result step(fixture *f, uint64_t episode, uint32_t at, const int32_t *tokens,
                           size_t n) {
    tg_step_item item = {3, episode, at, tokens, n};
    tg_step_result r;
    tg_slot_step(f->env, &f->slot, &item, false, &r);
    return r;
}

/* " 1", " 2", " 3": one token each. */
static const int32_t numbers[] = {256, 257, 258};

/* In one step or over several, with what it ends in the middle of a run of tokens left out. */
TEST(a_stop_string_ends_the_episode) {
    fixture f;
    if (!open_fixture(&f,
                      "{max_prompt_length: 8, max_episode_length: 6, stop_strings: [x, ' 2 3']}",
                      NULL, NULL))
        return;
    reset(&f, 1, 1);
    int32_t run[] = {257, 256, 257, 258, 256};
    tg_step_result r = step(&f, 1, 0, run, 5);
    CHECK(r.code == TG_CODE_OK && r.n_applied == 4 && r.terminated && !r.truncated);
    CHECK_EQ(r.stop, TG_STOP_SEQUENCE);
    tg_snapshot snapshot;
    tg_slot_snapshot(f.env, &f.slot, &snapshot);
    CHECK(snapshot.terminated && snapshot.stop == TG_STOP_SEQUENCE);
    reset(&f, 2, 1);
    r = step(&f, 2, 0, &numbers[1], 1);
    CHECK(r.code == TG_CODE_OK && !r.terminated);
    r = step(&f, 2, 1, &numbers[2], 1);
    CHECK(r.terminated && r.stop == TG_STOP_SEQUENCE && r.n_applied == 1);
    close_fixture(&f);
}

TEST(reset_gives_the_prompt) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    tg_reset_result r = reset(&f, 7, 1);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK_STR(r.prompt_text, "Hello the");
    CHECK_EQ(r.n_prompt, 4); /* H e llo Ġthe */
    CHECK(r.sample < 10);
    CHECK_EQ(f.slot.state, TG_SLOT_READY);
    CHECK_EQ(f.env->spec.vocab_size, 265);
    CHECK_EQ(f.env->spec.eos_id, EOS);
    CHECK_EQ(f.env->spec.pad_id, EOS);
    close_fixture(&f);
}

TEST(an_episode_ends_at_eos_or_at_its_length) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    reset(&f, 0, 1);
    tg_step_result r = step(&f, 0, 0, numbers, 2);
    CHECK(r.code == TG_CODE_OK && r.n_applied == 2 && !r.terminated && !r.truncated);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK_NEAR(r.rewards[1], 0, 0);
    CHECK_EQ(f.slot.state, TG_SLOT_RUNNING);
    int32_t rest[] = {258, EOS, 65, 65}; /* what follows EOS is not applied */
    r = step(&f, 0, 2, rest, 4);
    CHECK(r.terminated && !r.truncated && r.stop == TG_STOP_EOS && r.n_applied == 2);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK_NEAR(r.rewards[1], 1.0, 0); /* 1 2 3: three of three words, min_tokens / 2 = 2 */
    CHECK_STR(r.text, " 1 2 3");
    CHECK_EQ(r.n_components, 1);
    CHECK_STR(r.components[0].name, "increasing_numbers");
    CHECK_NEAR(r.components[0].value, 1.0, 0);
    CHECK_EQ(f.slot.state, TG_SLOT_TERMINATED);

    reset(&f, 1, 1);
    int32_t many[] = {256, 256, 256, 256, 256, EOS, 256};
    r = step(&f, 1, 0, many, 5);
    CHECK(!r.terminated && !r.truncated && r.n_applied == 5);
    r = step(&f, 1, 5, many, 7);
    CHECK(!r.terminated && r.truncated && r.stop == TG_STOP_LENGTH && r.n_applied == 1);
    reset(&f, 2, 1);
    r = step(&f, 2, 0, many, 7); /* EOS at the last place: terminated, not truncated */
    CHECK(r.terminated && !r.truncated && r.n_applied == 6);
    close_fixture(&f);
}

TEST(eos_is_a_token_like_others_unless_it_terminates) {
    fixture f;
    if (!open_fixture(&f, "{max_prompt_length: 8, max_episode_length: 3}", NULL, NULL)) return;
    reset(&f, 0, 1);
    int32_t tokens[] = {EOS, 256, EOS};
    tg_step_result r = step(&f, 0, 0, tokens, 3);
    CHECK(!r.terminated && r.truncated && r.n_applied == 3);
    CHECK_STR(r.text, " 1");
    CHECK_NEAR(r.rewards[2], 0.5, 0);
    close_fixture(&f);
}

TEST(one_by_one_equals_one_run) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 65, 257, 11, 258, 256};
    reset(&f, 0, 9);
    uint64_t digests[6];
    double rewards[6];
    for (uint32_t i = 0; i < 6; i++) {
        tg_step_result r = step(&f, 0, i, &tokens[i], 1);
        digests[i] = r.state_digest;
        rewards[i] = r.rewards[0];
    }
    uint64_t sample = f.slot.sample_index;
    tg_reset_item again = {.slot = 3,
                           .episode = 500,
                           .seed = 9,
                           .split = TG_SPLIT_TRAIN,
                           .has_sample = true,
                           .sample = sample};
    tg_reset_result reset_result;
    tg_slot_reset(f.env, &f.slot, &again, false, &reset_result);
    tg_step_result r = step(&f, 500, 0, tokens, 6);
    CHECK(r.truncated && r.state_digest == digests[5]);
    for (int i = 0; i < 6; i++) CHECK_NEAR(r.rewards[i], rewards[i], 0);
    close_fixture(&f);
}

TEST(step_identity) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    int32_t other[] = {258, 257};
    CHECK_EQ(step(&f, 0, 0, numbers, 1).code, TG_CODE_FAILED_STATE); /* before reset */
    reset(&f, 5, 1);
    CHECK_EQ(step(&f, 4, 0, numbers, 1).code, TG_CODE_STALE);
    CHECK_EQ(step(&f, 6, 0, numbers, 1).code, TG_CODE_STALE);
    tg_step_result gap = step(&f, 5, 2, numbers, 1);
    CHECK(gap.code == TG_CODE_GAP && gap.expected_step == 0);
    uint64_t d0 = step(&f, 5, 0, numbers, 2).state_digest;
    tg_step_result r = step(&f, 5, 0, numbers, 2);
    CHECK(r.code == TG_CODE_OK && r.replayed && r.state_digest == d0 && r.n_applied == 2);
    CHECK_EQ(step(&f, 5, 0, numbers, 1).code, TG_CODE_CONFLICT);
    CHECK_EQ(step(&f, 5, 0, other, 2).code, TG_CODE_CONFLICT);
    CHECK_EQ(step(&f, 5, 1, numbers, 1).code, TG_CODE_STALE); /* inside the last run */
    gap = step(&f, 5, 4, numbers, 1);
    CHECK(gap.code == TG_CODE_GAP && gap.expected_step == 2);
    r = step(&f, 5, 2, other, 2);
    CHECK(r.code == TG_CODE_OK && !r.replayed && r.state_digest != d0);
    CHECK_EQ(step(&f, 5, 0, numbers, 2).code, TG_CODE_STALE);
    int32_t end = EOS;
    r = step(&f, 5, 4, &end, 1);
    CHECK(r.terminated && !r.replayed);
    CHECK_EQ(step(&f, 5, 5, numbers, 1).code, TG_CODE_FAILED_STATE);
    CHECK_EQ(step(&f, 5, 9, numbers, 1).code, TG_CODE_FAILED_STATE);
    tg_step_result repeated = step(&f, 5, 4, &end, 1); /* also after the end */
    CHECK(repeated.terminated && repeated.replayed);
    CHECK_NEAR(repeated.rewards[0], r.rewards[0], 0);
    CHECK_STR(repeated.text, " 1 2 3 2");
    close_fixture(&f);
}

TEST(compat_goes_on_after_the_end) {
    fixture f;
    if (!open_fixture(&f, "{max_prompt_length: 8, max_episode_length: 2, terminate_on_eos: true}",
                      NULL, NULL))
        return;
    f.settings.context.compat = true;
    reset(&f, 5, 1);
    CHECK(step(&f, 5, 0, numbers, 2).truncated);
    tg_step_item item = {3, 5, 2, numbers + 2, 1};
    tg_step_result r;
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK(!r.truncated && !r.terminated);
    CHECK_STR(r.text, " 2 3"); /* the context has two places */
    int32_t eos = EOS;
    CHECK(step(&f, 5, 3, &eos, 1).terminated);
    close_fixture(&f);
}

TEST(spec_tells_what_a_client_pads_with) {
    fixture f;
    if (!open_fixture(&f, "{max_prompt_length: 8, context_start_token: 7}", NULL, NULL)) return;
    const tg_env_spec *s = &f.env->spec;
    CHECK_EQ(s->n_context_start, 1);
    CHECK_EQ(s->context_start[0], 7);
    CHECK(s->has_context_start && s->has_reward && !s->batched_reward && !s->compat);
    CHECK_EQ(s->n_tokens, 265);
    close_fixture(&f);
}

TEST(bad_tokens_change_nothing) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    reset(&f, 0, 1);
    int32_t bad[] = {256, 265}, negative = -1;
    tg_step_result r = step(&f, 0, 0, bad, 2);
    CHECK_EQ(r.code, TG_CODE_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "265"));
    CHECK_EQ(step(&f, 0, 0, &negative, 1).code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(step(&f, 0, 0, numbers, 0).code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(tg_slot_length(f.env, &f.slot), 0);
    CHECK_EQ(step(&f, 0, 0, numbers, 1).code, TG_CODE_OK);
    close_fixture(&f);
}

TEST(reset_is_idempotent) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    tg_reset_result a = reset(&f, 5, 1);
    uint64_t digest = a.state_digest, sample = a.sample;
    step(&f, 5, 0, numbers, 1);
    a = reset(&f, 5, 1);
    CHECK(a.code == TG_CODE_OK && a.state_digest == digest && a.sample == sample);
    CHECK_EQ(step(&f, 5, 1, numbers, 1).code, TG_CODE_OK); /* the episode went on */
    CHECK_EQ(reset(&f, 5, 2).code, TG_CODE_CONFLICT);
    CHECK_EQ(reset(&f, 6, 1).code, TG_CODE_OK);
    CHECK_EQ(tg_slot_length(f.env, &f.slot), 0);
    tg_reset_item item = {
        .slot = 3, .episode = 8, .split = TG_SPLIT_TRAIN, .has_sample = true, .sample = 10};
    tg_reset_result r;
    tg_slot_reset(f.env, &f.slot, &item, true, &r);
    CHECK_EQ(r.code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(f.slot.state, TG_SLOT_FREE);
    close_fixture(&f);
}

TEST(prompt_order_is_a_permutation_of_seed_and_episode_alone) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    int seen[10] = {0}, differs = 0;
    uint64_t first[20];
    for (uint64_t e = 0; e < 20; e++) {
        first[e] = reset(&f, e, 77).sample;
        if (e < 10) seen[first[e]]++;
    }
    for (int i = 0; i < 10; i++) CHECK_EQ(seen[i], 1);
    for (uint64_t e = 0; e < 10; e++)
        differs += first[e] != first[e + 10]; /* another order in the next pass */
    CHECK(differs > 0);
    for (uint64_t e = 19; e > 0; e -= 3) {
        CHECK_EQ(tg_sampler_pick(&f.env->samplers[TG_SPLIT_TRAIN], 77, e), first[e]);
        if (e < 3) break;
    }
    close_fixture(&f);
}

static tg_status fake_weight(const void *state, uint64_t i, double *out, tg_error *e) {
    (void)state, (void)e;
    *out = (double)i;
    return TG_OK;
}

TEST(weighted_sampling) {
    static const tg_datapool_ops weighted = {.weight = fake_weight};
    tg_datapool pool = {.ops = &weighted, .count = 5};
    tg_sampler s;
    enum { N = 20000 };
    for (int scale = 1; scale <= 2; scale++) {
        REQUIRE_OK(tg_sampler_init(&s, &pool, scale, &err));
        double count[5] = {0}, total = 0;
        for (uint64_t e = 0; e < N; e++) count[tg_sampler_pick(&s, 3, e)]++;
        for (int i = 0; i < 5; i++) total += pow(i, scale);
        for (int i = 0; i < 5; i++) CHECK_NEAR(count[i] / N, pow(i, scale) / total, 0.015);
        CHECK_EQ(count[0], 0);
        tg_sampler_fini(&s);
    }
    REQUIRE_OK(tg_sampler_init(&s, &pool, 0, &err)); /* scale 0: weights do not count */
    CHECK(!s.cumulative);
    tg_sampler_fini(&s);
    pool.count = 1; /* all weights 0 */
    CHECK_EQ(tg_sampler_init(&s, &pool, 1, &err), TG_DATA);
}

TEST(prompts_are_cut_between_the_special_tokens) {
    fixture f;
    static const char pool[] = "{id: dummy_pool, args: {prompt: abcdefgh}}";
    const struct {
        const char *side;
        int32_t want[5];
    } cases[] = {{"left", {266, 69, 70, 71, 265}},
                 {"right", {266, 64, 65, 66, 265}}}; /* transformers' answer */
    for (int i = 0; i < 2; i++) {
        char args[128];
        snprintf(args, sizeof args, "{max_prompt_length: 5, prompt_truncation_side: %s}",
                 cases[i].side);
        if (!open_fixture(&f, args, pool, "golden/env/tokenizer-eos")) return;
        tg_reset_result r = reset(&f, 0, 1);
        CHECK_EQ(r.n_prompt, 5);
        for (size_t k = 0; k < r.n_prompt; k++) CHECK_EQ(r.prompt[k], cases[i].want[k]);
        CHECK_EQ(f.env->spec.pad_id, 264);
        CHECK_EQ(f.env->context_start.n, 2); /* the encoding of the empty text */
        close_fixture(&f);
    }
    if (!open_fixture(&f, "{max_prompt_length: 50, context_start_token: 72}", pool,
                      "golden/env/tokenizer-eos"))
        return;
    CHECK_EQ(reset(&f, 0, 1).n_prompt, 10);
    close_fixture(&f);
}

TEST(a_start_token_stands_in_the_context_until_it_is_pushed_out) {
    fixture f; /* 'A' (id 32) as start token: not special, so it shows */
    if (!open_fixture(&f, "{max_prompt_length: 8, max_episode_length: 3, context_start_token: 32}",
                      NULL, NULL))
        return;
    reset(&f, 0, 1);
    tg_step_item item = {3, 0, 0, numbers, 2};
    tg_step_result r;
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK_STR(r.text, "A 1 2");
    item = (tg_step_item){3, 0, 2, numbers + 2, 1};
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK(r.truncated);
    CHECK_STR(r.text, " 1 2 3");
    close_fixture(&f);
}

TEST(text_is_cleaned_up) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    reset(&f, 0, 1);
    tg_ids ids = {0};
    tg_buf text = {0};
    static const char raw[] = "it 's n't fine , is it ?";
    CHECK_OK(tg_tokenizer_encode(f.env->tokenizer, raw, strlen(raw), 0, &ids, &err));
    CHECK_OK(tg_env_decode(f.env, ids.data, ids.n, &text, &err));
    CHECK_STR(text.data, "it'sn't fine, is it?");
    tg_ids_fini(&ids);
    tg_buf_fini(&text);
    close_fixture(&f);
}

/* ---- rewards of other kinds ---------------------------------------------------------------- */

static tg_status dense_score(const void *state, const tg_reward_input *in, size_t n,
                             tg_reward_value *out, tg_error *e) {
    (void)state, (void)e;
    for (size_t i = 0; i < n; i++)
        out[i] = (tg_reward_value){TG_REWARD_OK, (double)in[i].text_len + (in[i].done ? 100 : 0)};
    return TG_OK;
}
static tg_status failing_score(const void *state, const tg_reward_input *in, size_t n,
                               tg_reward_value *out, tg_error *e) {
    (void)state, (void)in, (void)n, (void)out;
    return tg_fail(e, TG_UNAVAILABLE, "the scorer is away");
}
static const tg_opt no_options[] = {TG_OPT_END};
static const tg_reward_ops dense = {
    .entry = {.name = "dense", .summary = "", .options = no_options, .built = true},
    .score = dense_score};
static const tg_reward_ops failing = {
    .entry = {.name = "failing", .summary = "", .options = no_options, .built = true},
    .terminal = true,
    .score = failing_score};

static bool open_with_reward(fixture *f, const tg_reward_ops *ops) {
    if (!open_fixture(f, NULL, NULL, NULL)) return false;
    tg_slot_fini(&f->slot);
    tg_env_close(&f->env);
    f->settings.reward.entry = &ops->entry;
    CHECK_OK(tg_env_open(&f->env, &f->settings, &err));
    CHECK_OK(tg_slot_init(&f->slot, f->env, 3, &err));
    return f->env;
}

TEST(dense_rewards_see_every_prefix) {
    fixture f;
    if (!open_with_reward(&f, &dense)) return;
    CHECK(!f.env->spec.deterministic);
    reset(&f, 0, 1);
    tg_step_result r = step(&f, 0, 0, numbers, 3);
    CHECK_NEAR(r.rewards[0], 2, 0);
    CHECK_NEAR(r.rewards[1], 4, 0);
    CHECK_NEAR(r.rewards[2], 6, 0);
    CHECK_NEAR(r.components[0].value, 12, 0);
    int32_t end = EOS;
    CHECK_NEAR(step(&f, 0, 3, &end, 1).rewards[0], 106, 0);
    close_fixture(&f);
}

TEST(a_failed_reward_ends_the_episode_without_a_number) {
    fixture f;
    if (!open_with_reward(&f, &failing)) return;
    reset(&f, 0, 1);
    int32_t tokens[] = {256, EOS};
    tg_step_result r = step(&f, 0, 0, tokens, 2);
    CHECK_EQ(r.code, TG_CODE_REWARD_FAILED);
    CHECK_EQ(r.reward_status, TG_REWARD_FAILED);
    CHECK(strstr(r.message, "failing") && strstr(r.message, "the scorer is away"));
    CHECK(r.terminated && r.n_applied == 2);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK(isnan(r.rewards[1]));
    CHECK_EQ(step(&f, 0, 2, tokens, 1).code, TG_CODE_FAILED_STATE);
    r = step(&f, 0, 0, tokens, 2);
    CHECK(r.replayed && r.code == TG_CODE_REWARD_FAILED && strstr(r.message, "away"));
    close_fixture(&f);
}

/* ---- questions ----------------------------------------------------------------------------- */

TEST(samples_metrics_and_scores) {
    fixture f;
    tg_arena a = {0};
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    tg_samples samples;
    CHECK_OK(tg_env_samples(f.env, &(tg_sample_range){TG_SPLIT_VAL, 8, 5}, &a, &samples, &err));
    CHECK_EQ(samples.n, 2); /* the pool ends */
    CHECK_STR(samples.items[1].id, "9");
    CHECK_EQ(samples.items[1].n_prompt, 4);

    tg_generation g[] = {{.sample = 0, .tokens = numbers, .n_tokens = 3},
                         {.sample = 1, .text = "on 2020-01-02"}};
    tg_metric_request req = {.split = TG_SPLIT_TEST, .items = g, .n = 2, .want_text = true};
    tg_metric_reply reply;
    CHECK_OK(tg_env_metric(f.env, &req, &a, &reply, &err));
    REQUIRE(reply.n_values == 2 && reply.n_texts == 2);
    CHECK_STR(reply.values[0].key, "synthetic/dates_in_text");
    CHECK_NEAR(reply.values[0].corpus, 0.5, 0);
    CHECK_NEAR(reply.values[1].samples[0], 1, 0);
    CHECK_STR(reply.texts[0], " 1 2 3");
    g[0].sample = 10;
    CHECK_EQ(tg_env_metric(f.env, &req, &a, &reply, &err), TG_USAGE);

    tg_score_item item = {.id = 9, .prompt = "", .completion = "1 2 9", .meta_json = ""};
    tg_score_request score = {.fn = "", .items = &item, .n = 1};
    tg_score_reply scored;
    CHECK_OK(tg_env_score(f.env, &score, &a, &scored, &err));
    CHECK(scored.n == 1 && scored.items[0].id == 9 && scored.items[0].status == TG_REWARD_OK);
    CHECK_NEAR(scored.items[0].value, 1, 0);
    score.fn = "rouge";
    CHECK_EQ(tg_env_score(f.env, &score, &a, &scored, &err), TG_NOINPUT);
    tg_arena_fini(&a);
    close_fixture(&f);
}

/* ---- memory -------------------------------------------------------------------------------- */

TEST(every_allocation_of_a_step_may_fail) {
    fixture f;
    int failures = 0;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 257, EOS};
    uint64_t want = 0;
    for (int64_t n = -1; n < 100; n++) {
        tg_slot_fini(&f.slot);
        REQUIRE_OK(tg_slot_init(&f.slot, f.env, 3, &err));
        tg_alloc_fail_after(n);
        bool failed = false;
        tg_reset_result r;
        tg_step_result s;
        while ((r = reset(&f, 0, 1)).code == TG_CODE_OVERLOADED) failed = true;
        CHECK_EQ(r.code, TG_CODE_OK);
        while ((s = step(&f, 0, 0, tokens, 3)).code == TG_CODE_OVERLOADED) failed = true;
        CHECK_EQ(s.code, TG_CODE_OK);
        tg_alloc_fail_after(-1);
        if (n < 0) want = s.state_digest;
        CHECK(s.state_digest == want && s.terminated);
        CHECK_NEAR(s.rewards[2], 1, 0);
        if (n >= 0 && !failed) break;
        failures += failed;
    }
    CHECK(failures >= 4);
    close_fixture(&f);
}

TEST(steady_state_allocates_nothing) {
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 257, 258, 256, 257, 258};
    uint64_t before = 0;
    for (uint64_t e = 0; e < 20; e++) {
        if (e == 10) before = tg_alloc_calls();
        reset(&f, e, 1);
        for (uint32_t i = 0; i < 6; i++) step(&f, e, i, &tokens[i], 1);
    }
    CHECK_EQ(tg_alloc_calls() - before, 0);
    close_fixture(&f);
}

TEST(every_allocation_of_opening_may_fail) {
    int failures = 0;
    fixture f;
    if (!open_fixture(&f, NULL, NULL, NULL)) return;
    for (int64_t n = 0; n < 5000; n += n < 50 ? 1 : 37) {
        tg_env *env;
        tg_alloc_fail_after(n);
        tg_status st = tg_env_open(&env, &f.settings, &err);
        tg_alloc_fail_after(-1);
        tg_env_close(&env);
        if (st == TG_OK) break;
        CHECK_EQ(st, TG_NOMEM);
        failures++;
    }
    CHECK(failures > 10);
    close_fixture(&f);
}

TEST_MAIN
