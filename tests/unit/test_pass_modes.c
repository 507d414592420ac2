/* Passes that keep less: activations made again in backward, and frozen layers; on GPT-2 and on every recorded family. */
#include "tests/support/tg_test.h"

#include "common/base/rng.h"
#include "common/nn/pass.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

enum { SEQS = 3, MAX_TOKENS = 64 };
static const int LENGTHS[SEQS] = {9, 5, 12}, SOURCES[SEQS] = {4, 11, 7};

static bool actions_only; /* of the problems made */

typedef struct problem {
    tg_batch batch;
    int32_t tokens[MAX_TOKENS], src[MAX_TOKENS], offsets[SEQS + 1], src_offsets[SEQS + 1];
    int32_t act_row[MAX_TOKENS], act_token[MAX_TOKENS];
    float dlogp[MAX_TOKENS], dentropy[MAX_TOKENS], dvalue[MAX_TOKENS];
    float logp[MAX_TOKENS], entropy[MAX_TOKENS], value[MAX_TOKENS];
} problem;

static void make_problem(problem *p, const tg_arch *arch) {
    memset(p, 0, sizeof *p);
    tg_rng rng = tg_rng_at(5, TG_RNG_TEST, 1, 0);
    for (int s = 0; s < SEQS; s++) {
        p->offsets[s + 1] = p->offsets[s] + LENGTHS[s];
        p->src_offsets[s + 1] = p->src_offsets[s] + SOURCES[s];
    }
    uint64_t V = (uint64_t)arch->vocab_size;
    for (int i = 0; i < MAX_TOKENS; i++) {
        p->tokens[i] = (int32_t)tg_rng_below(&rng, V);
        p->src[i] = (int32_t)tg_rng_below(&rng, V);
        p->act_token[i] = (int32_t)tg_rng_below(&rng, V);
        p->dlogp[i] = (float)tg_rng_normal(&rng);
        p->dentropy[i] = 0.3f * (float)tg_rng_normal(&rng);
        p->dvalue[i] = (float)tg_rng_normal(&rng);
    }
    p->batch = (tg_batch){.n_tokens = p->offsets[SEQS],
                          .n_seqs = SEQS,
                          .tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->act_row,
                          .act_token = p->act_token,
                          .actions_only = actions_only};
    for (int i = 0; i < p->batch.n_tokens; i++)
        if (i % 3) p->act_row[p->batch.n_actions++] = i;
    if (arch->kind == TG_KIND_SEQ2SEQ) {
        p->batch.n_src = p->src_offsets[SEQS];
        p->batch.src_tokens = p->src;
        p->batch.src_offsets = p->src_offsets;
    }
}

static tg_pass_caps caps_of(const problem *p) {
    return (tg_pass_caps){.tokens = p->batch.n_tokens,
                          .seqs = SEQS,
                          .actions = p->batch.n_actions,
                          .src = p->batch.n_src,
                          .actions_only = p->batch.actions_only};
}

/* Bytes of the pass; the gradients are in the model, log-probs in the problem. */
static size_t run(tg_model *m, problem *p, unsigned mode) {
    tg_pass *pass;
    size_t before = m->be->bytes_used;
    CHECK_OK(tg_pass_create(&pass, m, caps_of(p), mode, &err));
    if (!pass) return 0;
    size_t bytes = m->be->bytes_used - before;
    CHECK_EQ(bytes, tg_pass_bytes(&m->arch, m->flags, caps_of(p), mode));
    m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
    CHECK_OK(tg_pass_forward(pass, &p->batch, (tg_pass_out){p->logp, p->entropy, p->value}, &err));
    CHECK_OK(tg_pass_backward(pass, p->dlogp, p->dentropy, p->dvalue, &err));
    tg_pass_destroy(&pass);
    return bytes;
}

static float *gradients(const tg_model *m) {
    float *g = malloc(m->params.grad_total * sizeof *g);
    tg_backend_download(m->be, g, m->grad, m->params.grad_total * sizeof *g);
    return g;
}

static void check_recompute(tg_backend *be, const char *folder, const tg_arch *arch) {
    tg_model *m = NULL;
    unsigned flags = TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD;
    if (folder)
        REQUIRE_OK(tg_model_open(&m, be, folder, flags, 1, &err));
    else
        REQUIRE_OK(tg_model_create(&m, be, arch, flags, 1, &err));
    problem p;
    make_problem(&p, &m->arch);
    size_t whole = run(m, &p, TG_PASS_TRAIN);
    float logp[MAX_TOKENS], *kept = gradients(m);
    memcpy(logp, p.logp, sizeof logp);
    size_t less = run(m, &p, TG_PASS_RECOMPUTE);
    float *again = gradients(m);
    tg_check(!memcmp(kept, again, m->params.grad_total * sizeof *kept), __FILE__, __LINE__,
             "%s: recomputed gradients differ", folder ? folder : "gpt2");
    CHECK(!memcmp(logp, p.logp, (size_t)p.batch.n_actions * sizeof *logp));
    CHECK(less < whole);
    double sum = 0;
    for (size_t i = 0; i < m->params.grad_total; i++) sum += fabs((double)kept[i]);
    CHECK(sum > 1);
    free(kept);
    free(again);
    tg_model_destroy(&m);
}

/* The trained part of a model has the gradients that the whole one has, bit by bit. */
static void check_frozen(tg_backend *be, const char *folder, const tg_arch *arch, int unfrozen,
                         unsigned mode) {
    tg_model *all = NULL, *some = NULL;
    if (folder)
        REQUIRE_OK(
            tg_model_open(&all, be, folder, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    else
        REQUIRE_OK(
            tg_model_create(&all, be, arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(
        tg_model_clone(&some, all, TG_MODEL_TRAIN_LAST(unfrozen) | TG_MODEL_VALUE_HEAD, 1, &err));
    problem p;
    make_problem(&p, &all->arch);
    size_t whole = run(all, &p, mode), less = run(some, &p, mode);
    CHECK(less <= whole);
    CHECK(unfrozen >= all->arch.n_layers || less < whole || mode == TG_PASS_RECOMPUTE);
    CHECK(some->params.grad_total < all->params.grad_total);
    int trained = 0;
    for (size_t i = 0; i < all->params.n; i++) {
        const tg_param *a = &all->params.list[i], *b = &some->params.list[i];
        if (b->grad_offset == TG_PARAM_FROZEN) continue;
        trained++;
        tg_check(!memcmp(all->grad + a->grad_offset, some->grad + b->grad_offset,
                         a->count * sizeof(float)),
                 __FILE__, __LINE__, "%s: gradient of %s differs with %d layers unfrozen",
                 folder ? folder : "gpt2", a->name, unfrozen);
    }
    CHECK(trained >= 1); /* the value head, at least */
    tg_model_destroy(&all);
    tg_model_destroy(&some);
}

static const tg_arch gpt2 = {.family = "gpt2",
                             .n_layers = 4,
                             .n_heads = 2,
                             .n_kv_heads = 2,
                             .head_dim = 8,
                             .width = 16,
                             .mlp_width = 64,
                             .vocab_size = 90,
                             .max_positions = 32,
                             .norm_eps = 1e-5f,
                             .tied_head = true,
                             .bos_id = -1,
                             .eos_id = -1,
                             .pad_id = -1};

/* A last layer that is finished at the action rows alone: the same log-probs bit by bit, gradients but for the order of sums. */
static void check_cut(tg_backend *be, const char *folder, const tg_arch *arch) {
    tg_model *m = NULL;
    unsigned flags = TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD;
    if (folder)
        REQUIRE_OK(tg_model_open(&m, be, folder, flags, 1, &err));
    else
        REQUIRE_OK(tg_model_create(&m, be, arch, flags, 1, &err));
    problem whole, cut;
    make_problem(&whole, &m->arch);
    cut = whole;
    cut.batch.actions_only = true;
    const size_t all = run(m, &whole, TG_PASS_TRAIN);
    float *a = gradients(m);
    const size_t some = run(m, &cut, TG_PASS_TRAIN);
    float *b = gradients(m);
    const bool first = m->arch.n_layers == 1; /* of which other rows are needed too */
    CHECK(m->arch.kind == TG_KIND_SEQ2SEQ || first ? some == all : some < all);
    const size_t n = (size_t)whole.batch.n_actions * sizeof(float);
    CHECK(!memcmp(whole.logp, cut.logp, n) && !memcmp(whole.entropy, cut.entropy, n) &&
          !memcmp(whole.value, cut.value, n));
    double most = 0, worst = 0;
    for (size_t i = 0; i < m->params.grad_total; i++) {
        most = fmax(most, fabs((double)a[i]));
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    }
    tg_check(worst <= 2e-6 * most, __FILE__, __LINE__, "%s: gradients of a cut layer off by %g",
             folder ? folder : "gpt2", worst / most);
    free(a);
    free(b);
    tg_model_destroy(&m);
}

static void check_all(tg_backend *be, const char *folder, const tg_arch *arch) {
    check_cut(be, folder, arch);
    for (int only = 0; only < 2; only++) {
        actions_only = only;
        check_recompute(be, folder, arch);
        for (int unfrozen = 0; unfrozen <= arch->n_layers; unfrozen++) {
            check_frozen(be, folder, arch, unfrozen, TG_PASS_TRAIN);
            check_frozen(be, folder, arch, unfrozen, TG_PASS_RECOMPUTE);
        }
    }
    actions_only = false;
}

TEST(gpt2_keeps_less_and_gives_the_same_gradients) {
    static const char *const backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        tg_backend *be;
        REQUIRE_OK(tg_backend_open(&be, backends[i], 2, &err));
        check_all(be, NULL, &gpt2);
        tg_backend_close(&be);
    }
}

/* So many logits that the head works on them in several panels. */
TEST(a_large_vocabulary_gives_the_same_gradients) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    tg_arch large = gpt2;
    large.n_layers = 2;
    large.vocab_size = 20011;
    check_recompute(be, NULL, &large);
    tg_backend_close(&be);
}

/* Folders of recorded models with a language head below golden/<group>. */
static int check_group(tg_backend *be, const char *group) {
    char base[600];
    snprintf(base, sizeof base, "%s", tg_test_path(group));
    DIR *dir = opendir(base);
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char folder[900];
        tg_arch arch;
        snprintf(folder, sizeof folder, "%s/%s", base, e->d_name);
        if (e->d_name[0] == '.' || tg_arch_load(&arch, folder, &err) != TG_OK) continue;
        if (arch.kind == TG_KIND_ENCODER) continue;
        check_all(be, folder, &arch);
        n++;
    }
    if (dir) closedir(dir);
    return n;
}

TEST(every_family_keeps_less_and_gives_the_same_gradients) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 2, &err));
    CHECK(check_group(be, "golden/families") >= 19);
    tg_backend_close(&be);
}

/* A pass that recomputes may go back twice after one forward. */
TEST(backward_twice_gives_twice_the_gradient) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &gpt2, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    problem p;
    make_problem(&p, &gpt2);
    tg_pass *pass;
    p.batch.actions_only = true;
    REQUIRE_OK(tg_pass_create(&pass, m, caps_of(&p), TG_PASS_RECOMPUTE, &err));
    CHECK_OK(tg_pass_forward(pass, &p.batch, (tg_pass_out){p.logp, p.entropy, p.value}, &err));
    CHECK_OK(tg_pass_backward(pass, p.dlogp, p.dentropy, p.dvalue, &err));
    float *once = gradients(m);
    CHECK_OK(tg_pass_backward(pass, p.dlogp, p.dentropy, p.dvalue, &err));
    float *twice = gradients(m);
    double worst = 0;
    for (size_t i = 0; i < m->params.grad_total; i++)
        worst = fmax(worst, fabs(2.0 * (double)once[i] - (double)twice[i]));
    CHECK_NEAR(worst, 0, 1e-5);
    free(once);
    free(twice);
    tg_pass_destroy(&pass);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(caps_of_actions_only_take_no_other_batch) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, "cpu", 1, &err));
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &gpt2, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    problem p;
    actions_only = true;
    make_problem(&p, &gpt2);
    actions_only = false;
    tg_pass *pass;
    REQUIRE_OK(tg_pass_create(&pass, m, caps_of(&p), TG_PASS_TRAIN, &err));
    tg_batch whole = p.batch, none = p.batch;
    whole.actions_only = false;
    none.n_actions = 0;
    CHECK_EQ(tg_pass_forward(pass, &whole, (tg_pass_out){p.logp, NULL, NULL}, &err), TG_BUG);
    CHECK_EQ(tg_pass_forward(pass, &none, (tg_pass_out){p.logp, NULL, NULL}, &err), TG_BUG);
    CHECK_OK(tg_pass_forward(pass, &p.batch, (tg_pass_out){p.logp, NULL, NULL}, &err));
    tg_pass_destroy(&pass);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
