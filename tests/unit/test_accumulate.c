/* A minibatch in pieces gives the gradient of the whole minibatch, to the rounding of sums; and always the same one. */
#include "tests/support/tg_test.h"

#include "common/base/check.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/algo.h"
#include "learner/rl/ppo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

enum { VOCAB = 300 };
static const tg_arch arch = {.family = "gpt2",
                             .n_layers = 3,
                             .n_heads = 4,
                             .n_kv_heads = 4,
                             .head_dim = 16,
                             .width = 64,
                             .mlp_width = 256,
                             .vocab_size = VOCAB,
                             .max_positions = 64,
                             .norm_eps = 1e-5f,
                             .tied_head = true,
                             .bos_id = -1,
                             .eos_id = -1,
                             .pad_id = -1};

enum { EPISODES = 8, PROMPT = 8, NEW = 12 };

typedef struct gradient {
    tg_actor_critic *ac;
    float *first; /* of the first minibatch */
    double loss;
} gradient;

static void keep(void *arg, const tg_minibatch_report *report) {
    gradient *g = arg;
    if (g->first) return;
    tg_model *m = g->ac->policy;
    g->first = malloc(m->params.grad_total * sizeof(float));
    tg_backend_download(m->be, g->first, m->grad, m->params.grad_total * sizeof(float));
    g->loss = report->loss;
}

static tg_rollout *make_rollout(void) {
    int lengths[EPISODES][2];
    for (int i = 0; i < EPISODES; i++) lengths[i][0] = PROMPT - i % 3, lengths[i][1] = NEW - i % 5;
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, (const int(*)[2])lengths, EPISODES, 64, &err));
    for (int e = 0; r && e < EPISODES; e++)
        for (int t = 0; t < lengths[e][0] + lengths[e][1]; t++)
            tg_rollout_tokens(r, e)[t] = (e * 31 + t * 7) % VOCAB;
    return r;
}

static void update(tg_backend *be, int microbatch, bool recompute, gradient *out, float **weights) {
    const tg_algo_ops *ppo;
    REQUIRE_OK(tg_algo_find("ppo", &ppo, &err));
    tg_arena arena = {0};
    tg_node *node;
    char text[200];
    snprintf(text, sizeof text,
             "{n_steps: 8, batch_size: 64, n_epochs: 2, ent_coef: 0.01, microbatch_tokens: %d}",
             microbatch);
    REQUIRE_OK(tg_tree_parse(&arena, "test", text, strlen(text), &node, &err));
    tg_ppo_opts opts;
    REQUIRE_OK(tg_opts_read(ppo->options, &opts, node, "alg.args", &arena, &err));
    tg_algo_plan plan;
    ppo->plan(&opts, EPISODES, PROMPT + NEW, &plan);
    CHECK(plan.caps.tokens <= TG_MAX(microbatch, PROMPT + NEW));
    tg_model *policy, *ref;
    REQUIRE_OK(
        tg_model_create(&policy, be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_clone(&ref, policy, 0, 1, &err));
    tg_actor_critic_opts ac_opts = {
        .critic = TG_CRITIC_SHARED,
        .reference = true,
        .recompute = recompute,
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = plan.caps};
    *out = (gradient){0};
    REQUIRE_OK(tg_actor_critic_create(&out->ac, &ac_opts, policy, NULL, ref, &err));
    tg_rollout *r = make_rollout();
    REQUIRE(r);
    REQUIRE_OK(tg_actor_critic_score(out->ac, r, &err));
    for (int i = 0; i < r->n_actions; i++) r->task_reward[i] = i % 3;
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
    tg_update_stats stats;
    REQUIRE_OK(ppo->update(out->ac, &opts, r, &(tg_order){.seed = 1},
                           &(tg_update_probe){.arg = out, .minibatch = keep}, &stats, &err));
    CHECK_EQ(stats.minibatches, 2);
    CHECK(stats.first_ratio_error < 1e-5);
    *weights = malloc(policy->params.total * sizeof(float));
    tg_backend_download(be, *weights, policy->data, policy->params.total * sizeof(float));
    tg_rollout_destroy(&r);
    tg_arena_fini(&arena);
}

static double apart(const float *a, const float *b, size_t n) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

TEST(pieces_give_the_gradient_of_the_whole) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    gradient whole;
    float *whole_weights;
    update(be, 4096, false, &whole, &whole_weights);
    const size_t n = whole.ac->policy->params.grad_total;
    static const int sizes[] = {1, 40, 41, 64, 100, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        gradient one, two;
        float *w1, *w2;
        update(be, sizes[i], false, &one, &w1);
        update(be, sizes[i], true, &two, &w2);
        double d = apart(whole.first, one.first, n);
        tg_check(d <= 1e-5, __FILE__, __LINE__, "pieces of %d tokens: gradient off by %g", sizes[i],
                 d);
        CHECK_NEAR(one.loss, whole.loss, 1e-6);
        if (sizes[i] == 4096) CHECK(!memcmp(whole.first, one.first, n * sizeof(float)));
        /* the same pieces with activations made again: the same bits, to the last weight */
        CHECK(!memcmp(one.first, two.first, n * sizeof(float)));
        CHECK(!memcmp(w1, w2, one.ac->policy->params.total * sizeof(float)));
        free(one.first), free(two.first), free(w1), free(w2);
        tg_actor_critic_destroy(&one.ac);
        tg_actor_critic_destroy(&two.ac);
    }
    free(whole.first), free(whole_weights);
    tg_actor_critic_destroy(&whole.ac);
    tg_backend_close(&be);
}

/* Three tokens, of which the last is an action. */
static const int32_t three[] = {1, 2, 3}, offsets[] = {0, 3}, act_row[] = {1}, act_token[] = {5};
static const tg_batch one_action = {.n_tokens = 3,
                                    .n_seqs = 1,
                                    .n_actions = 1,
                                    .tokens = three,
                                    .offsets = offsets,
                                    .act_row = act_row,
                                    .act_token = act_token};

/* Between updates networks may rest: nothing changes but the memory they take. */
TEST(resting_changes_nothing) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    gradient g;
    float *w;
    update(be, 64, false, &g, &w);
    size_t busy = be->bytes_used;
    tg_actor_critic_rest(g.ac);
    CHECK(be->bytes_used < busy);
    CHECK(tg_optim_grad_norm(g.ac->optim) == 0);
    CHECK(!memcmp(w, g.ac->policy->data, g.ac->policy->params.total * sizeof(float)));
    float logp, entropy, value, d = 1;
    CHECK_OK(tg_actor_critic_forward(g.ac, &one_action, &logp, &entropy, &value, &err));
    CHECK_OK(tg_actor_critic_backward(g.ac, &d, NULL, &d, &err));
    CHECK(tg_optim_grad_norm(g.ac->optim) > 0);
    free(g.first), free(w);
    tg_actor_critic_destroy(&g.ac);
    tg_backend_close(&be);
}

/* Gradients get memory that something else was in: no trace of it may be in them. */
TEST(woken_gradients_begin_at_zero) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch large = arch;
    large.vocab_size = 30000; /* so that they come from the stock */
    tg_model *m;
    tg_pass *p;
    REQUIRE_OK(tg_model_create(&m, be, &large, TG_MODEL_TRAINABLE, 1, &err));
    const tg_pass_caps caps = {.tokens = 3, .seqs = 1, .actions = 1};
    REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_TRAIN, &err));
    const size_t n = m->params.grad_total;
    CHECK(n * sizeof(float) > TG_STOCK_LARGE);
    float logp, d = 1, *first = malloc(n * sizeof *first);
    for (int round = 0; round < 3; round++) {
        CHECK(m->grad_rests);
        REQUIRE_OK(tg_pass_forward(p, &one_action, (tg_pass_out){.logp = &logp}, &err));
        REQUIRE_OK(tg_pass_backward(p, &d, NULL, NULL, &err));
        CHECK(!m->grad_rests);
        if (round == 0)
            memcpy(first, m->grad, n * sizeof *first);
        else
            CHECK(!memcmp(first, m->grad, n * sizeof *first));
        tg_model_rest_grad(m);
        CHECK(m->grad[0] == 0 && m->grad[n - 1] == 0);
        float *other = tg_backend_alloc(be, n * sizeof(float), &err);
        REQUIRE(other);
        be->ops->fill(be, other, 9.0f, n);
        tg_backend_free(be, other);
    }
    free(first);
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
