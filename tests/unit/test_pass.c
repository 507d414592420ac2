/* Passes against themselves: finite differences through a whole model, packed against one by one, backend against backend, the memory
 * plan against the allocation, and bad batches. */
#include "common/base/alloc.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

#include <stdlib.h>

static tg_error err;
static const int LENGTHS[] = {7, 1, 12, 24};
enum { TRAIN = TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD };

static float *grads(const tg_model *m) {
    float *g = malloc(m->params.total * sizeof *g);
    tg_backend_download(m->be, g, m->grad, m->params.total * sizeof *g);
    return g;
}

static double largest(const float *x, size_t n) {
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs((double)x[i]));
    return top;
}

/* ---- gradients ----------------------------------------------------------------------------------- */

struct weighted { /* the objective sum(a logp + b entropy + c value) */
    float a[512], b[512], c[512];
};

static struct weighted weights(int n) {
    struct weighted w;
    for (int i = 0; i < n; i++) {
        w.a[i] = (float)sin(1.0 + i);
        w.b[i] = (float)cos(2.0 * i);
        w.c[i] = (float)sin(3.0 * i + 0.5);
    }
    return w;
}

static double objective(tg_pass *p, const tg_batch *b, const struct weighted *w) {
    float out[3][512];
    CHECK_OK(tg_pass_forward(p, b, (tg_pass_out){out[0], out[1], out[2]}, &err));
    double sum = 0;
    for (int i = 0; i < b->n_actions; i++)
        sum += (double)w->a[i] * (double)out[0][i] + (double)w->b[i] * (double)out[1][i] +
               (double)w->c[i] * (double)out[2][i];
    return sum;
}

/* Central difference in every parameter tensor, at a few of its elements. */
static void check_differences(tg_model *m, tg_pass *p, const tg_batch *b, const struct weighted *w,
                              const float *grad) {
    const double h = 4e-3;
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *q = &m->params.list[i];
        float *x = malloc(q->count * sizeof *x);
        CHECK_OK(tg_model_get(m, q->name, x, q->count, &err));
        double scale = fmax(largest(grad + q->offset, q->count), 0.05);
        for (size_t k = i % 5; k < q->count; k += q->count / 3 + 1) {
            float kept = x[k];
            double f[2];
            for (int side = 0; side < 2; side++) {
                x[k] = kept + (float)(side ? h : -h);
                CHECK_OK(tg_model_set(m, q->name, x, q->count, &err));
                f[side] = objective(p, b, w);
            }
            x[k] = kept;
            double slope = (f[1] - f[0]) / (2 * h), got = (double)grad[q->offset + k];
            tg_check(fabs(slope - got) <= 3e-3 * scale + 1e-3, __FILE__, __LINE__,
                     "%s[%zu]: difference %g, gradient %g (largest %g)", q->name, k, slope, got,
                     scale);
        }
        CHECK_OK(tg_model_set(m, q->name, x, q->count, &err));
        free(x);
    }
}

static void check_gradients(tg_arch arch) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, (int[]){5, 1, 8}, 3, 2, 4);
    b.act_row[1] =
        b.act_row[0]; /* two actions at one row, as minibatches of single transitions have */
    tg_pass *p;
    REQUIRE_OK(tg_pass_create(&p, m, tg_tiny_caps(&b.batch), true, &err));
    struct weighted w = weights(b.batch.n_actions);
    objective(p, &b.batch, &w);
    CHECK_OK(tg_pass_backward(p, w.a, w.b, w.c, &err));
    float *grad = grads(m);
    check_differences(m, p, &b.batch, &w, grad);
    free(grad);
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(gradients_are_finite_differences) {
    check_gradients(tg_tiny_arch());
}

TEST(gradients_of_grouped_heads_and_an_untied_head) {
    tg_arch a = tg_tiny_arch();
    a.n_heads = 4, a.n_kv_heads = 2, a.head_dim = 5, a.tied_head = false,
    a.layer_scaled_attn = true;
    check_gradients(a);
}

TEST(gradients_accumulate_and_parts_add_up) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, LENGTHS, 4, 3, 4);
    tg_pass *p;
    REQUIRE_OK(tg_pass_create(&p, m, tg_tiny_caps(&b.batch), true, &err));
    struct weighted w = weights(b.batch.n_actions);
    objective(p, &b.batch, &w);
    CHECK_OK(tg_pass_backward(p, w.a, w.b, w.c, &err));
    float *whole = grads(m);
    CHECK(largest(whole, m->params.total) > 0.1);
    m->be->ops->fill(be, m->grad, 0.0f, m->params.total);
    CHECK_OK(tg_pass_backward(p, w.a, NULL, NULL, &err));
    CHECK_OK(tg_pass_backward(p, NULL, w.b, NULL, &err));
    CHECK_OK(tg_pass_backward(p, NULL, NULL, w.c, &err));
    CHECK_OK(tg_pass_backward(p, NULL, NULL, NULL, &err));
    float *parts = grads(m);
    CHECK_NEAR(tg_tiny_worst(whole, parts, m->params.total), 0,
               2e-5 * largest(whole, m->params.total));
    free(whole);
    free(parts);
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* ---- the same numbers by other ways ---------------------------------------------------------------- */

TEST(packed_is_one_by_one) {
    for (size_t k = 0; tg_backend_list()[k]; k++) {
        tg_backend *be = tg_tiny_backend(tg_backend_list()[k]->name, 2);
        tg_arch arch = tg_tiny_arch();
        tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
        tg_tiny_batch b;
        tg_tiny_fill(&b, &arch, LENGTHS, 4, 1, 4);
        tg_pass *p, *score;
        REQUIRE_OK(tg_pass_create(&p, m, tg_tiny_caps(&b.batch), true, &err));
        REQUIRE_OK(tg_pass_create(&score, m, tg_tiny_caps(&b.batch), false, &err));
        float packed[3][64], single[3][64];
        CHECK_OK(
            tg_pass_forward(p, &b.batch, (tg_pass_out){packed[0], packed[1], packed[2]}, &err));
        struct weighted w = weights(b.batch.n_actions);
        CHECK_OK(tg_pass_backward(p, w.a, w.b, w.c, &err));
        float *packed_grad = grads(m);
        be->ops->fill(be, m->grad, 0.0f, m->params.total);
        for (int s = 0; s < 4; s++) {
            int at = b.offsets[s], n = b.offsets[s + 1] - at;
            int32_t rows[64], offsets[] = {0, n};
            for (int i = 0; i < n; i++) rows[i] = i;
            tg_batch one = {.n_tokens = n,
                            .n_seqs = 1,
                            .n_actions = n,
                            .tokens = b.tokens + at,
                            .offsets = offsets,
                            .act_row = rows,
                            .act_token = b.act_token + at};
            CHECK_OK(tg_pass_forward(
                p, &one, (tg_pass_out){single[0] + at, single[1] + at, single[2] + at}, &err));
            CHECK_OK(tg_pass_backward(p, w.a + at, w.b + at, w.c + at, &err));
        }
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(tg_tiny_worst(packed[i], single[i], (size_t)b.batch.n_actions), 0, 2e-6);
        float *single_grad = grads(m);
        CHECK_NEAR(tg_tiny_worst(packed_grad, single_grad, m->params.total), 0,
                   1e-5 * largest(packed_grad, m->params.total));
        /* a scoring pass and a training pass are the same computation */
        CHECK_OK(tg_pass_forward(score, &b.batch, (tg_pass_out){single[0], NULL, single[2]}, &err));
        CHECK(!memcmp(single[0], packed[0], (size_t)b.batch.n_actions * sizeof(float)));
        CHECK(!memcmp(single[2], packed[2], (size_t)b.batch.n_actions * sizeof(float)));
        free(packed_grad);
        free(single_grad);
        tg_pass_destroy(&p);
        tg_pass_destroy(&score);
        tg_model_destroy(&m);
        tg_backend_close(&be);
    }
}

TEST(every_backend_and_thread_count_agrees_with_ref) {
    static const int threads[] = {1, 2, 3};
    tg_arch arch = tg_tiny_arch();
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, LENGTHS, 4, 2, 4);
    struct weighted w = weights(b.batch.n_actions);
    float ref[3][512], out[3][512];
    float *ref_grad = NULL, *first_grad = NULL;
    for (size_t k = 0; tg_backend_list()[k]; k++) {
        for (int t = 0; t < 3; t++) {
            tg_backend *be = tg_tiny_backend(tg_backend_list()[k]->name, threads[t]);
            tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
            tg_pass *p;
            REQUIRE_OK(tg_pass_create(&p, m, tg_tiny_caps(&b.batch), true, &err));
            CHECK_OK(tg_pass_forward(p, &b.batch, (tg_pass_out){out[0], out[1], out[2]}, &err));
            CHECK_OK(tg_pass_backward(p, w.a, w.b, w.c, &err));
            float *grad = grads(m);
            if (!ref_grad) {
                memcpy(ref, out, sizeof ref);
                ref_grad = grads(m);
            }
            for (int i = 0; i < 3; i++)
                CHECK_NEAR(tg_tiny_worst(ref[i], out[i], (size_t)b.batch.n_actions), 0, 5e-6);
            CHECK_NEAR(tg_tiny_worst(ref_grad, grad, m->params.total), 0,
                       2e-5 * largest(ref_grad, m->params.total));
            if (t == 0) {
                free(first_grad);
                first_grad = grad;
            } else {
                CHECK(!memcmp(first_grad, grad, m->params.total * sizeof *grad));
                free(grad);
            }
            tg_pass_destroy(&p);
            tg_model_destroy(&m);
            tg_backend_close(&be);
        }
    }
    free(first_grad);
    free(ref_grad);
}

/* ---- memory, errors --------------------------------------------------------------------------------- */

TEST(plans_are_what_is_allocated_and_steady_state_allocates_nothing) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, LENGTHS, 4, 2, 4);
    for (int train = 0; train < 2; train++) {
        tg_pass_caps caps = {
            .tokens = b.batch.n_tokens + 5 * train, .seqs = 7, .actions = 60 * train + 50};
        size_t before = be->bytes_used;
        tg_pass *p;
        REQUIRE_OK(tg_pass_create(&p, m, caps, (unsigned)train, &err));
        CHECK_EQ(be->bytes_used - before, tg_pass_bytes(&arch, TRAIN, caps, (unsigned)train));
        uint64_t calls = tg_alloc_calls();
        struct weighted w = weights(b.batch.n_actions);
        objective(p, &b.batch, &w);
        if (train) CHECK_OK(tg_pass_backward(p, w.a, w.b, w.c, &err));
        CHECK_EQ(tg_alloc_calls(), calls);
        tg_pass_destroy(&p);
        CHECK_EQ(be->bytes_used, before);
    }
    tg_decoder *d;
    size_t before = be->bytes_used;
    REQUIRE_OK(tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 5, .len = 19}, &err));
    CHECK_EQ(be->bytes_used - before,
             tg_decoder_bytes(&arch, (tg_decoder_caps){.slots = 5, .len = 19}));
    tg_decoder_destroy(&d);
    CHECK_EQ(be->bytes_used, before);
    /* a training pass must not cost what the whole logits would */
    tg_arch big = {.family = "gpt2",
                   .n_layers = 12,
                   .n_heads = 12,
                   .n_kv_heads = 12,
                   .head_dim = 64,
                   .width = 768,
                   .mlp_width = 3072,
                   .vocab_size = 50257,
                   .max_positions = 1024,
                   .norm_eps = 1e-5f,
                   .tied_head = true};
    CHECK(tg_pass_bytes(&big, TG_MODEL_TRAINABLE,
                        (tg_pass_caps){.tokens = 1024, .seqs = 16, .actions = 1024},
                        TG_PASS_TRAIN) < 1024ull * 12 * 11 * 768 * 4 + (64 << 20));
    CHECK(tg_model_bytes(&big, 0) < 500u << 20);
    /* of values alone no logits are kept */
    const tg_pass_caps few = {.tokens = 512, .seqs = 4, .actions = 512};
    tg_pass_caps values = few;
    values.values = true;
    CHECK_EQ(tg_pass_bytes(&big, TG_MODEL_TRAINABLE, few, TG_PASS_TRAIN) -
                 tg_pass_bytes(&big, TG_MODEL_TRAINABLE, values, TG_PASS_TRAIN),
             512ull * 50257 * sizeof(float));
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(bad_batches_are_refused) {
    static const struct {
        int n_tokens, n_seqs, n_actions;
        int32_t tokens[4], offsets[3], row, token;
        const char *says;
    } table[] = {
        {4, 2, 1, {0, 1, 2, 3}, {0, 1, 4}, 3, 5, NULL},
        {4, 2, 0, {0, 1, 2, 3}, {0, 1, 4}, 99, 99, NULL},
        {0, 2, 1, {0}, {0, 1, 4}, 3, 5, "0 tokens"},
        {400, 2, 1, {0}, {0, 1, 4}, 3, 5, "400 tokens"},
        {4, 0, 1, {0}, {0}, 3, 5, "0 sequences"},
        {4, 3, 1, {0}, {0, 1, 4}, 3, 5, "3 sequences"},
        {4, 2, -1, {0}, {0, 1, 4}, 3, 5, "-1 actions"},
        {4, 2, 9, {0}, {0, 1, 4}, 3, 5, "9 actions"},
        {4, 2, 1, {0, 1, 2, 29}, {0, 1, 4}, 3, 5, "token 3 is 29"},
        {4, 2, 1, {0, -1, 2, 3}, {0, 1, 4}, 3, 5, "token 1 is -1"},
        {4, 2, 1, {0, 1, 2, 3}, {1, 2, 4}, 3, 5, "offsets"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 1, 3}, 3, 5, "offsets"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 0, 4}, 3, 5, "sequence 0"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 9, 4}, 3, 5, "sequence 0"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 1, 4}, 4, 5, "row 4"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 1, 4}, -1, 5, "row -1"},
        {4, 2, 1, {0, 1, 2, 3}, {0, 1, 4}, 3, 29, "token 29"},
        {4, 1, 1, {0, 1, 2, 3}, {0, 4}, 3, 2, "3 positions"},
    };
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    arch.max_positions = 3;
    tg_model *m = tg_tiny_model(be, &arch, TG_MODEL_TRAINABLE, 3);
    tg_pass *p;
    REQUIRE_OK(
        tg_pass_create(&p, m, (tg_pass_caps){.tokens = 4, .seqs = 2, .actions = 8}, true, &err));
    CHECK_EQ(tg_pass_backward(p, NULL, NULL, NULL, &err), TG_BUG);
    float out[8], logits[29];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        tg_batch b = {.n_tokens = table[i].n_tokens,
                      .n_seqs = table[i].n_seqs,
                      .n_actions = table[i].n_actions,
                      .tokens = table[i].tokens,
                      .offsets = table[i].offsets,
                      .act_row = &table[i].row,
                      .act_token = &table[i].token};
        tg_status st = tg_pass_forward(p, &b, (tg_pass_out){.logp = out}, &err);
        if (!table[i].says)
            tg_check(st == TG_OK, __FILE__, __LINE__, "case %zu: %s", i, err.msg);
        else
            tg_check(st == TG_DATA && strstr(err.msg, table[i].says), __FILE__, __LINE__,
                     "case %zu: %d \"%s\" should say \"%s\"", i, (int)st, err.msg, table[i].says);
    }
    tg_batch good = {.n_tokens = 4,
                     .n_seqs = 2,
                     .n_actions = 1,
                     .tokens = table[0].tokens,
                     .offsets = table[0].offsets,
                     .act_row = &table[0].row,
                     .act_token = &table[0].token};
    CHECK_EQ(tg_pass_forward(p, &good, (tg_pass_out){.value = out}, &err), TG_BUG);
    CHECK_OK(tg_pass_forward(p, &good, (tg_pass_out){.logp = out}, &err));
    CHECK_EQ(tg_pass_backward(p, NULL, NULL, out, &err), TG_BUG);
    CHECK_EQ(tg_pass_logits(p, (int32_t[]){4}, 1, logits, &err), TG_DATA);
    CHECK_OK(tg_pass_logits(p, (int32_t[]){3}, 1, logits, &err));
    tg_pass_destroy(&p);
    tg_model *frozen = NULL;
    REQUIRE_OK(tg_model_clone(&frozen, m, 0, 0, &err));
    CHECK_EQ(tg_pass_create(&p, frozen, (tg_pass_caps){.tokens = 4, .seqs = 2, .actions = 8}, true,
                            &err),
             TG_BUG);
    tg_model_destroy(&frozen);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(out_of_memory_is_reported_at_every_allocation) {
    tg_backend *be = tg_tiny_backend("ref", 1);
    tg_arch arch = tg_tiny_arch();
    tg_model *m = tg_tiny_model(be, &arch, TRAIN, 3);
    size_t before = be->bytes_used;
    for (int what = 0; what < 2; what++) {
        bool done = false;
        int failures = 0;
        for (int n = 0; n < 100 && !done; n++) {
            tg_pass *p = NULL;
            tg_decoder *d = NULL;
            tg_alloc_fail_after(n);
            tg_status st =
                what ? tg_decoder_create(&d, m, (tg_decoder_caps){.slots = 2, .len = 4}, &err)
                     : tg_pass_create(&p, m, (tg_pass_caps){.tokens = 9, .seqs = 2, .actions = 3},
                                      true, &err);
            tg_alloc_fail_after(-1);
            done = st == TG_OK;
            if (!done) CHECK_EQ(st, TG_NOMEM);
            failures += !done;
            tg_pass_destroy(&p);
            tg_decoder_destroy(&d);
            CHECK_EQ(be->bytes_used, before);
        }
        CHECK(done && failures >= 4);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
