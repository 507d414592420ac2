/* Which prompts a slot gets, how they are cut, what stands in its context. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "tests/support/slot_case.h"
#include "tests/support/tg_test.h"

#include <stdio.h>

static tg_error err;

TEST(prompt_order_is_a_permutation_of_seed_and_episode_alone) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    int seen[10] = {0}, differs = 0;
    uint64_t first[20];
    for (uint64_t e = 0; e < 20; e++) {
        first[e] = slot_case_reset(&f, e, 77).sample;
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
    slot_case_close(&f);
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
    slot_case f;
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
        if (!slot_case_open(&f, args, pool, "golden/env/tokenizer-eos")) return;
        tg_reset_result r = slot_case_reset(&f, 0, 1);
        CHECK_EQ(r.n_prompt, 5);
        for (size_t k = 0; k < r.n_prompt; k++) CHECK_EQ(r.prompt[k], cases[i].want[k]);
        CHECK_EQ(f.env->spec.pad_id, 264);
        CHECK_EQ(f.env->context_start.n, 2); /* the encoding of the empty text */
        slot_case_close(&f);
    }
    if (!slot_case_open(&f, "{max_prompt_length: 50, context_start_token: 72}", pool,
                        "golden/env/tokenizer-eos"))
        return;
    CHECK_EQ(slot_case_reset(&f, 0, 1).n_prompt, 10);
    slot_case_close(&f);
}

TEST(a_start_token_stands_in_the_context_until_it_is_pushed_out) {
    slot_case f; /* 'A' (id 32) as start token: not special, so it shows */
    if (!slot_case_open(&f,
                        "{max_prompt_length: 8, max_episode_length: 3, context_start_token: 32}",
                        NULL, NULL))
        return;
    slot_case_reset(&f, 0, 1);
    tg_step_item item = {3, 0, 0, slot_case_numbers, 2};
    tg_step_result r;
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK_STR(r.text, "A 1 2");
    item = (tg_step_item){3, 0, 2, slot_case_numbers + 2, 1};
    tg_slot_step(f.env, &f.slot, &item, true, &r);
    CHECK(r.truncated);
    CHECK_STR(r.text, " 1 2 3");
    slot_case_close(&f);
}

TEST(text_is_cleaned_up) {
    slot_case f;
    if (!slot_case_open(&f, NULL, NULL, NULL)) return;
    slot_case_reset(&f, 0, 1);
    tg_ids ids = {0};
    tg_buf text = {0};
    static const char raw[] = "it 's n't fine , is it ?";
    CHECK_OK(tg_tokenizer_encode(f.env->tokenizer, raw, strlen(raw), 0, &ids, &err));
    CHECK_OK(tg_env_decode(f.env, ids.data, ids.n, &text, &err));
    CHECK_STR(text.data, "it'sn't fine, is it?");
    tg_ids_fini(&ids);
    tg_buf_fini(&text);
    slot_case_close(&f);
}

TEST_MAIN
