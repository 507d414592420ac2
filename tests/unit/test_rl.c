/* Advantages, KL controller, rollout storage, minibatch order and packing. No model. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/rng.h"
#include "learner/rl/need.h"
#include "learner/rl/gae.h"
#include "learner/rl/kl.h"
#include "learner/rl/minibatch.h"
#include "learner/rl/rollout.h"

#include <stdint.h>

static tg_error err;

/* ---- advantages ---- */

/* By definition: A_t = sum over l of (gamma lambda)^l delta_{t+l}, within the episode. */
static double advantage_by_sum(const float *reward, const float *value, const unsigned char *start,
                               int n, int t, double last_value, bool last_done, double gamma,
                               double lambda) {
    double sum = 0, weight = 1;
    for (int i = t; i < n; i++) {
        bool ends = i + 1 < n ? start[i + 1] : last_done;
        double next = ends ? 0 : i + 1 < n ? (double)value[i + 1] : last_value;
        sum += weight * ((double)reward[i] + gamma * next - (double)value[i]);
        if (ends) break;
        weight *= gamma * lambda;
    }
    return sum;
}

TEST(gae_equals_the_discounted_sum_of_its_definition) {
    enum { N = 200 };
    float reward[N], value[N], adv[N], ret[N];
    unsigned char start[N];
    for (uint64_t seed = 0; seed < 6; seed++) {
        tg_rng r = tg_rng_at(seed, TG_RNG_TEST, 1, 0);
        for (int i = 0; i < N; i++) {
            reward[i] = (float)tg_rng_normal(&r);
            value[i] = (float)tg_rng_normal(&r);
            start[i] = i == 0 || tg_rng_uniform(&r) < 0.15;
        }
        bool done = seed & 1;
        double gamma = seed < 2 ? 1 : 0.9, lambda = seed < 4 ? 0.95 : 1;
        tg_gae(adv, ret, reward, value, start, N, done ? 0.0F : 0.7F, done, gamma, lambda);
        for (int i = 0; i < N; i++) {
            double want =
                advantage_by_sum(reward, value, start, N, i, (double)0.7F, done, gamma, lambda);
            CHECK_NEAR(adv[i], want, 2e-6);
            CHECK_NEAR(ret[i], want + (double)value[i], 2e-6);
        }
    }
}

TEST(kl_controller_follows_the_target_in_bounded_steps) {
    tg_kl_controller c = {.coeff = 0.2, .target = 0.5};
    tg_kl_controller_step(&c, 0.6091137);
    CHECK_NEAR(c.coeff, 0.204, 1e-12); /* 0.218 above the target: clipped to 0.2 */
    tg_kl_controller_step(&c, 0.45);
    CHECK_NEAR(c.coeff, 0.204 * 0.99, 1e-12);
    tg_kl_controller_step(&c, -5);
    CHECK_NEAR(c.coeff, 0.204 * 0.99 * 0.98, 1e-12);
    tg_kl_controller fixed = {.coeff = 0.3, .target = (double)NAN};
    tg_kl_controller_step(&fixed, 9);
    CHECK_EQ(fixed.coeff == 0.3, 1);
}

/* ---- rollout ---- */

static const int lengths[][2] = {{3, 4}, {1, 2}, {5, 6}, {2, 3}};
enum { EPISODES = 4, ACTIONS = 15 };

static tg_rollout *rollout_of(int rows) {
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, lengths, EPISODES, rows, &err));
    if (!r) return NULL;
    for (int e = 0; e < EPISODES; e++)
        for (int i = 0; i < lengths[e][0] + lengths[e][1]; i++)
            tg_rollout_tokens(r, e)[i] = 100 * e + i;
    for (int i = 0; i < ACTIONS; i++) {
        r->logp[i] = -1 - 0.1F * (float)i;
        r->ref_logp[i] = -1;
        r->value[i] = 0.5F * (float)i;
        r->task_reward[i] = i % 3;
    }
    return r;
}

TEST(rows_are_the_first_actions_and_the_buffer_may_end_inside_an_episode) {
    tg_rollout *r = rollout_of(9);
    REQUIRE(r);
    CHECK_EQ(r->episodes[2].first_row, 6);
    CHECK_EQ(r->episodes[2].n_rows, 3);
    CHECK_EQ(r->episodes[3].n_rows, 0);
    CHECK_EQ(r->episodes[3].first_action, 12);
    CHECK_EQ(r->episodes[1].tokens[2], 102);
    CHECK_NEAR(tg_rollout_kl(r, 0.5), -0.7, 1e-6);
    CHECK_NEAR(r->kl_reward[10], 0.5, 1e-6);
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.9, .gae_lambda = 0.8});
    CHECK(!r->last_done);
    CHECK_NEAR(r->last_value, 4.5, 0);
    CHECK_NEAR(r->row_reward[8], 2 + 0.4, 1e-6);
    CHECK_NEAR(r->adv[8], 2.4 + 0.9 * 4.5 - 4, 1e-5);
    CHECK_NEAR(r->adv[3], 0 + 0.15 - 1.5, 1e-5); /* last of its episode: nothing follows */
    tg_rollout_destroy(&r);
    r = rollout_of(6);
    REQUIRE(r);
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.9, .gae_lambda = 0.8, .norm_reward = true});
    CHECK(r->last_done && r->last_value == 0);
    double sum = 0, sq = 0;
    for (int i = 0; i < 6; i++)
        sum += (double)r->row_reward[i], sq += (double)(r->row_reward[i] * r->row_reward[i]);
    CHECK_NEAR(sum, 0, 1e-5);
    CHECK_NEAR(sq / 6, 1, 1e-5);
    tg_rollout_destroy(&r);
}

TEST(rollout_refuses_what_cannot_be) {
    tg_rollout *r;
    CHECK_EQ(tg_rollout_create(&r, lengths, EPISODES, 16, &err), TG_BUG);
    CHECK_EQ(tg_rollout_create(&r, (const int[][2]){{0, 3}}, 1, 2, &err), TG_DATA);
    CHECK_EQ(tg_rollout_create(&r, (const int[][2]){{3, 0}}, 1, 1, &err), TG_DATA);
    for (int k = 0; k < 4; k++) {
        tg_alloc_fail_after(k);
        tg_status st = tg_rollout_create(&r, lengths, EPISODES, 9, &err);
        tg_alloc_fail_after(-1);
        CHECK((st == TG_NOMEM && !r) || (st == TG_OK && r));
        tg_rollout_destroy(&r);
    }
}

TEST(summary_counts_every_action) {
    tg_rollout *r = rollout_of(9);
    REQUIRE(r);
    tg_rollout_kl(r, 0.5);
    tg_rollout_summary s;
    tg_rollout_summarise(r, 0.25, &s);
    CHECK_STR(s.name[0], "rollout_info/ep_rew");
    CHECK_NEAR(s.value[0], 15.0 / 4, 1e-9); /* 3 + 3 + 6 + 3 */
    CHECK_NEAR(s.value[1], sqrt(27.0 / 16), 1e-9);
    CHECK_NEAR(s.value[2], -0.7, 1e-6);
    CHECK_NEAR(s.value[4], 15.0 / 4, 1e-9);
    CHECK_STR(s.name[14], "rollout_info/kl_coeff");
    CHECK_NEAR(s.value[14], 0.25, 0);
    tg_rollout_destroy(&r);
}

/* ---- minibatches ---- */

/* Checks all pieces of all minibatches of an epoch: every row once, token and state of every action
 * right. Returns tokens computed. */
static int check_epoch(tg_minibatches *m, const tg_rollout *r, tg_pass_caps caps) {
    int count[64] = {0}, tokens = 0;
    for (int k = 0; k < m->n; k++) {
        tg_status st = tg_minibatches_pack(m, k, &err);
        CHECK_OK(st);
        tg_minibatch_piece p;
        while (tg_minibatches_next(m, &p)) {
            CHECK(p.batch.n_tokens <= caps.tokens && p.batch.n_seqs <= caps.seqs &&
                  p.batch.n_actions <= caps.actions);
            CHECK_EQ(p.batch.offsets[p.batch.n_seqs], p.batch.n_tokens);
            tokens += p.batch.n_tokens;
            for (int i = 0; i < p.batch.n_actions; i++) {
                int row = m->rows[m->first[k] + p.place[i]];
                const tg_episode *e = &r->episodes[r->row_episode[row]];
                int step = row - e->first_row;
                CHECK_EQ(p.batch.act_token[i], e->tokens[e->n_prompt + step]);
                CHECK_EQ(p.batch.tokens[p.batch.act_row[i]], e->tokens[e->n_prompt + step - 1]);
                count[row]++;
            }
        }
    }
    for (int i = 0; i < r->n_rows; i++) CHECK_EQ(count[i], 1);
    CHECK_EQ(m->first[m->n], r->n_rows);
    return tokens;
}

TEST(transitions_are_slices_of_the_permutation_and_share_prefixes) {
    tg_rollout *r = rollout_of(14);
    REQUIRE(r);
    tg_pass_caps caps = tg_minibatch_caps(4, 14, 11, 1000);
    tg_minibatches *m;
    REQUIRE_OK(tg_minibatches_create(&m, r, TG_MINIBATCH_TRANSITION, 4, caps, &err));
    const int32_t perm[] = {2, 0, 13, 5, 1, 3, 4, 12, 6, 7, 8, 9, 10, 11};
    const int32_t *perms[] = {perm};
    tg_order order = {.permutations = perms, .n_permutations = 1};
    REQUIRE_OK(tg_minibatches_shuffle(m, &order, 0, &err));
    CHECK_EQ(m->n, 4);
    CHECK(!memcmp(m->rows, perm, sizeof perm));
    CHECK_EQ(m->first[4] - m->first[3], 2);
    REQUIRE_OK(tg_minibatches_pack(m, 0, &err));
    tg_minibatch_piece p;
    REQUIRE(tg_minibatches_next(m, &p));
    /* rows 2 and 0 are one sequence of 3 + 2 tokens; row 13 needs 2 + 1; row 5 needs 1 + 1 */
    CHECK_EQ(p.batch.n_seqs, 3);
    CHECK_EQ(p.batch.n_tokens, 5 + 3 + 2);
    CHECK_EQ(p.batch.n_actions, 4);
    CHECK(!tg_minibatches_next(m, &p));
    check_epoch(m, r, caps);
    CHECK_EQ(tg_minibatches_shuffle(m, &order, 1, &err), TG_DATA);
    const int32_t twice[] = {2, 0, 13, 5, 1, 3, 4, 12, 6, 7, 8, 9, 10, 10};
    perms[0] = twice;
    CHECK_EQ(tg_minibatches_shuffle(m, &order, 0, &err), TG_DATA);
    tg_minibatches_destroy(&m);
    tg_rollout_destroy(&r);
}

TEST(sequences_are_whole_and_each_token_is_computed_once) {
    tg_rollout *r = rollout_of(15);
    REQUIRE(r);
    for (int size = 1; size <= 16; size++) {
        int batch = size > 15 ? 15 : size;
        tg_pass_caps caps = tg_minibatch_caps(batch, 15, 11, 1000);
        tg_minibatches *m;
        REQUIRE_OK(tg_minibatches_create(&m, r, TG_MINIBATCH_SEQUENCE, batch, caps, &err));
        for (int epoch = 0; epoch < 8; epoch++) {
            tg_order order = {.seed = 5, .iteration = 2};
            REQUIRE_OK(tg_minibatches_shuffle(m, &order, epoch, &err));
            CHECK_EQ(check_epoch(m, r, caps), 3 + 4 + 1 + 2 + 5 + 6 + 2 + 3 - EPISODES);
            CHECK(m->n >= 1 && m->n <= EPISODES && m->n <= (15 + batch - 1) / batch);
            for (int k = 0; k < m->n; k++) {
                CHECK(m->first[k + 1] > m->first[k]);
                CHECK(r->row_start[m->rows[m->first[k]]]);
            }
        }
        tg_minibatches_destroy(&m);
    }
    tg_rollout_destroy(&r);
}

TEST(minibatches_larger_than_a_pass_come_in_pieces) {
    tg_rollout *r = rollout_of(15);
    REQUIRE(r);
    for (int mode = 0; mode < 2; mode++) {
        tg_pass_caps caps = tg_minibatch_caps(15, 15, 11, 12);
        CHECK_EQ(caps.tokens, 12);
        tg_minibatches *m;
        REQUIRE_OK(tg_minibatches_create(&m, r, (tg_minibatch_mode)mode, 15, caps, &err));
        REQUIRE_OK(tg_minibatches_shuffle(m, &(tg_order){.seed = 1}, 0, &err));
        CHECK_EQ(m->n, 1);
        check_epoch(m, r, caps);
        tg_minibatches_destroy(&m);
    }
    tg_minibatches *m;
    REQUIRE_OK(tg_minibatches_create(&m, r, TG_MINIBATCH_SEQUENCE, 15,
                                     (tg_pass_caps){.tokens = 5, .seqs = 5, .actions = 5}, &err));
    REQUIRE_OK(tg_minibatches_shuffle(m, &(tg_order){.seed = 1}, 0, &err));
    CHECK_EQ(tg_minibatches_pack(m, 0, &err), TG_BUG);
    tg_minibatches_destroy(&m);
    tg_rollout_destroy(&r);
}

/* The pieces of every epoch as numbers, one after the other. */
static int piece_sizes(const tg_rollout *r, const tg_algo_plan *plan, tg_pass_caps caps,
                       const tg_order *order, int *sizes) {
    tg_minibatches *m;
    tg_minibatch_piece p;
    int n = 0;
    CHECK_OK(tg_minibatches_create(&m, r, plan->mode, plan->batch_size, caps, &err));
    for (int epoch = 0; m && epoch < plan->epochs; epoch++) {
        CHECK_OK(tg_minibatches_shuffle(m, order, epoch, &err));
        for (int k = 0; k < m->n; k++) {
            CHECK_OK(tg_minibatches_pack(m, k, &err));
            while (tg_minibatches_next(m, &p)) {
                sizes[n++] = p.batch.n_tokens;
                sizes[n++] = p.batch.n_actions;
            }
        }
    }
    tg_minibatches_destroy(&m);
    return n;
}

TEST(caps_that_fit_a_rollout_leave_its_pieces_as_they_are) {
    tg_rollout *r = rollout_of(15);
    REQUIRE(r);
    r->known = true;
    for (int i = 0; i < 2 * 15; i++) {
        tg_algo_plan plan = {
            .epochs = 4, .batch_size = 1 + i / 2, .mode = (tg_minibatch_mode)(i % 2)};
        plan.caps = tg_minibatch_caps(plan.batch_size, 15, 11, i % 3 ? 12 : 1000);
        const tg_order order = {.seed = (uint64_t)i};
        tg_need fit;
        int wide[400], narrow[400], tokens = 0, actions = 0;
        REQUIRE_OK(tg_need_rollout(&fit, &plan, r, &order, &err));
        int n = piece_sizes(r, &plan, plan.caps, &order, wide);
        CHECK_EQ(piece_sizes(r, &plan, fit.update, &order, narrow), n);
        CHECK(!memcmp(wide, narrow, (size_t)n * sizeof *wide));
        for (int k = 0; k < n; k += 2) {
            tokens = TG_MAX(tokens, wide[k]);
            actions = TG_MAX(actions, wide[k + 1]);
        }
        CHECK_EQ(fit.update.tokens, tokens);
        CHECK_EQ(fit.update.actions, actions);
        CHECK_EQ(fit.update.most_actions, plan.caps.actions);
        CHECK(fit.score.tokens <= plan.caps.tokens && fit.score.actions <= plan.caps.actions);
    }
    tg_rollout_destroy(&r);
}

TEST(what_even_rollouts_need_is_known_before) {
    enum { PROMPT = 6, ANSWER = 5, N = 12, ROWS = N * ANSWER };
    int even_lengths[N][2];
    for (int i = 0; i < N; i++) even_lengths[i][0] = PROMPT, even_lengths[i][1] = ANSWER;
    tg_rollout *r;
    REQUIRE_OK(tg_rollout_create(&r, (const int(*)[2])even_lengths, N, ROWS, &err));
    for (int known = 0; known < 2; known++)
        for (int batch = 1; batch <= ROWS; batch++)
            for (int most = 11; most < 100; most += 16) {
                tg_algo_plan plan = {.epochs = 2, .batch_size = batch};
                plan.caps = tg_minibatch_caps(batch, ROWS, PROMPT + ANSWER, most);
                r->known = known;
                tg_need real, even;
                REQUIRE_OK(tg_need_rollout(&real, &plan, r, &(tg_order){.seed = 1}, &err));
                tg_need_even(&even, &plan,
                             &(tg_need_lengths){ROWS, PROMPT, ANSWER, .known = known});
                CHECK_EQ(even.update.tokens, real.update.tokens);
                CHECK_EQ(even.update.actions, real.update.actions);
                CHECK_EQ(even.score.tokens, real.score.tokens);
                CHECK_EQ(even.score.seqs, real.score.seqs);
            }
    tg_rollout_destroy(&r);
}

TEST(a_first_minibatch_of_an_nth_of_the_rows_is_counted_as_such) {
    enum { PROMPT = 6, ANSWER = 5, N = 12, ROWS = N * ANSWER };
    int even_lengths[N][2];
    for (int i = 0; i < N; i++) even_lengths[i][0] = PROMPT, even_lengths[i][1] = ANSWER;
    tg_rollout *r;
    REQUIRE_OK(tg_rollout_create(&r, (const int(*)[2])even_lengths, N, ROWS, &err));
    r->known = true;
    for (int share = 1; share <= ROWS; share++)
        for (int mode = 0; mode < 2; mode++) {
            tg_algo_plan plan = {.epochs = 2, .batch_size = 10, .first_share = share};
            plan.mode = mode ? TG_MINIBATCH_TRANSITION : TG_MINIBATCH_SEQUENCE;
            plan.caps = tg_minibatch_caps(ROWS, ROWS, PROMPT + ANSWER, 1000);
            const tg_order order = {.seed = 1};
            tg_need real, even;
            REQUIRE_OK(tg_need_rollout(&real, &plan, r, &order, &err));
            tg_need_even(&even, &plan, &(tg_need_lengths){ROWS, PROMPT, ANSWER, .known = true});
            tg_minibatches *m;
            tg_minibatch_piece piece;
            REQUIRE_OK(tg_minibatches_draw(&m, r, plan.mode, share, real.update, &order, &err));
            REQUIRE_OK(tg_minibatches_pack(m, 0, &err));
            REQUIRE(tg_minibatches_next(m, &piece));
            CHECK(!tg_minibatches_next(m, &piece)); /* in one piece, as with plan.caps */
            tg_minibatches_destroy(&m);
            CHECK(even.update.actions >= real.update.actions);
            CHECK(even.update.tokens >= real.update.tokens);
            /* an episode more or less, where minibatches are not all as large */
            CHECK(even.update.actions <= real.update.actions + ANSWER);
            CHECK(mode || even.update.tokens <= real.update.tokens + PROMPT + ANSWER - 1);
        }
    tg_rollout_destroy(&r);
}

TEST(order_depends_on_seed_iteration_and_epoch_alone) {
    tg_rollout *r = rollout_of(15);
    REQUIRE(r);
    tg_minibatches *m;
    REQUIRE_OK(tg_minibatches_create(&m, r, TG_MINIBATCH_TRANSITION, 4,
                                     tg_minibatch_caps(4, 15, 11, 99), &err));
    int32_t first[15];
    REQUIRE_OK(tg_minibatches_shuffle(m, &(tg_order){.seed = 1, .iteration = 3}, 2, &err));
    memcpy(first, m->rows, sizeof first);
    const tg_order others[] = {
        {.seed = 2, .iteration = 3}, {.seed = 1, .iteration = 4}, {.seed = 1, .iteration = 3}};
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(tg_minibatches_shuffle(m, &others[i], i == 2 ? 3 : 2, &err));
        CHECK(memcmp(first, m->rows, sizeof first) != 0);
    }
    REQUIRE_OK(tg_minibatches_shuffle(m, &(tg_order){.seed = 1, .iteration = 3}, 2, &err));
    CHECK(!memcmp(first, m->rows, sizeof first));
    tg_minibatches_destroy(&m);
    tg_rollout_destroy(&r);
}

TEST_MAIN
