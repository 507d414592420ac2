/* What is not finite never reaches the weights, whatever the algorithm: the update is skipped, counted and reported. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "learner/rl/algo.h"
#include "tests/support/tiny.h"

#include <math.h>
#include <string.h>

static tg_error err;

enum { EPISODES = 3, ROWS = 12 };

static tg_actor_critic *networks(tg_backend *be, const tg_algo_ops *algo) {
    tg_arch arch = tg_tiny_arch();
    tg_model *policy = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE, 1);
    tg_model *value = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 2);
    tg_model *ref = tg_tiny_model(be, &arch, 0, 3);
    tg_actor_critic_opts opts = {
        .critic = TG_CRITIC_SEPARATE,
        .reference = true,
        .critic_only = algo->critic_only,
        .mask = {.kind = algo->masked ? TG_MASK_LEARNED_TOP_P : TG_MASK_NONE, .every = 1},
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = {.tokens = 64, .seqs = 8, .actions = 32}};
    tg_actor_critic *ac = NULL;
    CHECK_OK(tg_actor_critic_create(&ac, &opts, policy, value, ref, &err));
    return ac;
}

static tg_rollout *rollout(tg_actor_critic *ac, const tg_algo_ops *algo) {
    static const int lengths[EPISODES][2] = {{2, 4}, {3, 5}, {1, 3}};
    tg_rollout *r;
    CHECK_OK(tg_rollout_create(&r, lengths, EPISODES, ROWS, &err));
    int V = ac->policy->arch.vocab_size, words = tg_mask_words(V);
    if (algo->masked) CHECK_OK(tg_rollout_add_masks(r, words, &err));
    if (r->masks) memset(r->masks, 0xff, (size_t)r->n_actions * (size_t)words * sizeof(uint32_t));
    tg_rng rng = tg_rng_at(4, TG_RNG_TEST, 0, 0);
    for (int e = 0; e < EPISODES; e++)
        for (int i = 0; i < lengths[e][0] + lengths[e][1]; i++)
            tg_rollout_tokens(r, e)[i] = (int32_t)tg_rng_below(&rng, (uint64_t)V);
    for (int i = 0; i < r->n_actions; i++) r->task_reward[i] = tg_rng_normal(&rng);
    CHECK_OK(tg_actor_critic_score(ac, r, &err));
    tg_rollout_kl(r, 0.1);
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
    return r;
}

static uint64_t bits_of(const tg_model *m) {
    float *x = tg_alloc_array(m->params.total, sizeof *x);
    tg_backend_download(m->be, x, m->data, m->params.total * sizeof *x);
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < m->params.total; i++) {
        uint32_t b;
        memcpy(&b, &x[i], sizeof b);
        h = (h ^ b) * 1099511628211u;
    }
    tg_free(x);
    return h;
}

/* Of all moments of all trained tensors, and the count of steps. */
static double optimizer_sum(const tg_optim *o, const tg_model *m) {
    double sum = (double)tg_optim_steps(o);
    for (int k = 0; k < tg_optim_n_moments(o); k++)
        for (size_t t = 0; t < m->params.n; t++) {
            tg_optim_part part[2];
            if (tg_optim_parts(o, 0, k, t, part) != 1) continue;
            float *x = tg_alloc_array(part[0].count, sizeof *x);
            tg_backend_download(m->be, x, part[0].device, part[0].count * sizeof *x);
            for (size_t i = 0; i < part[0].count; i++) sum += fabs((double)x[i]);
            tg_free(x);
        }
    return sum;
}

typedef enum fault { NONE, NAN_ADVANTAGE, INF_ADVANTAGE, EXPLODING_RATIO, FAULTS } fault;
static const char *const names[FAULTS] = {"none", "NaN advantage", "infinite advantage",
                                          "exploding ratio"};

static void check(tg_backend *be, const tg_algo_ops *algo, fault f) {
    if (f == EXPLODING_RATIO && !strcmp(algo->name, "a2c")) return; /* it has no ratio */
    tg_arena arena = {0};
    void *opts = tg_arena_alloc(&arena, algo->options_size);
    tg_node *node;
    const char *text = "{n_steps: 12}"; /* one minibatch: every row is in it */
    CHECK_OK(tg_tree_parse(&arena, "opts", text, strlen(text), &node, &err));
    CHECK_OK(tg_opts_read(algo->options, opts, node, "alg.args", &arena, &err));
    tg_actor_critic *ac = networks(be, algo);
    REQUIRE(ac != NULL);
    tg_rollout *r = rollout(ac, algo);
    for (int i = 0; i < ROWS; i++) {
        if (f == NAN_ADVANTAGE) r->adv[i] = NAN;
        if (f == INF_ADVANTAGE) r->adv[i] = i % 2 ? INFINITY : 1;
        if (f == EXPLODING_RATIO) r->row_logp[i] = -1000;
    }
    const bool critic_only = !strcmp(algo->name, "trpo"); /* whose optimizer is the critic's */
    uint64_t before = bits_of(ac->policy);
    tg_update_stats stats;
    CHECK_OK(algo->update(ac, opts, r, &(tg_order){.seed = 1}, NULL, &stats, &err));
    bool moved = bits_of(ac->policy) != before;
    tg_check(moved == (f == NONE) && (stats.skipped > 0) == (f != NONE), __FILE__, __LINE__,
             "%s, %s: policy %s, %d skipped", algo->name, names[f], moved ? "moved" : "unmoved",
             stats.skipped);
    if (!critic_only) CHECK((optimizer_sum(ac->optim, ac->policy) == 0) == (f != NONE));
    double told = -1; /* and it is among the numbers of the run */
    for (int i = 0; i < stats.n; i++)
        if (strstr(stats.name[i], "skipped_minibatches")) told = stats.value[i];
    CHECK_NEAR(told, stats.skipped, 0);
    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_arena_fini(&arena);
}

TEST(nothing_that_is_not_finite_is_applied) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    for (const tg_algo_ops *const *a = tg_algo_list(); *a; a++)
        for (int f = NONE; f < FAULTS; f++) check(be, *a, (fault)f);
    tg_backend_close(&be);
}

TEST_MAIN
