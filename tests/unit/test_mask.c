/* NLPO's masks: the sets, generation within them, and the mask model's refreshing. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "learner/policy/generate.h"
#include "learner/rl/nlpo.h"
#include "learner/rl/ppo.h"
#include "tests/support/tiny.h"

#include <math.h>
#include <string.h>

static tg_error err;

static bool has(const uint32_t *bits, int t) {
    return bits[t / 32] >> (t % 32) & 1;
}

static int count(const uint32_t *bits, int V) {
    int n = 0;
    for (int t = 0; t < V; t++) n += has(bits, t);
    return n;
}

enum { V = 40, WORDS = 2 };

static void make(const tg_mask_opts *o, const float *learned, const float *policy,
                 const uint32_t *always, uint32_t *bits) {
    tg_gen_space w;
    REQUIRE_OK(tg_gen_space_init(&w, V, &err));
    tg_mask_make(o, learned, policy, V, always, bits, &w);
    tg_gen_space_fini(&w);
}

TEST(nucleus_ends_where_the_share_is_passed) {
    /* probabilities 1/2, 1/4, 1/8 … in the order 7, 6, 5, …, 0; the rest vanishes */
    float l[V];
    uint32_t none[WORDS] = {0}, bits[WORDS];
    for (int t = 0; t < V; t++) l[t] = t < 8 ? (float)(t * log(2)) : -50.0F;
    tg_mask_opts o = {.kind = TG_MASK_LEARNED_TOP_P, .top = 0.6, .min_keep = 1};
    make(&o, l, NULL, none, bits);
    CHECK_EQ(count(bits, V), 2); /* 0.50 before the second, 0.75 before the third */
    CHECK(has(bits, 7) && has(bits, 6));
    o.min_keep = 5;
    make(&o, l, NULL, none, bits);
    CHECK_EQ(count(bits, V), 5);
    CHECK(has(bits, 3) && !has(bits, 2));
    uint32_t special[WORDS] = {1u << 0, 1u << 7}; /* tokens 0 and 39 */
    o.min_keep = 1;
    make(&o, l, NULL, special, bits);
    CHECK_EQ(count(bits, V), 4);
    CHECK(has(bits, 0) && has(bits, 39));
}

TEST(sets_of_k_are_the_learned_or_the_policys_own) {
    float l[V], p[V];
    uint32_t none[WORDS] = {0}, bits[WORDS];
    for (int t = 0; t < V; t++) l[t] = (float)t, p[t] = (float)(t == 3 || t == 4 ? 9 : 1);
    tg_mask_opts o = {.kind = TG_MASK_LEARNED_TOP_K, .top = 6};
    make(&o, l, p, none, bits);
    CHECK_EQ(count(bits, V), 6);
    CHECK(has(bits, 34) && !has(bits, 33));
    o.kind = TG_MASK_TOP_K;
    o.top = 3; /* ties: the smaller number */
    make(&o, l, p, none, bits);
    CHECK(count(bits, V) == 3 && has(bits, 3) && has(bits, 4) && has(bits, 0));
    o.top = -1;
    make(&o, l, p, none, bits);
    CHECK_EQ(count(bits, V), V);
}

/* ---- generation ---- */

typedef struct seen {
    int outside, n, in_set;
    int vocab;
} seen;

static tg_status look(void *arg, const tg_gen_result *g, tg_error *e) {
    (void)e;
    seen *s = arg;
    size_t words = (size_t)tg_mask_words(s->vocab);
    CHECK(g->masks != NULL);
    for (int i = 0; g->masks && i < g->n; i++) {
        s->outside += !has(g->masks + (size_t)i * words, g->tokens[i]);
        s->in_set += count(g->masks + (size_t)i * words, s->vocab);
        s->n++;
    }
    return TG_OK;
}

static seen generate(tg_model *policy, tg_model *masks, const tg_mask_opts *o) {
    tg_gen_settings s;
    tg_arena arena = {0};
    CHECK_OK(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.do_sample = true;
    s.top_k = 0;
    s.max_new_tokens = 6;
    seen out = {.vocab = policy->arch.vocab_size};
    uint32_t none[64] = {0};
    tg_generator *g;
    CHECK_OK(tg_generator_create(&g, policy, &s, (tg_decoder_caps){.slots = 3, .len = 10}, &err));
    CHECK_OK(tg_generator_mask(g, masks, o, none, &err));
    for (uint64_t i = 0; i < 40; i++)
        CHECK_OK(tg_generator_add(g, i, (int32_t[]){1, 2, 3}, 3, 5, TG_RNG_TEST, i, &err));
    while (tg_generator_active(g)) CHECK_OK(tg_generator_advance(g, look, &out, &err));
    tg_generator_destroy(&g);
    tg_arena_fini(&arena);
    return out;
}

TEST(forbidden_tokens_are_never_drawn) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *policy = tg_tiny_model(be, &arch, 0, 1), *masks = tg_tiny_model(be, &arch, 0, 2);
    tg_mask_opts o = {.kind = TG_MASK_LEARNED_TOP_P, .top = 0.5, .min_keep = 2};
    seen s = generate(policy, masks, &o);
    CHECK_EQ(s.outside, 0);
    CHECK(s.n >= 40);
    CHECK(s.in_set < s.n * arch.vocab_size); /* the sets do forbid something */
    o.compat = true; /* what is recorded then is what was left after everything */
    s = generate(policy, masks, &o);
    CHECK_EQ(s.outside, 0);
    tg_model_destroy(&policy);
    tg_model_destroy(&masks);
    tg_backend_close(&be);
}

/* Tokens outside the sets that the mask model makes of the same beginnings, which a pass gives again. */
typedef struct judged {
    tg_pass *pass;
    const tg_mask_opts *o;
    int outside, n, vocab;
} judged;

static tg_status judge(void *arg, const tg_gen_result *g, tg_error *e) {
    judged *j = arg;
    int32_t tokens[16] = {1, 2, 3}, offsets[2] = {0, 3 + g->n};
    uint32_t none[64] = {0}, bits[64];
    float logits[2048];
    CHECK(!g->masks && j->vocab <= 2048);
    memcpy(tokens + 3, g->tokens, (size_t)g->n * sizeof *tokens);
    const tg_batch b = {.n_tokens = offsets[1], .n_seqs = 1, .tokens = tokens, .offsets = offsets};
    tg_status st = tg_pass_forward(j->pass, &b, (tg_pass_out){0}, e);
    for (int i = 0; i < g->n && st == TG_OK; i++) {
        st = tg_pass_logits(j->pass, (int32_t[]){2 + i}, 1, logits, e);
        make(j->o, logits, logits, none, bits);
        j->outside += !has(bits, g->tokens[i]);
        j->n++;
    }
    return st;
}

static judged beams(tg_model *policy, tg_model *masks, const tg_mask_opts *o, bool masked) {
    tg_gen_settings s;
    tg_arena arena = {0};
    CHECK_OK(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
    s.num_beams = 3;
    s.num_return_sequences = 2;
    s.max_new_tokens = 6;
    judged out = {.o = o, .vocab = policy->arch.vocab_size};
    uint32_t none[64] = {0};
    tg_generator *g;
    CHECK_OK(tg_pass_create(&out.pass, masks, (tg_pass_caps){.tokens = 16, .seqs = 1},
                            TG_PASS_SCORE, &err));
    CHECK_OK(tg_generator_create(&g, policy, &s, (tg_decoder_caps){.slots = 6, .len = 10}, &err));
    if (masked) CHECK_OK(tg_generator_mask(g, masks, o, none, &err));
    for (uint64_t i = 0; i < 5; i++)
        CHECK_OK(tg_generator_add(g, i, (int32_t[]){1, 2, 3}, 3, 5, TG_RNG_TEST, i, &err));
    while (tg_generator_active(g)) CHECK_OK(tg_generator_advance(g, judge, &out, &err));
    tg_generator_destroy(&g);
    tg_pass_destroy(&out.pass);
    tg_arena_fini(&arena);
    return out;
}

TEST(beams_stay_within_the_sets) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *policy = tg_tiny_model(be, &arch, 0, 1), *masks = tg_tiny_model(be, &arch, 0, 2);
    const tg_mask_opts o = {.kind = TG_MASK_LEARNED_TOP_K, .top = 4};
    judged free_ones = beams(policy, masks, &o, false), j = beams(policy, masks, &o, true);
    CHECK(free_ones.outside > 0); /* else nothing is shown */
    CHECK(j.n >= 20);
    CHECK_EQ(j.outside, 0);
    tg_model_destroy(&policy);
    tg_model_destroy(&masks);
    tg_backend_close(&be);
}

enum { FIRST = 4, LAST = 9 };

static tg_status look_at_ends(void *arg, const tg_gen_result *g, tg_error *e) {
    (void)e;
    seen *s = arg;
    CHECK_EQ(g->tokens[0], FIRST);
    CHECK_EQ(g->tokens[g->n - 1], LAST);
    const size_t words = (size_t)tg_mask_words(s->vocab);
    if (g->masks) /* an update takes its log-prob within the set */
        CHECK(has(g->masks, FIRST) && has(g->masks + (size_t)(g->n - 1) * words, LAST));
    s->n++;
    return TG_OK;
}

/* Whether or not the mask model thinks of them. */
TEST(forced_tokens_are_allowed) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch arch = tg_tiny_arch();
    tg_model *policy = tg_tiny_model(be, &arch, 0, 1), *masks = tg_tiny_model(be, &arch, 0, 2);
    const tg_mask_opts o = {.kind = TG_MASK_LEARNED_TOP_K, .top = 2};
    for (int beams = 1; beams < 4; beams += 2) {
        tg_gen_settings s;
        tg_arena arena = {0};
        tg_node *node;
        const char *text = "{forced_bos_token_id: 4, forced_eos_token_id: 9, max_new_tokens: 5}";
        CHECK_OK(tg_tree_parse(&arena, "kw", text, strlen(text), &node, &err));
        CHECK_OK(tg_gen_settings_read(&s, node, "generation_kwargs", &arena, &err));
        s.do_sample = beams == 1;
        s.num_beams = beams;
        uint32_t none[64] = {0};
        seen ends = {.vocab = arch.vocab_size};
        tg_generator *g;
        CHECK_OK(
            tg_generator_create(&g, policy, &s, (tg_decoder_caps){.slots = 3, .len = 10}, &err));
        CHECK_OK(tg_generator_mask(g, masks, &o, none, &err));
        for (int32_t i = 0; i < 10; i++)
            CHECK_OK(tg_generator_add(g, (uint64_t)i, &i, 1, 5, TG_RNG_TEST, (uint64_t)i, &err));
        tg_status st = TG_OK;
        while (st == TG_OK && tg_generator_active(g))
            st = tg_generator_advance(g, look_at_ends, &ends, &err);
        CHECK_OK(st);
        CHECK_EQ(ends.n, 10);
        tg_generator_destroy(&g);
        tg_arena_fini(&arena);
    }
    tg_model_destroy(&policy);
    tg_model_destroy(&masks);
    tg_backend_close(&be);
}

/* ---- the mask model ---- */

static tg_actor_critic *networks(tg_backend *be, int every, bool compat, tg_pass_caps caps) {
    tg_arch arch = tg_tiny_arch();
    tg_model *policy = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE, 1);
    tg_model *value = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 2);
    tg_model *ref = tg_tiny_model(be, &arch, 0, 1);
    tg_actor_critic_opts opts = {
        .critic = TG_CRITIC_SEPARATE,
        .reference = true,
        .mask = {.kind = TG_MASK_LEARNED_TOP_P, .top = 0.9, .every = every, .compat = compat},
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = caps};
    tg_actor_critic *ac = NULL;
    CHECK_OK(tg_actor_critic_create(&ac, &opts, policy, value, ref, &err));
    return ac;
}

static tg_rollout *rollout(const tg_arch *arch) {
    static const int lengths[3][2] = {{2, 4}, {3, 5}, {1, 3}};
    tg_rollout *r;
    CHECK_OK(tg_rollout_create(&r, lengths, 3, 12, &err));
    int words = tg_mask_words(arch->vocab_size);
    CHECK_OK(tg_rollout_add_masks(r, words, &err));
    tg_rng rng = tg_rng_at(4, TG_RNG_TEST, 0, 0);
    for (int e = 0; e < 3; e++) {
        int32_t *t = tg_rollout_tokens(r, e);
        const tg_episode *ep = &r->episodes[e];
        for (int i = 0; i < ep->n_prompt + ep->n_actions; i++)
            t[i] = (int32_t)tg_rng_below(&rng, (uint64_t)arch->vocab_size);
        for (int k = 0; k < ep->n_actions; k++) { /* half of the tokens, and its own */
            uint32_t *row = r->masks + (size_t)(ep->first_action + k) * (size_t)words;
            for (int i = 0; i < words; i++) row[i] = 0x55555555u;
            int own = t[ep->n_prompt + k];
            row[own / 32] |= 1u << (own % 32);
            r->task_reward[ep->first_action + k] = tg_rng_normal(&rng);
        }
    }
    return r;
}

static double distance(const tg_model *a, const tg_model *b) {
    size_t n = a->params.total;
    float *x = tg_alloc_array(n, sizeof *x), *y = tg_alloc_array(n, sizeof *y);
    tg_backend_download(a->be, x, a->data, n * sizeof *x);
    tg_backend_download(b->be, y, b->data, n * sizeof *y);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += fabs((double)x[i] - (double)y[i]);
    tg_free(x);
    tg_free(y);
    return sum;
}

/* Iterations of NLPO from `from` on; the mask model is renewed before the update of every second. */
static void iterate(tg_actor_critic *ac, tg_rollout *r, uint64_t from, int n) {
    tg_arena arena = {0};
    tg_ppo_opts o;
    CHECK_OK(tg_opts_read(tg_ppo_options, &o, NULL, "alg.args", &arena, &err));
    o.n_epochs = 1;
    o.batch_size = 6;
    o.learning_rate = 1e-2;
    for (int i = 0; i < n; i++) {
        tg_update_stats stats;
        CHECK_OK(tg_actor_critic_score(ac, r, &err));
        tg_rollout_kl(r, 0.1);
        tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
        CHECK_OK(tg_algo_nlpo.update(ac, &o, r,
                                     &(tg_order){.seed = 1, .iteration = from + (uint64_t)i}, NULL,
                                     &stats, &err));
        CHECK(stats.first_ratio_error < 1e-5);
        CHECK(stats.minibatches > 0);
    }
    tg_arena_fini(&arena);
}

TEST(the_mask_model_follows_the_policy_every_so_many_iterations) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    tg_arch arch = tg_tiny_arch();
    tg_rollout *r = rollout(&arch);
    tg_pass_caps caps = {.tokens = 64, .seqs = 8, .actions = 32};
    for (int compat = 0; compat < 2; compat++) {
        tg_actor_critic *ac = networks(be, 2, compat, caps);
        REQUIRE(ac != NULL);
        CHECK_NEAR(distance(ac->mask_model, ac->policy), 0, 0);
        iterate(ac, r, 0, 1); /* the policy moves, its mask does not */
        double first = distance(ac->mask_model, ac->policy);
        CHECK(first > 0);
        tg_model *before;
        CHECK_OK(tg_model_clone(&before, ac->policy, 0, 0, &err));
        iterate(ac, r, 1, 1);
        if (compat) /* RL4LMs's stays what it was at first */
            CHECK(distance(ac->mask_model, before) > 0);
        else
            CHECK_NEAR(distance(ac->mask_model, before), 0, 0);
        tg_model_destroy(&before);
        tg_actor_critic_destroy(&ac);
    }
    tg_rollout_destroy(&r);
    tg_backend_close(&be);
}

TEST(masks_of_a_large_rollout_are_small) {
    /* 50257 tokens, 128 x 48 actions */
    CHECK(128.0 * 48 * tg_mask_words(50257) * sizeof(uint32_t) < 100e6);
}

TEST_MAIN
