/* The slots of an environment: reset, steps, identity, end. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "tests/support/slot_case.h"
#include "tests/support/tg_test.h"

#include <stdio.h>

/* In one step or over several, with what it ends in the middle of a run of tokens left out. */
TEST(a_stop_string_ends_the_episode) {
    slot_case f;
    if (!slot_case_open(&f,
                        "{max_prompt_length: 8, max_episode_length: 6, stop_strings: [x, ' 2 3']}",
                        NULL, NULL))
        return;
    slot_case_reset(&f, 1, 1);
    int32_t run[] = {257, 256, 257, 258, 256};
    tg_step_result r = slot_case_step(&f, 1, 0, run, 5);
    CHECK(r.code == TG_CODE_OK && r.n_applied == 4 && r.terminated && !r.truncated);
    CHECK_EQ(r.stop, TG_STOP_SEQUENCE);
    tg_snapshot snapshot;
    tg_slot_snapshot(f.env, &f.slot, &snapshot);
    CHECK(snapshot.terminated && snapshot.stop == TG_STOP_SEQUENCE);
    slot_case_reset(&f, 2, 1);
    r = slot_case_step(&f, 2, 0, &slot_case_numbers[1], 1);
    CHECK(r.code == TG_CODE_OK && !r.terminated);
    r = slot_case_step(&f, 2, 1, &slot_case_numbers[2], 1);
    CHECK(r.terminated && r.stop == TG_STOP_SEQUENCE && r.n_applied == 1);
    slot_case_close(&f);
}

TEST(reset_gives_the_prompt) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    tg_reset_result r = slot_case_reset(&f, 7, 1);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK_STR(r.prompt_text, "Hello the");
    CHECK_EQ(r.n_prompt, 4); /* H e llo Ġthe */
    CHECK(r.sample < 10);
    CHECK_EQ(f.slot.state, TG_SLOT_READY);
    CHECK_EQ(f.env->spec.vocab_size, 265);
    CHECK_EQ(f.env->spec.eos_id, SLOT_CASE_EOS);
    CHECK_EQ(f.env->spec.pad_id, SLOT_CASE_EOS);
    slot_case_close(&f);
}

TEST(an_episode_ends_at_eos_or_at_its_length) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    slot_case_reset(&f, 0, 1);
    tg_step_result r = slot_case_step(&f, 0, 0, slot_case_numbers, 2);
    CHECK(r.code == TG_CODE_OK && r.n_applied == 2 && !r.terminated && !r.truncated);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK_NEAR(r.rewards[1], 0, 0);
    CHECK_EQ(f.slot.state, TG_SLOT_RUNNING);
    int32_t rest[] = {258, SLOT_CASE_EOS, 65, 65}; /* what follows SLOT_CASE_EOS is not applied */
    r = slot_case_step(&f, 0, 2, rest, 4);
    CHECK(r.terminated && !r.truncated && r.stop == TG_STOP_EOS && r.n_applied == 2);
    CHECK_NEAR(r.rewards[0], 0, 0);
    CHECK_NEAR(r.rewards[1], 1.0, 0); /* 1 2 3: three of three words, min_tokens / 2 = 2 */
    CHECK_STR(r.text, " 1 2 3");
    CHECK_EQ(r.n_components, 1);
    CHECK_STR(r.components[0].name, "increasing_numbers");
    CHECK_NEAR(r.components[0].value, 1.0, 0);
    CHECK_EQ(f.slot.state, TG_SLOT_TERMINATED);

    slot_case_reset(&f, 1, 1);
    int32_t many[] = {256, 256, 256, 256, 256, SLOT_CASE_EOS, 256};
    r = slot_case_step(&f, 1, 0, many, 5);
    CHECK(!r.terminated && !r.truncated && r.n_applied == 5);
    r = slot_case_step(&f, 1, 5, many, 7);
    CHECK(!r.terminated && r.truncated && r.stop == TG_STOP_LENGTH && r.n_applied == 1);
    slot_case_reset(&f, 2, 1);
    r = slot_case_step(&f, 2, 0, many,
                       7); /* SLOT_CASE_EOS at the last place: terminated, not truncated */
    CHECK(r.terminated && !r.truncated && r.n_applied == 6);
    slot_case_close(&f);
}

TEST(eos_is_a_token_like_others_unless_it_terminates) {
    slot_case f;
    if (!slot_case_open(&f, "{max_prompt_length: 8, max_episode_length: 3}", NULL, NULL)) return;
    slot_case_reset(&f, 0, 1);
    int32_t tokens[] = {SLOT_CASE_EOS, 256, SLOT_CASE_EOS};
    tg_step_result r = slot_case_step(&f, 0, 0, tokens, 3);
    CHECK(!r.terminated && r.truncated && r.n_applied == 3);
    CHECK_STR(r.text, " 1");
    CHECK_NEAR(r.rewards[2], 0.5, 0);
    slot_case_close(&f);
}

TEST(one_by_one_equals_one_run) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    int32_t tokens[] = {256, 65, 257, 11, 258, 256};
    slot_case_reset(&f, 0, 9);
    uint64_t digests[6];
    double rewards[6];
    for (uint32_t i = 0; i < 6; i++) {
        tg_step_result r = slot_case_step(&f, 0, i, &tokens[i], 1);
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
    tg_step_result r = slot_case_step(&f, 500, 0, tokens, 6);
    CHECK(r.truncated && r.state_digest == digests[5]);
    for (int i = 0; i < 6; i++) CHECK_NEAR(r.rewards[i], rewards[i], 0);
    slot_case_close(&f);
}

TEST(step_identity) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    int32_t other[] = {258, 257};
    CHECK_EQ(slot_case_step(&f, 0, 0, slot_case_numbers, 1).code,
             TG_CODE_FAILED_STATE); /* before reset */
    slot_case_reset(&f, 5, 1);
    CHECK_EQ(slot_case_step(&f, 4, 0, slot_case_numbers, 1).code, TG_CODE_STALE);
    CHECK_EQ(slot_case_step(&f, 6, 0, slot_case_numbers, 1).code, TG_CODE_STALE);
    tg_step_result gap = slot_case_step(&f, 5, 2, slot_case_numbers, 1);
    CHECK(gap.code == TG_CODE_GAP && gap.expected_step == 0);
    uint64_t d0 = slot_case_step(&f, 5, 0, slot_case_numbers, 2).state_digest;
    tg_step_result r = slot_case_step(&f, 5, 0, slot_case_numbers, 2);
    CHECK(r.code == TG_CODE_OK && r.replayed && r.state_digest == d0 && r.n_applied == 2);
    CHECK_EQ(slot_case_step(&f, 5, 0, slot_case_numbers, 1).code, TG_CODE_CONFLICT);
    CHECK_EQ(slot_case_step(&f, 5, 0, other, 2).code, TG_CODE_CONFLICT);
    CHECK_EQ(slot_case_step(&f, 5, 1, slot_case_numbers, 1).code,
             TG_CODE_STALE); /* inside the last run */
    gap = slot_case_step(&f, 5, 4, slot_case_numbers, 1);
    CHECK(gap.code == TG_CODE_GAP && gap.expected_step == 2);
    r = slot_case_step(&f, 5, 2, other, 2);
    CHECK(r.code == TG_CODE_OK && !r.replayed && r.state_digest != d0);
    CHECK_EQ(slot_case_step(&f, 5, 0, slot_case_numbers, 2).code, TG_CODE_STALE);
    int32_t end = SLOT_CASE_EOS;
    r = slot_case_step(&f, 5, 4, &end, 1);
    CHECK(r.terminated && !r.replayed);
    CHECK_EQ(slot_case_step(&f, 5, 5, slot_case_numbers, 1).code, TG_CODE_FAILED_STATE);
    CHECK_EQ(slot_case_step(&f, 5, 9, slot_case_numbers, 1).code, TG_CODE_FAILED_STATE);
    tg_step_result repeated = slot_case_step(&f, 5, 4, &end, 1); /* also after the end */
    CHECK(repeated.terminated && repeated.replayed);
    CHECK_NEAR(repeated.rewards[0], r.rewards[0], 0);
    CHECK_STR(repeated.text, " 1 2 3 2");
    slot_case_close(&f);
}

TEST(compat_goes_on_after_the_end) {
    slot_case f;
    if (!slot_case_open(&f, "{max_prompt_length: 8, max_episode_length: 2, terminate_on_eos: true}",
                        NULL, NULL))
        return;
    f.settings.context.compat = true;
    slot_case_reset(&f, 5, 1);
    CHECK(slot_case_step(&f, 5, 0, slot_case_numbers, 2).truncated);
    tg_step_item item = {3, 5, 2, slot_case_numbers + 2, 1};
    tg_step_result r;
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK_EQ(r.code, TG_CODE_OK);
    CHECK(!r.truncated && !r.terminated);
    CHECK_STR(r.text, " 2 3"); /* the context has two places */
    int32_t eos = SLOT_CASE_EOS;
    CHECK(slot_case_step(&f, 5, 3, &eos, 1).terminated);
    slot_case_close(&f);
}

TEST(spec_tells_what_a_client_pads_with) {
    slot_case f;
    if (!slot_case_open(&f, "{max_prompt_length: 8, context_start_token: 7}", NULL, NULL)) return;
    const tg_env_spec *s = &f.env->spec;
    CHECK_EQ(s->n_context_start, 1);
    CHECK_EQ(s->context_start[0], 7);
    CHECK(s->has_context_start && s->has_reward && !s->batched_reward && !s->compat);
    CHECK_EQ(s->n_tokens, 265);
    slot_case_close(&f);
}

TEST(bad_tokens_change_nothing) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    slot_case_reset(&f, 0, 1);
    int32_t bad[] = {256, 265}, negative = -1;
    tg_step_result r = slot_case_step(&f, 0, 0, bad, 2);
    CHECK_EQ(r.code, TG_CODE_INVALID_ARGUMENT);
    CHECK(strstr(r.message, "265"));
    CHECK_EQ(slot_case_step(&f, 0, 0, &negative, 1).code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(slot_case_step(&f, 0, 0, slot_case_numbers, 0).code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(tg_slot_length(f.env, &f.slot), 0);
    CHECK_EQ(slot_case_step(&f, 0, 0, slot_case_numbers, 1).code, TG_CODE_OK);
    slot_case_close(&f);
}

TEST(reset_is_idempotent) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    tg_reset_result a = slot_case_reset(&f, 5, 1);
    uint64_t digest = a.state_digest, sample = a.sample;
    slot_case_step(&f, 5, 0, slot_case_numbers, 1);
    a = slot_case_reset(&f, 5, 1);
    CHECK(a.code == TG_CODE_OK && a.state_digest == digest && a.sample == sample);
    CHECK_EQ(slot_case_step(&f, 5, 1, slot_case_numbers, 1).code,
             TG_CODE_OK); /* the episode went on */
    CHECK_EQ(slot_case_reset(&f, 5, 2).code, TG_CODE_CONFLICT);
    CHECK_EQ(slot_case_reset(&f, 6, 1).code, TG_CODE_OK);
    CHECK_EQ(tg_slot_length(f.env, &f.slot), 0);
    tg_reset_item item = {
        .slot = 3, .episode = 8, .split = TG_SPLIT_TRAIN, .has_sample = true, .sample = 10};
    tg_reset_result r;
    tg_slot_reset(f.env, &f.slot, &item, true, &r);
    CHECK_EQ(r.code, TG_CODE_INVALID_ARGUMENT);
    CHECK_EQ(f.slot.state, TG_SLOT_FREE);
    slot_case_close(&f);
}

TEST_MAIN
