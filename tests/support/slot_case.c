/* A config in memory, an environment, a slot. */
#include "tests/support/slot_case.h"

#include "common/base/arena.h"
#include "tests/support/tg_test.h"

#include <stdio.h>

tg_status slot_case_open_yaml(slot_case *f, const char *yaml, tg_error *err) {
    memset(f, 0, sizeof *f);
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, err);
    if (st == TG_OK) st = tg_run_config_init(&f->config, &arena, root, err);
    if (st == TG_OK) st = tg_env_settings_read(&f->settings, &f->config, err);
    if (st == TG_OK) st = tg_env_open(&f->env, &f->settings, err);
    if (st == TG_OK) st = tg_slot_init(&f->slot, f->env, 3, err);
    return st;
}

bool slot_case_open(slot_case *f, const char *env_args, const char *datapool,
                    const char *tokenizer) {
    char yaml[2048];
    tg_error err = {0};
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
    tg_status st = slot_case_open_yaml(f, yaml, &err);
    return tg_check(st == TG_OK, __FILE__, __LINE__, "fixture: %s", err.msg);
}

void slot_case_close(slot_case *f) {
    tg_slot_fini(&f->slot);
    tg_env_close(&f->env);
    tg_run_config_fini(&f->config);
}

tg_reset_result slot_case_reset(slot_case *f, uint64_t episode, uint64_t seed) {
    tg_reset_item item = {.slot = 3, .episode = episode, .seed = seed, .split = TG_SPLIT_TRAIN};
    tg_reset_result r;
    tg_slot_reset(f->env, &f->slot, &item, true, &r);
    return r;
}

tg_step_result slot_case_step(slot_case *f, uint64_t episode, uint32_t at, const int32_t *tokens,
                              size_t n) {
    tg_step_item item = {3, episode, at, tokens, n};
    tg_step_result r;
    tg_slot_step(f->env, &f->slot, &item, false, &r);
    return r;
}

const int32_t slot_case_numbers[3] = {256, 257, 258};
