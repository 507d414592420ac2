/* Log-probs and values of generation are those of a scoring pass: for any number of slots, threads and samples of a prompt; and a rollout that
 * has them is scored by the reference alone. */
#include "tests/support/tg_test.h"

#include "learner/policy/actor_critic.h"
#include "learner/policy/generate.h"
#include "tests/support/tiny.h"

static tg_error err;

enum { PROMPTS = 5, SAMPLES = 2, PROMPT = 6, NEW = 9, TEXTS = PROMPTS * SAMPLES };

typedef struct texts {
    struct text {
        int32_t tokens[NEW];
        float logp[NEW], value[NEW];
        int n;
    } of[TEXTS];
} texts;

static int32_t prompt_token(const tg_model *m, int prompt, int i) {
    return (7 * prompt + 3 * i + 1) % m->arch.vocab_size;
}

static tg_status keep(void *arg, const tg_gen_result *r, tg_error *e) {
    (void)e;
    texts *all = arg;
    struct text *t = &all->of[(int)r->id * SAMPLES + r->index];
    t->n = r->n;
    memcpy(t->tokens, r->tokens, (size_t)r->n * sizeof(int32_t));
    memcpy(t->logp, r->logp, (size_t)r->n * sizeof(float));
    memcpy(t->value, r->value, (size_t)r->n * sizeof(float));
    return TG_OK;
}

static void settings(tg_gen_settings *s, tg_arena *arena) {
    CHECK_OK(tg_gen_settings_read(s, NULL, "generation_kwargs", arena, &err));
    s->do_sample = true;
    s->max_new_tokens = NEW;
    s->num_return_sequences = SAMPLES;
}

static void generate(tg_model *m, int slots, texts *out) {
    tg_arena arena = {0};
    tg_gen_settings s;
    settings(&s, &arena);
    tg_generator *g;
    const tg_decoder_caps caps = {.slots = slots, .len = PROMPT + NEW, .values = true};
    REQUIRE_OK(tg_generator_create(&g, m, &s, caps, &err));
    memset(out, 0, sizeof *out);
    for (int p = 0; p < PROMPTS; p++) {
        int32_t tokens[PROMPT];
        for (int i = 0; i < PROMPT; i++) tokens[i] = prompt_token(m, p, i);
        CHECK_OK(
            tg_generator_add(g, (uint64_t)p, tokens, 2 + p, 3, TG_RNG_SAMPLE, (uint64_t)p, &err));
    }
    for (int guard = 0; tg_generator_active(g) && guard < 1000; guard++)
        REQUIRE_OK(tg_generator_advance(g, keep, out, &err));
    tg_generator_destroy(&g);
    tg_arena_fini(&arena);
}

static tg_actor_critic *networks(tg_backend *be, tg_critic critic, tg_mask_opts mask) {
    const tg_arch arch = tg_tiny_arch();
    const bool shared = critic == TG_CRITIC_SHARED;
    tg_model *policy = tg_tiny_model(be, &arch,
                                     TG_MODEL_TRAINABLE | (shared ? TG_MODEL_VALUE_HEAD : 0u), 1),
             *ref = tg_tiny_model(be, &arch, 0, 2), *value = NULL;
    if (!shared) value = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 3);
    const tg_actor_critic_opts opts = {
        .critic = critic,
        .reference = true,
        .mask = mask,
        .optim = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
        .train_caps = {.tokens = 64, .seqs = 8, .actions = 64}};
    tg_actor_critic *ac = NULL;
    CHECK_OK(tg_actor_critic_create(&ac, &opts, policy, value, ref, &err));
    return ac;
}

static tg_rollout *rollout_of(const tg_model *m, const texts *t, bool known) {
    int lengths[TEXTS][2], actions = 0;
    for (int i = 0; i < TEXTS; i++) {
        lengths[i][0] = 2 + i / SAMPLES;
        actions += lengths[i][1] = t->of[i].n;
    }
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, (const int(*)[2])lengths, TEXTS, actions, &err));
    if (!r) return NULL;
    r->known = known;
    for (int i = 0; i < TEXTS; i++) {
        const size_t bytes = (size_t)t->of[i].n * sizeof(float);
        int32_t *tokens = tg_rollout_tokens(r, i);
        for (int k = 0; k < lengths[i][0]; k++) tokens[k] = prompt_token(m, i / SAMPLES, k);
        memcpy(tokens + lengths[i][0], t->of[i].tokens, bytes);
        if (!known) continue;
        memcpy(r->logp + r->episodes[i].first_action, t->of[i].logp, bytes);
        memcpy(r->value + r->episodes[i].first_action, t->of[i].value, bytes);
    }
    return r;
}

TEST(generation_gives_log_probs_and_values_of_a_scoring_pass) {
    tg_backend *be = tg_tiny_backend("cpu", 2);
    REQUIRE(be);
    tg_actor_critic *ac = networks(be, TG_CRITIC_SHARED, (tg_mask_opts){0});
    static texts t;
    generate(ac->policy, 3, &t);
    tg_rollout *known = rollout_of(ac->policy, &t, true),
               *scored = rollout_of(ac->policy, &t, false);
    REQUIRE(known && scored);
    const size_t n = (size_t)known->n_actions;
    CHECK_EQ(n, TEXTS * NEW);
    CHECK_OK(tg_actor_critic_score(ac, scored, &err));
    CHECK(tg_tiny_worst(known->logp, scored->logp, n) < 1e-5);
    CHECK(tg_tiny_worst(known->value, scored->value, n) < 1e-5);
    CHECK_OK(tg_actor_critic_score(ac, known, &err));
    CHECK(!memcmp(known->ref_logp, scored->ref_logp, n * sizeof(float)));
    CHECK(!memcmp(known->logp, t.of[0].logp, NEW * sizeof(float))); /* left as they were */
    CHECK(!memcmp(known->value, t.of[0].value, NEW * sizeof(float)));
    CHECK(known->logp[0] != known->ref_logp[0]);
    known->value[3] = NAN;
    CHECK_EQ(tg_actor_critic_score(ac, known, &err), TG_DATA);
    tg_rollout_destroy(&known);
    tg_rollout_destroy(&scored);
    tg_actor_critic_destroy(&ac);
    tg_backend_close(&be);
}

TEST(they_depend_on_neither_slots_nor_threads) {
    static texts one, other;
    for (int k = 0; k < 3; k++) {
        tg_backend *be = tg_tiny_backend("cpu", k == 2 ? 1 : 3);
        REQUIRE(be);
        const tg_arch arch = tg_tiny_arch();
        tg_model *m = tg_tiny_model(be, &arch, TG_MODEL_VALUE_HEAD, 1);
        generate(m, k == 0 ? 1 : 4, k == 0 ? &one : &other);
        CHECK(k == 0 || !memcmp(&one, &other, sizeof one));
        tg_model_destroy(&m);
        tg_backend_close(&be);
    }
}

TEST(a_model_without_a_value_head_has_no_values) {
    tg_backend *be = tg_tiny_backend("cpu", 1);
    REQUIRE(be);
    const tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, 0, 1);
    tg_decoder *d = NULL;
    tg_decoder_caps caps = {.slots = 1, .len = 4, .values = true};
    CHECK_EQ(tg_decoder_create(&d, m, caps, &err), TG_BUG);
    caps.values = false;
    CHECK_OK(tg_decoder_create(&d, m, caps, &err));
    CHECK(!tg_decoder_values(d));
    tg_decoder_destroy(&d);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(what_generation_does_otherwise_is_scored_again) {
    tg_backend *be = tg_tiny_backend("cpu", 1);
    REQUIRE(be);
    tg_arena arena = {0};
    tg_gen_settings s;
    settings(&s, &arena);
    tg_actor_critic *ac = networks(be, TG_CRITIC_SHARED, (tg_mask_opts){0});
    CHECK(tg_actor_critic_knows(ac, &s));
    s.half_cache = true;
    CHECK(!tg_actor_critic_knows(ac, &s));
    s.half_cache = false, s.weights = TG_WEIGHT_PACKED_BF16;
    CHECK(!tg_actor_critic_knows(ac, &s));
    s.weights = TG_WEIGHT_PACKED, s.num_beams = 2;
    CHECK(!tg_actor_critic_knows(ac, &s));
    s.num_beams = 1;
    tg_actor_critic_destroy(&ac);
    ac = networks(be, TG_CRITIC_SEPARATE, (tg_mask_opts){0});
    CHECK(!tg_actor_critic_knows(ac, &s));
    tg_actor_critic_destroy(&ac);
    ac = networks(be, TG_CRITIC_SHARED, (tg_mask_opts){.kind = TG_MASK_TOP_K, .top = 3});
    CHECK(!tg_actor_critic_knows(ac, &s));
    tg_actor_critic_destroy(&ac);
    tg_arena_fini(&arena);
    tg_backend_close(&be);
}

TEST_MAIN
