/* The reference model between rollouts: its weights rest in the model folder, and come back bit by bit or not at all. */
#include "tests/support/tg_test.h"

#include "learner/policy/actor_critic.h"

#include <stdio.h>
#include <string.h>

static tg_error err;

static const tg_arch arch = {.family = "gpt2",
                             .n_layers = 2,
                             .n_heads = 2,
                             .n_kv_heads = 2,
                             .head_dim = 16,
                             .width = 32,
                             .mlp_width = 128,
                             .vocab_size = 101,
                             .max_positions = 32,
                             .norm_eps = 1e-5f,
                             .tied_head = true,
                             .bos_id = -1,
                             .eos_id = -1,
                             .pad_id = -1};

static char *save(tg_backend *be, uint64_t seed) {
    static char folder[600];
    tg_model *m;
    snprintf(folder, sizeof folder, "%s/model", tg_test_tmpdir());
    CHECK_OK(tg_model_create(&m, be, &arch, 0, seed, &err));
    CHECK_OK(tg_model_save(m, folder, &err));
    tg_model_destroy(&m);
    return folder;
}

static tg_actor_critic *open_networks(tg_backend *be, const char *folder, bool keep) {
    tg_actor_critic_opts opts = {.model_folder = folder,
                                 .critic = TG_CRITIC_SHARED,
                                 .reference = true,
                                 .keep_reference = keep,
                                 .seed = 1,
                                 .optim = {.kind = "sgd"},
                                 .train_caps = {.tokens = 40, .seqs = 4, .actions = 40}};
    tg_actor_critic *ac;
    CHECK_OK(tg_actor_critic_open(&ac, be, &opts, &err));
    return ac;
}

static tg_rollout *rollout(void) {
    const int lengths[2][2] = {{6, 9}, {4, 7}};
    tg_rollout *r = NULL;
    CHECK_OK(tg_rollout_create(&r, lengths, 2, 16, &err));
    for (int e = 0; r && e < 2; e++)
        for (int t = 0; t < lengths[e][0] + lengths[e][1]; t++)
            tg_rollout_tokens(r, e)[t] = (e * 31 + t * 17) % 101;
    return r;
}

/* Weights rounded to 8 bits: log-probs move by about the rounding error of a product's terms, and not at all from run to run. */
TEST(a_reference_as_bf16_scores_almost_the_same) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    const char *folder = save(be, 5);
    tg_actor_critic *ac;
    REQUIRE_OK(tg_actor_critic_open(
        &ac, be,
        &(tg_actor_critic_opts){.model_folder = folder,
                                .critic = TG_CRITIC_SHARED,
                                .reference = true,
                                .half_reference = true,
                                .seed = 1,
                                .optim = {.kind = "sgd"},
                                .train_caps = {.tokens = 40, .seqs = 4, .actions = 40}},
        &err));
    tg_rollout *a = rollout(), *b = rollout();
    REQUIRE(a && b);
    REQUIRE_OK(tg_actor_critic_score(ac, a, &err));
    REQUIRE_OK(tg_actor_critic_score(ac, b, &err));
    CHECK(!memcmp(a->ref_logp, b->ref_logp, (size_t)a->n_actions * sizeof(float)));
    double most = 0;
    for (int i = 0; i < a->n_actions; i++)
        most = fmax(most, fabs((double)a->logp[i] - (double)a->ref_logp[i]));
    printf("# bf16 reference: log-probs differ by up to %.2g\n", most);
    CHECK(most > 0 && most < 0.02);
    CHECK(!ac->ref->resting && ac->ref->half);
    CHECK(ac->ref->data[3] == 0); /* the embedding's memory is given back */
    tg_actor_critic_destroy(&ac);
    tg_rollout_destroy(&a);
    tg_rollout_destroy(&b);
    tg_backend_close(&be);
}

TEST(a_reference_that_rests_scores_as_one_that_is_kept) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    const char *folder = save(be, 5);
    tg_rollout *a = rollout(), *b = rollout();
    tg_actor_critic *kept = open_networks(be, folder, true),
                    *rests = open_networks(be, folder, false);
    REQUIRE(a && b && kept && rests);
    CHECK(rests->ref->resting && !kept->ref->resting);
    for (int round = 0; round < 3; round++) {
        REQUIRE_OK(tg_actor_critic_score(kept, a, &err));
        REQUIRE_OK(tg_actor_critic_score(rests, b, &err));
        CHECK(!memcmp(a->ref_logp, b->ref_logp, (size_t)a->n_actions * sizeof(float)));
        /* nothing has been learnt yet */
        CHECK(!memcmp(b->logp, b->ref_logp, (size_t)a->n_actions * sizeof(float)));
        CHECK(rests->ref->resting);
        CHECK(rests->ref->data[3] == 0); /* its memory is given back */
    }
    tg_actor_critic_destroy(&kept);
    tg_actor_critic_destroy(&rests);
    tg_rollout_destroy(&a);
    tg_rollout_destroy(&b);
    tg_backend_close(&be);
}

TEST(a_folder_that_changed_is_noticed) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    const char *folder = save(be, 5);
    tg_rollout *r = rollout();
    tg_actor_critic *ac = open_networks(be, folder, false);
    REQUIRE(r && ac);
    REQUIRE_OK(tg_actor_critic_score(ac, r, &err));
    save(be, 6);
    CHECK_EQ(tg_actor_critic_score(ac, r, &err), TG_DATA);
    CHECK(strstr(err.msg, "reference: memory") && strstr(err.msg, folder));
    save(be, 5); /* put back */
    CHECK_OK(tg_actor_critic_score(ac, r, &err));
    tg_actor_critic_destroy(&ac);
    tg_rollout_destroy(&r);
    tg_backend_close(&be);
}

TEST_MAIN
