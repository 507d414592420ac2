/* PPO updates of small random networks: first ratio, pieces, order, non-finite numbers, early stop, checkpointed optimizer, learning. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/ppo.h"

#include <stdint.h>

static tg_error err;

enum { VOCAB = 12, EPISODES = 10, PROMPT = 3, LENGTH = 6, LONGEST = PROMPT + LENGTH };

static const tg_arch small = {.family = "gpt2",
                              .n_layers = 2,
                              .n_heads = 2,
                              .n_kv_heads = 2,
                              .head_dim = 8,
                              .width = 16,
                              .mlp_width = 64,
                              .vocab_size = VOCAB,
                              .max_positions = 16,
                              .norm_eps = 1e-5F,
                              .tied_head = true,
                              .bos_id = 0,
                              .eos_id = 0,
                              .pad_id = 0};

static void ppo_defaults(tg_ppo_opts *o) {
    static tg_arena arena; /* the options' texts live in it until the program ends */
    CHECK_OK(tg_opts_read(tg_ppo_options, o, NULL, "alg.args", &arena, &err));
}

/* Networks with larger weights than GPT-2's initialisation, so that nothing is near zero by construction. */
static tg_actor_critic *networks(tg_backend *be, tg_critic critic, tg_pass_caps caps) {
    tg_model *policy = NULL, *value = NULL, *ref = NULL;
    unsigned head = critic == TG_CRITIC_SHARED ? TG_MODEL_VALUE_HEAD : 0;
    CHECK_OK(tg_model_create(&policy, be, &small, TG_MODEL_TRAINABLE | head, 1, &err));
    tg_rng rng = tg_rng_at(7, TG_RNG_TEST, 0, 0);
    for (size_t i = 0; i < policy->params.n; i++) {
        const tg_param *p = &policy->params.list[i];
        float *x = tg_alloc_array(p->count, sizeof(float));
        CHECK_OK(tg_model_get(policy, p->name, x, p->count, &err));
        for (size_t k = 0; k < p->count; k++) x[k] += (float)(0.2 * tg_rng_normal(&rng));
        CHECK_OK(tg_model_set(policy, p->name, x, p->count, &err));
        tg_free(x);
    }
    if (critic == TG_CRITIC_SEPARATE)
        CHECK_OK(tg_model_clone(&value, policy, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 2, &err));
    CHECK_OK(tg_model_clone(&ref, policy, 0, 3, &err));
    tg_actor_critic_opts opts = {
        .critic = critic,
        .reference = true,
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 1e-6},
        .train_caps = caps};
    tg_actor_critic *ac = NULL;
    CHECK_OK(tg_actor_critic_create(&ac, &opts, policy, value, ref, &err));
    return ac;
}

/* Episodes of random tokens and lengths with random rewards, scored by the networks; the buffer ends inside the last one. */
static tg_rollout *random_rollout(tg_actor_critic *ac, uint64_t seed) {
    int lengths[EPISODES][2], actions = 0;
    tg_rng rng = tg_rng_at(seed, TG_RNG_TEST, 1, 0);
    for (int i = 0; i < EPISODES; i++) {
        lengths[i][0] = 1 + (int)tg_rng_below(&rng, PROMPT);
        actions += lengths[i][1] = 2 + (int)tg_rng_below(&rng, LENGTH - 1);
    }
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, (const int(*)[2])lengths, EPISODES, actions - 1, &err));
    if (!r) return NULL;
    for (int i = 0; i < EPISODES; i++)
        for (int k = 0; k < lengths[i][0] + lengths[i][1]; k++)
            tg_rollout_tokens(r, i)[k] = (int32_t)tg_rng_below(&rng, VOCAB);
    for (int i = 0; i < actions; i++) r->task_reward[i] = tg_rng_normal(&rng);
    CHECK_OK(tg_actor_critic_score(ac, r, &err));
    tg_rollout_kl(r, 0.1);
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
    return r;
}

static void weights_of(const tg_actor_critic *ac, float **out, size_t *n) {
    *n = ac->policy->params.total + (ac->value != ac->policy ? ac->value->params.total : 0);
    *out = tg_alloc_array(*n, sizeof(float));
    tg_backend_download(ac->be, *out, ac->policy->data, ac->policy->params.total * sizeof(float));
    if (ac->value != ac->policy)
        tg_backend_download(ac->be, *out + ac->policy->params.total, ac->value->data,
                            ac->value->params.total * sizeof(float));
}

static double stat(const tg_update_stats *s, const char *name) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], name)) return s->value[i];
    CHECK(!"no such statistic");
    return (double)NAN;
}

typedef struct result {
    float *weights;
    size_t n;
    tg_update_stats stats;
} result;

/* One update of fresh networks. */
static result update_once(const char *backend, tg_critic critic, const tg_ppo_opts *o,
                          tg_pass_caps caps, const tg_order *order) {
    result out = {0};
    tg_backend *be = NULL;
    CHECK_OK(tg_backend_open(&be, backend, 2, &err));
    tg_actor_critic *ac = networks(be, critic, caps);
    tg_rollout *r = random_rollout(ac, 5);
    CHECK_OK(tg_algo_ppo.update(ac, o, r, order, NULL, &out.stats, &err));
    weights_of(ac, &out.weights, &out.n);
    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
    return out;
}

static double worst(const result *a, const result *b) {
    double d = 0;
    CHECK_EQ(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        d = fmax(d, fabs((double)a->weights[i] - (double)b->weights[i]));
    return d;
}

static const tg_pass_caps wide = {.tokens = 400, .seqs = 64, .actions = 200};

/* ---- the first minibatch ---- */

TEST(first_minibatch_of_every_iteration_has_ratio_one) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++)
        for (int critic = 0; critic < 2; critic++)
            for (int mode = 0; mode < 2; mode++) {
                tg_backend *be;
                REQUIRE_OK(tg_backend_open(&be, (*b)->name, 2, &err));
                tg_actor_critic *ac = networks(be, (tg_critic)critic, wide);
                tg_ppo_opts o;
                ppo_defaults(&o);
                o.minibatch = mode ? "transition" : "sequence";
                o.batch_size = 8;
                o.n_epochs = 2;
                o.learning_rate = 0.01;
                for (uint64_t it = 0; it < 5; it++) {
                    tg_rollout *r = random_rollout(ac, it);
                    tg_update_stats s;
                    REQUIRE_OK(tg_algo_ppo.update(
                        ac, &o, r, &(tg_order){.seed = 3, .iteration = it}, NULL, &s, &err));
                    CHECK_NEAR(s.first_ratio_error, 0, 1e-5);
                    CHECK_EQ(s.first_clip_fraction == 0, 1);
                    CHECK_EQ(s.skipped, 0);
                    CHECK(stat(&s, "ppo/clip_fraction") > 0); /* later minibatches do move */
                    tg_rollout_destroy(&r);
                }
                tg_actor_critic_destroy(&ac);
                tg_backend_close(&be);
            }
}

/* ---- the same gradient, however it is computed ---- */

TEST(pieces_and_packing_do_not_change_the_update) {
    for (int critic = 0; critic < 2; critic++) {
        tg_ppo_opts o;
        ppo_defaults(&o);
        o.batch_size = 1000; /* one minibatch: order and mode do not matter */
        o.n_epochs = 1;
        o.ent_coef = 0.01;
        o.clip_range_vf = 0.1;
        tg_order order = {.seed = 1};
        result whole = update_once("ref", (tg_critic)critic, &o, wide, &order);
        result pieces =
            update_once("ref", (tg_critic)critic, &o,
                        (tg_pass_caps){.tokens = LONGEST, .seqs = 2, .actions = LENGTH}, &order);
        o.minibatch = "transition";
        result transitions = update_once("ref", (tg_critic)critic, &o, wide, &order);
        CHECK_EQ(whole.stats.minibatches, 1);
        /* AdamW divides by the gradient's own size, so compare what precedes it and most of what follows. */
        CHECK_NEAR(stat(&whole.stats, "ppo/loss"), stat(&pieces.stats, "ppo/loss"), 1e-6);
        CHECK_NEAR(stat(&whole.stats, "ppo/grad_norm"), stat(&pieces.stats, "ppo/grad_norm"), 1e-5);
        CHECK_NEAR(stat(&whole.stats, "ppo/grad_norm"), stat(&transitions.stats, "ppo/grad_norm"),
                   1e-5);
        CHECK(worst(&whole, &pieces) < 2 * o.learning_rate + 1e-6);
        tg_free(whole.weights);
        tg_free(pieces.weights);
        tg_free(transitions.weights);
    }
}

TEST(same_seed_same_bits_and_another_order_other_bits) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++) {
        tg_ppo_opts o;
        ppo_defaults(&o);
        o.batch_size = 7;
        o.n_epochs = 2;
        result x = update_once((*b)->name, TG_CRITIC_SEPARATE, &o, wide,
                               &(tg_order){.seed = 1, .iteration = 4});
        result y = update_once((*b)->name, TG_CRITIC_SEPARATE, &o, wide,
                               &(tg_order){.seed = 1, .iteration = 4});
        result z = update_once((*b)->name, TG_CRITIC_SEPARATE, &o, wide,
                               &(tg_order){.seed = 1, .iteration = 5});
        CHECK(!memcmp(x.weights, y.weights, x.n * sizeof(float)));
        CHECK(memcmp(x.weights, z.weights, x.n * sizeof(float)) != 0);
        tg_free(x.weights);
        tg_free(y.weights);
        tg_free(z.weights);
    }
}

/* ---- the shared critic ---- */

static double shared_loss(tg_actor_critic *ac, const tg_batch *b, float *dl, float *de, float *dv,
                          const float *w) {
    float logp[8], entropy[8], value[8];
    CHECK_OK(tg_actor_critic_forward(ac, b, logp, entropy, value, &err));
    double sum = 0;
    for (int i = 0; i < b->n_actions; i++) {
        sum += (double)(w[0] * logp[i]) + (double)(w[1] * entropy[i]) +
               (double)(w[2] * value[i] * value[i]);
        dl[i] = w[0];
        de[i] = w[1];
        dv[i] = 2 * w[2] * value[i];
    }
    return sum;
}

TEST(a_shared_trunk_gets_the_gradients_of_both_heads_in_one_backward) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_actor_critic *ac = networks(be, TG_CRITIC_SHARED, wide);
    REQUIRE(ac && ac->policy == ac->value && !ac->value_pass);
    const int32_t tokens[] = {1, 5, 2, 7, 3, 3, 9}, offsets[] = {0, 4, 7}, rows[] = {1, 3, 2, 6},
                  acts[] = {2, 4, 7, 0};
    tg_batch b = {.n_tokens = 7,
                  .n_seqs = 2,
                  .n_actions = 4,
                  .tokens = tokens,
                  .offsets = offsets,
                  .act_row = rows,
                  .act_token = acts};
    float dl[8], de[8], dv[8];
    const float w[] = {0.7F, 0.3F, 0.5F};
    shared_loss(ac, &b, dl, de, dv, w);
    REQUIRE_OK(tg_actor_critic_backward(ac, dl, de, dv, &err));
    static const char *const names[] = {"transformer.wte.weight",
                                        "transformer.h.0.attn.c_attn.weight",
                                        "transformer.ln_f.bias", "value_head.weight"};
    for (size_t k = 0; k < 4; k++) {
        const tg_param *p = tg_params_find(&ac->policy->params, names[k]);
        REQUIRE(p);
        for (size_t i = 0; i < p->count; i += p->count / 5 + 1) {
            float *x = &ac->policy->data[p->offset + i],
                  at = *x; /* the ref backend's memory is ordinary */
            double h = 1e-2, up, down, g = (double)ac->policy->grad[p->offset + i];
            *x = at + (float)h;
            up = shared_loss(ac, &b, dl, de, dv, w);
            *x = at - (float)h;
            down = shared_loss(ac, &b, dl, de, dv, w);
            *x = at;
            CHECK_NEAR(g, (up - down) / (2 * h), 5e-3 * fmax(1, fabs(g)));
        }
    }
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
}

/* ---- what is never applied ---- */

TEST(a_minibatch_that_is_not_finite_changes_nothing) {
    const float bad[] = {NAN, INFINITY, 3e38F, -1};
    for (int k = 0; k < 4; k++) {
        tg_backend *be;
        REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
        tg_actor_critic *ac = networks(be, TG_CRITIC_SEPARATE, wide);
        if (k == 2) { /* a loss that f32 can hold, a gradient it cannot */
            const tg_param *p = tg_params_find(&ac->policy->params, "transformer.ln_f.weight");
            for (size_t i = 0; i < p->count; i++) ac->policy->data[p->offset + i] *= 1e4F;
        }
        tg_rollout *r = random_rollout(ac, 5);
        r->adv[4] = bad[k];
        if (k == 3)
            r->row_logp[4] -= 200; /* a ratio of e^200, not clipped for a negative advantage */
        tg_ppo_opts o;
        ppo_defaults(&o);
        o.n_epochs = 2;
        o.batch_size = 1000;
        o.normalize_advantage = false;
        float *before, *after;
        size_t n;
        tg_update_stats s;
        weights_of(ac, &before, &n);
        REQUIRE_OK(tg_algo_ppo.update(ac, &o, r, &(tg_order){.seed = 1}, NULL, &s, &err));
        weights_of(ac, &after, &n);
        CHECK(!memcmp(before, after, n * sizeof(float)));
        CHECK_EQ(s.minibatches, 0);
        CHECK_EQ(s.skipped, 2);
        CHECK_NEAR(stat(&s, "ppo/skipped_minibatches"), 2, 0);
        CHECK_EQ(tg_optim_grad_norm(ac->optim) == 0, 1);
        CHECK_EQ(tg_optim_steps(ac->optim), 0);
        /* the rest of the minibatches go on */
        o.batch_size = 8;
        REQUIRE_OK(tg_algo_ppo.update(ac, &o, r, &(tg_order){.seed = 1}, NULL, &s, &err));
        CHECK_EQ(s.skipped, 2);
        CHECK(s.minibatches > 4 && isfinite(stat(&s, "ppo/loss")));
        tg_free(before);
        tg_free(after);
        tg_rollout_destroy(&r);
        tg_actor_critic_destroy(&ac);
        tg_backend_close(&be);
    }
}

TEST(a_rollout_of_broken_networks_is_refused) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_actor_critic *ac = networks(be, TG_CRITIC_SEPARATE, wide);
    tg_rollout *r = random_rollout(ac, 5);
    const tg_param *p = tg_params_find(&ac->policy->params, "transformer.ln_f.weight");
    REQUIRE(p && r);
    ac->policy->data[p->offset] = NAN;
    CHECK_EQ(tg_actor_critic_score(ac, r, &err), TG_DATA);
    CHECK(strstr(err.msg, "learning rate"));
    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
}

TEST(target_kl_stops_before_the_step) {
    tg_ppo_opts o;
    ppo_defaults(&o);
    o.batch_size = 8;
    o.n_epochs = 5;
    o.learning_rate = 0.01;
    o.target_kl = 1e-9; /* the first step moves further than that */
    result a = update_once("ref", TG_CRITIC_SEPARATE, &o, wide, &(tg_order){.seed = 1});
    CHECK_EQ(a.stats.minibatches, 1);
    CHECK(a.stats.stopped);
    CHECK_NEAR(stat(&a.stats, "ppo/epochs"), 1, 0);
    o.target_kl = 1e9;
    result b = update_once("ref", TG_CRITIC_SEPARATE, &o, wide, &(tg_order){.seed = 1});
    CHECK(!b.stats.stopped && b.stats.minibatches > 20);
    tg_free(a.weights);
    tg_free(b.weights);
    /* The limit is 1.5 times the target. The first minibatch has none, so twice the mean is the KL of the second. */
    double second = 2 * stat(&a.stats, "ppo/approx_kl");
    for (int above = 0; above < 2; above++) {
        o.target_kl = second / 1.5 * (above ? 1.001 : 0.999);
        result c = update_once("ref", TG_CRITIC_SEPARATE, &o, wide, &(tg_order){.seed = 1});
        CHECK_EQ(c.stats.minibatches > 1, above);
        tg_free(c.weights);
    }
}

/* ---- out of memory ---- */

TEST(running_out_of_memory_is_reported_and_leaves_nothing_behind) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_actor_critic_opts opts = {
        .critic = TG_CRITIC_SEPARATE,
        .reference = true,
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = wide};
    bool done = false;
    for (int k = 0; !done && k < 200;
         k++) { /* the k-th allocation of create fails, then of score, then of update */
        tg_model *m[3] = {NULL, NULL, NULL};
        REQUIRE_OK(tg_model_create(&m[0], be, &small, TG_MODEL_TRAINABLE, 1, &err));
        REQUIRE_OK(tg_model_clone(&m[1], m[0], TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 2, &err));
        REQUIRE_OK(tg_model_clone(&m[2], m[0], 0, 3, &err));
        tg_actor_critic *ac;
        tg_alloc_fail_after(k);
        tg_status st = tg_actor_critic_create(&ac, &opts, m[0], m[1], m[2], &err);
        tg_alloc_fail_after(-1);
        CHECK((st == TG_OK) == (ac != NULL) && (st == TG_OK || st == TG_NOMEM));
        done = st == TG_OK;
        tg_actor_critic_destroy(&ac);
    }
    CHECK(done);
    tg_actor_critic *ac = networks(be, TG_CRITIC_SEPARATE, wide);
    tg_rollout *r = random_rollout(ac, 5);
    tg_ppo_opts o;
    ppo_defaults(&o);
    o.n_epochs = 1;
    done = false;
    for (int k = 0; !done && k < 200; k++) {
        tg_update_stats s;
        tg_alloc_fail_after(k);
        tg_status st = tg_actor_critic_score(ac, r, &err);
        if (st == TG_OK) st = tg_algo_ppo.update(ac, &o, r, &(tg_order){.seed = 1}, NULL, &s, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        CHECK_EQ(tg_optim_grad_norm(ac->optim) == 0, 1);
        done = st == TG_OK;
    }
    CHECK(done);
    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
}

/* ---- optimizer ---- */

TEST(optimizer_decays_all_but_biases_and_goes_on_from_saved_moments) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_model *m[2] = {NULL, NULL};
    REQUIRE_OK(tg_model_create(&m[0], be, &small, TG_MODEL_TRAINABLE, 1, &err));
    REQUIRE_OK(tg_model_clone(&m[1], m[0], TG_MODEL_TRAINABLE, 1, &err));
    tg_optim_opts opts = {
        .kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.5};
    tg_optim *o[2];
    for (int i = 0; i < 2; i++) REQUIRE_OK(tg_optim_create(&o[i], &m[i], 1, &opts, &err));
    const tg_param *gain = tg_params_find(&m[0]->params, "transformer.h.1.ln_2.weight");
    const tg_param *bias = tg_params_find(&m[0]->params, "transformer.h.1.ln_2.bias");
    REQUIRE(gain && bias);
    m[0]->data[bias->offset] = 1;
    float gain_before = m[0]->data[gain->offset];
    tg_optim_step(o[0], 0.1, 1); /* gradients are zero: only decay */
    CHECK_NEAR(m[0]->data[gain->offset], (double)gain_before * (1 - 0.1 * 0.5), 1e-6);
    CHECK_NEAR(m[0]->data[bias->offset], 1, 0);
    for (size_t i = 0; i < m[0]->params.total; i++) m[0]->grad[i] = 0.01F;
    tg_optim_step(o[0], 0.1, 1);
    CHECK_EQ(tg_optim_grad_norm(o[0]) == 0, 1); /* a step clears the gradients */
    /* the second optimizer takes over the state of the first: both go on alike, bit by bit */
    size_t bytes = m[0]->params.total * sizeof(float);
    memcpy(m[1]->data, m[0]->data, bytes);
    CHECK_EQ(tg_optim_n_moments(o[0]), 2);
    for (int k = 0; k < 2; k++) {
        tg_optim_part from[2], to[2]; /* the first tensor's is the beginning of the block */
        CHECK_EQ(tg_optim_parts(o[0], 0, k, 0, from), 1);
        CHECK_EQ(tg_optim_parts(o[1], 0, k, 0, to), 1);
        memcpy(to[0].device, from[0].device, bytes);
    }
    tg_optim_set_steps(o[1], tg_optim_steps(o[0]));
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < m[i]->params.total; k++) m[i]->grad[k] = 0.001F * (float)(k % 7);
        tg_optim_step(o[i], 0.05, 0.5F);
    }
    CHECK(!memcmp(m[0]->data, m[1]->data, bytes));
    opts.kind = "adagrad";
    tg_optim *none;
    CHECK_EQ(tg_optim_create(&none, &m[0], 1, &opts, &err), TG_UNSUPPORTED);
    for (int i = 0; i < 2; i++) tg_optim_destroy(&o[i]), tg_model_destroy(&m[i]);
    tg_backend_close(&be);
}

/* ---- registry ---- */

TEST(algorithms_are_found_by_name) {
    const tg_algo_ops *a;
    REQUIRE_OK(tg_algo_find("ppo", &a, &err));
    CHECK(a == &tg_algo_ppo);
    CHECK_EQ(tg_algo_find("pppo", &a, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "did you mean \"ppo\""));
    for (const tg_algo_ops *const *p = tg_algo_list(); *p; p++) {
        tg_arena arena = {0};
        void *opts = tg_alloc((*p)->options_size);
        CHECK_OK(tg_opts_read((*p)->options, opts, NULL, "alg.args", &arena, &err));
        tg_free(opts);
        tg_arena_fini(&arena);
    }
    tg_ppo_opts o;
    ppo_defaults(&o);
    CHECK(o.learning_rate == 3e-4 && o.n_steps == 2048 && o.batch_size == 64 && o.n_epochs == 10);
    CHECK(isnan(o.clip_range_vf) && isnan(o.target_kl) && o.max_grad_norm == 0.5);
    tg_algo_plan plan;
    tg_algo_ppo.plan(&o, 10, 112, &plan);
    CHECK_EQ(plan.n_steps, 2048);
    CHECK_EQ(plan.caps.tokens, 512);
    o.microbatch_tokens = 10;
    tg_algo_ppo.plan(&o, 10, 112, &plan);
    CHECK_EQ(plan.caps.tokens, 112); /* at least the longest sequence */
}

TEST_MAIN
