/* Steady state allocates nothing: every allocation of this process, whoever asks for it, is counted, and the inner loops of training
 * and generation must not make one. Under AddressSanitizer, which has an allocator of its own, only ours are counted. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "learner/policy/actor_critic.h"
#include "learner/policy/generate.h"
#include "learner/rl/algo.h"
#include "learner/rl/ppo.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_ALLOCATOR 0
#else
#define OWN_ALLOCATOR 1
#endif

static atomic_ullong calls;

#if OWN_ALLOCATOR
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t alignment, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(alignment, n);
}
void *memalign(size_t alignment, size_t n) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(alignment, n);
}
int posix_memalign(void **p, size_t alignment, size_t n) {
    atomic_fetch_add(&calls, 1);
    *p = __libc_memalign(alignment, n);
    return *p ? 0 : 12;
}
#endif

static unsigned long long count(void) {
    return OWN_ALLOCATOR ? atomic_load(&calls) : (unsigned long long)tg_alloc_calls();
}

static tg_error err;

TEST(an_allocation_is_counted) {
    unsigned long long before = count();
    void *volatile p = tg_alloc(10);
    tg_free(p);
    CHECK(count() > before);
#if OWN_ALLOCATOR
    before = count();
    p = malloc(10);
    free(p);
    CHECK(posix_memalign((void **)(size_t)&p, 64, 10) == 0);
    free(p);
    CHECK_EQ(count() - before, 2);
#endif
}

enum { VOCAB = 300, SEQ = 24, SEQS = 6 };
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

typedef struct packed {
    tg_batch batch;
    int32_t tokens[SEQ * SEQS], offsets[SEQS + 1], row[SEQ * SEQS], act[SEQ * SEQS];
    float out[6][SEQ * SEQS];
} packed;

static void fill_batch(packed *p) {
    memset(p, 0, sizeof *p);
    p->batch = (tg_batch){.n_tokens = SEQ * SEQS,
                          .n_seqs = SEQS,
                          .n_actions = SEQ * SEQS,
                          .tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->row,
                          .act_token = p->act};
    for (int i = 0; i < SEQ * SEQS; i++) {
        p->tokens[i] = i * 7 % VOCAB, p->row[i] = i, p->act[i] = i * 11 % VOCAB;
        for (int k = 3; k < 6; k++) p->out[k][i] = 0.01f * (float)(i % 5 - 2);
    }
    for (int s = 0; s <= SEQS; s++) p->offsets[s] = s * SEQ;
}

/* One training step; the first warms up, the others are counted. */
TEST(passes_and_every_optimizer) {
    static const char *const kinds[] = {"adamw", "adamw_8bit", "adam", "rmsprop", "sgd"};
    static const unsigned modes[] = {TG_PASS_TRAIN, TG_PASS_RECOMPUTE};
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    packed *p = tg_alloc(sizeof *p);
    REQUIRE(p);
    fill_batch(p);
    for (int k = 0; k < 5; k++) {
        tg_model *m;
        tg_optim *o;
        tg_pass *pass;
        tg_optim_opts opts = {
            .kind = kinds[k], .beta1 = 0.9, .beta2 = 0.99, .alpha = 0.9, .eps = 1e-8};
        tg_pass_caps caps = {.tokens = SEQ * SEQS, .seqs = SEQS, .actions = SEQ * SEQS};
        REQUIRE_OK(
            tg_model_create(&m, be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
        REQUIRE_OK(tg_optim_create(&o, &m, 1, &opts, &err));
        REQUIRE_OK(tg_pass_create(&pass, m, caps, modes[k % 2], &err));
        unsigned long long before = 0;
        for (int step = 0; step < 4; step++) {
            if (step == 1) before = count();
            CHECK_OK(tg_pass_forward(pass, &p->batch,
                                     (tg_pass_out){p->out[0], p->out[1], p->out[2]}, &err));
            CHECK_OK(tg_pass_backward(pass, p->out[3], p->out[4], p->out[5], &err));
            double norm = tg_optim_grad_norm(o);
            tg_optim_step(o, 1e-3, (float)(1 / norm));
            tg_optim_clear(o);
        }
        tg_check(count() == before, __FILE__, __LINE__, "%s: %llu allocations in 3 steps", kinds[k],
                 count() - before);
        tg_pass_destroy(&pass);
        tg_optim_destroy(&o);
        tg_model_destroy(&m);
    }
    tg_free(p);
    tg_backend_close(&be);
}

static tg_status ignore_result(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)arg;
    (void)r;
    (void)e;
    return TG_OK;
}

TEST(every_token_of_generation) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &arch, 0, 1, &err));
    tg_arena arena = {0};
    static const char *const names[] = {"greedy", "sampling", "beams", "groups of beams"};
    for (int kind = 0; kind < 4; kind++) {
        tg_gen_settings s;
        REQUIRE_OK(tg_gen_settings_read(&s, NULL, "generation_kwargs", &arena, &err));
        s.do_sample = kind == 1;
        s.num_beams = kind >= 2 ? 4 : 1;
        s.num_beam_groups = kind == 3 ? 2 : 1;
        s.max_new_tokens = 20;
        s.repetition_penalty = 1.1;
        tg_generator *g;
        tg_decoder_caps caps = {.slots = (int)(4 * s.num_beams), .len = 40};
        REQUIRE_OK(tg_generator_create(&g, m, &s, caps, &err));
        int32_t prompt[] = {5, 7, 9};
        for (uint64_t i = 0; i < 4; i++)
            CHECK_OK(tg_generator_add(g, i, prompt, 3, 1, TG_RNG_SAMPLE, i, &err));
        for (int i = 0; i < 3; i++) CHECK_OK(tg_generator_advance(g, ignore_result, NULL, &err));
        unsigned long long before = count();
        for (int i = 0; i < 12; i++) CHECK_OK(tg_generator_advance(g, ignore_result, NULL, &err));
        tg_check(count() == before, __FILE__, __LINE__, "%s: %llu allocations in 12 tokens",
                 names[kind], count() - before);
        CHECK(tg_generator_active(g));
        tg_generator_destroy(&g);
    }
    tg_arena_fini(&arena);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* ---- the loop over minibatches of PPO ---- */

typedef struct watch {
    unsigned long long first, last;
    int n;
} watch;

static void look(void *arg, const tg_minibatch_report *report) {
    (void)report;
    watch *w = arg;
    if (w->n++ == 0) w->first = count();
    w->last = count();
}

TEST(every_minibatch_of_an_update) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    const tg_algo_ops *ppo;
    REQUIRE_OK(tg_algo_find("ppo", &ppo, &err));
    tg_arena arena = {0};
    tg_node *node;
    static const char text[] = "{n_steps: 12, batch_size: 24, n_epochs: 3, microbatch_tokens: 40}";
    REQUIRE_OK(tg_tree_parse(&arena, "test", text, strlen(text), &node, &err));
    tg_ppo_opts opts;
    REQUIRE_OK(tg_opts_read(ppo->options, &opts, node, "alg.args", &arena, &err));
    tg_algo_plan plan;
    ppo->plan(&opts, 6, 20, &plan);
    tg_model *policy, *ref;
    REQUIRE_OK(
        tg_model_create(&policy, be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_clone(&ref, policy, 0, 1, &err));
    tg_actor_critic_opts ac_opts = {
        .critic = TG_CRITIC_SHARED,
        .reference = true,
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = plan.caps};
    tg_actor_critic *ac;
    REQUIRE_OK(tg_actor_critic_create(&ac, &ac_opts, policy, NULL, ref, &err));
    int lengths[6][2];
    for (int i = 0; i < 6; i++) lengths[i][0] = 8, lengths[i][1] = 12;
    tg_rollout *r;
    REQUIRE_OK(tg_rollout_create(&r, (const int(*)[2])lengths, 6, 72, &err));
    for (int e = 0; e < 6; e++)
        for (int t = 0; t < 20; t++) tg_rollout_tokens(r, e)[t] = (e * 31 + t * 7) % VOCAB;
    REQUIRE_OK(tg_actor_critic_score(ac, r, &err));
    for (int i = 0; i < r->n_actions; i++) r->task_reward[i] = i % 3;
    tg_rollout_finish(r, &(tg_returns_opts){.gamma = 0.99, .gae_lambda = 0.95});
    watch w = {0};
    tg_update_stats stats;
    REQUIRE_OK(ppo->update(ac, &opts, r, &(tg_order){.seed = 1},
                           &(tg_update_probe){.arg = &w, .minibatch = look}, &stats, &err));
    CHECK(w.n >= 6);
    tg_check(w.last == w.first, __FILE__, __LINE__, "%llu allocations in %d minibatches",
             w.last - w.first, w.n - 1);
    tg_rollout_destroy(&r);
    tg_actor_critic_destroy(&ac);
    tg_arena_fini(&arena);
    tg_backend_close(&be);
}

TEST_MAIN
