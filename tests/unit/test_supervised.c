/* Pieces of supervised training: schedules, packing, and the memory plan. */
#include "common/base/alloc.h"
#include "learner/train/corpus.h"
#include "learner/train/memory_plan.h"
#include "learner/train/text_order.h"
#include "learner/optim/schedule.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>

static double rate(const char *kind, int64_t warmup, int64_t total, int64_t step) {
    tg_schedule s = {tg_schedule_find(kind), 2.0, warmup, total};
    return tg_schedule_rate(&s, step);
}

/* Values of transformers.get_scheduler with peak 2. */
TEST(schedules_are_those_of_transformers) {
    CHECK_NEAR(rate("constant", 4, 20, 0), 2, 0);
    CHECK_NEAR(rate("constant_with_warmup", 4, 20, 1), 0.5, 0);
    CHECK_NEAR(rate("constant_with_warmup", 4, 20, 19), 2, 0);
    CHECK_NEAR(rate("linear", 0, 20, 0), 2, 0);
    CHECK_NEAR(rate("linear", 4, 20, 2), 1, 0);
    CHECK_NEAR(rate("linear", 4, 20, 12), 1, 1e-15);
    CHECK_NEAR(rate("linear", 4, 20, 20), 0, 0);
    CHECK_NEAR(rate("linear", 4, 20, 25), 0, 0);
    CHECK_NEAR(rate("cosine", 4, 20, 4), 2, 0);
    CHECK_NEAR(rate("cosine", 4, 20, 8), 1.7071067811865475, 1e-15);
    CHECK_NEAR(rate("cosine", 4, 20, 12), 1, 1e-15);
    CHECK_NEAR(rate("cosine", 4, 20, 20), 0, 1e-15);
}

TEST(packing_has_no_padding_and_predicts_every_token_but_the_first) {
    int32_t tokens[] = {5, 6, 7, 8, 9, 1, 3, 3};
    int64_t start[] = {0, 3, 5, 8};
    tg_corpus c = {.tokens = tokens, .start = start, .n = 3};
    tg_packer p;
    tg_error err;
    REQUIRE_OK(tg_packer_init(&p, (tg_pass_caps){.tokens = 4, .seqs = 4, .actions = 4}, &err));
    CHECK(tg_packer_add(&p, &c, 0, -1));
    CHECK(tg_packer_add(&p, &c, 1, -1));
    CHECK(!tg_packer_add(&p, &c, 2, -1)); /* full: nothing of it is taken */
    CHECK_EQ(p.batch.n_tokens, 3);
    CHECK_EQ(p.batch.n_seqs, 2);
    CHECK_EQ(p.batch.n_actions, 3);
    const int32_t expected_tokens[] = {5, 6, 8}, offsets[] = {0, 2, 3}, rows[] = {0, 1, 2},
                  labels[] = {6, 7, 9};
    CHECK(!memcmp(p.batch.tokens, expected_tokens, sizeof expected_tokens));
    CHECK(!memcmp(p.batch.offsets, offsets, sizeof offsets));
    CHECK(!memcmp(p.batch.act_row, rows, sizeof rows));
    CHECK(!memcmp(p.batch.act_token, labels, sizeof labels));
    tg_packer_reset(&p);
    CHECK(tg_packer_add(&p, &c, 2, 3)); /* label 3 is left out, its row stays */
    CHECK_EQ(p.batch.n_tokens, 2);
    CHECK_EQ(p.batch.n_actions, 0);
    tg_packer_fini(&p);
}

TEST(what_the_steps_need_is_known_before) {
    enum { N = 23, STEPS = 30 };
    int32_t tokens[N * N] = {0};
    int64_t start[N + 1] = {0};
    for (int i = 0; i < N; i++) start[i + 1] = start[i] + 2 + i % 9;
    tg_corpus c = {.tokens = tokens, .start = start, .n = N};
    tg_text_order o = {
        .seed = 7, .n = N, .steps_per_epoch = 5, .texts_per_step = 5, .takes_rest = true};
    const tg_pass_caps caps = {.tokens = 20, .seqs = 20, .actions = 20};
    tg_packer p;
    tg_error err;
    REQUIRE_OK(tg_packer_init(&p, caps, &err));
    int most_tokens = 0, most_seqs = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        tg_text_range r = tg_text_order_step(&o, step);
        tg_packer_reset(&p);
        for (int64_t i = r.first; i < r.end; i++) {
            int64_t text = tg_text_order_at(&o, &r, i);
            if (!tg_packer_add(&p, &c, text, -1)) {
                tg_packer_reset(&p);
                CHECK(tg_packer_add(&p, &c, text, -1));
            }
            most_tokens = p.batch.n_tokens > most_tokens ? p.batch.n_tokens : most_tokens;
            most_seqs = p.batch.n_seqs > most_seqs ? p.batch.n_seqs : most_seqs;
        }
    }
    tg_pass_caps need = tg_text_order_caps(&o, &c, caps, 0, STEPS);
    CHECK_EQ(need.tokens, most_tokens);
    CHECK_EQ(need.actions, most_tokens);
    CHECK_EQ(need.seqs, most_seqs);
    CHECK_EQ(need.most_actions, caps.actions);
    tg_packer_fini(&p);
}

TEST(sources_are_packed_beside_their_answers) {
    int32_t tokens[] = {0, 7, 8, 0, 9}, src[] = {1, 2, 3, 4, 5, 6};
    int64_t start[] = {0, 3, 5}, src_start[] = {0, 4, 6};
    tg_corpus c = {.tokens = tokens, .start = start, .n = 2, .src = src, .src_start = src_start};
    tg_packer p;
    tg_error err;
    REQUIRE_OK(
        tg_packer_init(&p, (tg_pass_caps){.tokens = 9, .seqs = 9, .actions = 9, .src = 7}, &err));
    CHECK(tg_packer_add(&p, &c, 1, -1));
    CHECK(tg_packer_add(&p, &c, 0, -1));
    CHECK(!tg_packer_add(&p, &c, 1, -1)); /* no room for its source */
    const int32_t offsets[] = {0, 1, 3}, src_offsets[] = {0, 2, 6}, packed[] = {5, 6, 1, 2, 3, 4},
                  labels[] = {9, 7, 8};
    CHECK_EQ(p.batch.n_seqs, 2);
    CHECK_EQ(p.batch.n_src, 6);
    CHECK(!memcmp(p.batch.offsets, offsets, sizeof offsets));
    CHECK(!memcmp(p.batch.src_offsets, src_offsets, sizeof src_offsets));
    CHECK(!memcmp(p.batch.src_tokens, packed, sizeof packed));
    CHECK(!memcmp(p.batch.act_token, labels, sizeof labels));
    tg_packer_fini(&p);
}

static tg_train_settings plan_settings(void) {
    tg_train_settings s = {
        .supervised = true, .train = TG_MODEL_TRAINABLE, .optim = {.kind = "adamw"}};
    s.eval.eval_batch_size = 8;
    s.eval_gen.num_beams = 1;
    return s;
}

static const tg_arch small = {.family = "gpt2",
                              .n_layers = 2,
                              .n_heads = 2,
                              .n_kv_heads = 2,
                              .head_dim = 8,
                              .width = 16,
                              .mlp_width = 64,
                              .vocab_size = 100,
                              .max_positions = 32,
                              .norm_eps = 1e-5f,
                              .tied_head = true,
                              .bos_id = -1,
                              .eos_id = -1,
                              .pad_id = -1};

static const tg_memory_facts lengths = {.n_envs = 1, .max_prompt = 8, .max_new = 8},
                             longer = {.n_envs = 1, .max_prompt = 30, .max_new = 8};

TEST(a_plan_adds_up_and_refuses_what_cannot_fit) {
    tg_train_settings s = plan_settings();
    tg_memory_plan p;
    tg_error err;
    REQUIRE_OK(tg_memory_plan_make(&p, &s, &small, &lengths, &err));
    uint64_t sum = 0;
    for (int i = 0; i < p.n; i++) sum += p.items[i].phases & p.peak ? p.items[i].bytes : 0;
    CHECK(sum == p.total && p.total > 0 && p.available > 0);
    CHECK_OK(tg_memory_plan_check(&p, 0, &err));
    CHECK_EQ(tg_memory_plan_check(&p, p.total - 1, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "memory_limit") && strstr(err.msg, "try "));
    tg_buf b = {0};
    tg_memory_plan_print(&p, &b);
    CHECK(b.data && strstr(b.data, "total") && strstr(b.data, "available"));
    tg_buf_fini(&b);
    CHECK_EQ(tg_memory_plan_make(&p, &s, &small, &longer, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "positions") != NULL);
}

static uint64_t evaluation_bytes(int64_t max_new_tokens) {
    tg_train_settings s = plan_settings();
    tg_memory_plan p;
    tg_error err;
    s.eval_gen.max_new_tokens = max_new_tokens;
    CHECK_OK(tg_memory_plan_make(&p, &s, &small, &lengths, &err));
    for (int i = 0; i < p.n; i++)
        if (strstr(p.items[i].what, "evaluation")) return p.items[i].bytes;
    return 0;
}

/* Not with what an episode has; beyond the positions nothing is written. */
TEST(evaluations_are_planned_with_what_they_write) {
    CHECK(evaluation_bytes(4) < evaluation_bytes(8));
    CHECK(evaluation_bytes(8) < evaluation_bytes(24));
    CHECK_EQ(evaluation_bytes(24), evaluation_bytes(1000));
}

TEST(evaluation_slots_are_bounded_by_memory_not_by_the_config) {
    tg_train_settings s = plan_settings();
    CHECK_EQ(tg_eval_slots(&s, &small, 16, 16), 8);
    tg_arch large = small;
    large.n_layers = 48, large.width = 1600, large.n_heads = large.n_kv_heads = 25,
    large.head_dim = 64;
    s.eval.eval_batch_size = 256;
    int n = tg_eval_slots(&s, &large, 1000, 24);
    CHECK(n >= 1 && n < 16);
}

TEST_MAIN
