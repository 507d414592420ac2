/* GPT-2 against transformers: logits, log-probabilities, entropies, values, loss and every gradient of the recorded batches
 * (tests/oracle/gen_gpt2.py), on every backend of this build. */
#include "common/base/alloc.h"
#include "common/nn/pass.h"
#include "common/nn/safetensors.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>

static tg_error err;

struct golden {
    tg_safetensors st;
    tg_batch batch;
    int32_t *ints[4];
};

static float *floats(const struct golden *g, const char *name, size_t count) {
    const tg_st_tensor *t = tg_safetensors_find(&g->st, name);
    float *x = malloc(count * sizeof *x);
    if (!t || t->count != count || tg_st_to_f32(t, x, &err) != TG_OK) {
        tg_check(false, __FILE__, __LINE__, "golden tensor %s of %zu elements", name, count);
        memset(x, 0, count * sizeof *x);
    }
    return x;
}

static bool open_golden(struct golden *g, const char *folder) {
    static const char *const names[] = {"tokens", "offsets", "act_row", "act_token"};
    char path[600];
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    tg_status status = tg_safetensors_open(&g->st, path, &err);
    if (!tg_check(status == TG_OK, __FILE__, __LINE__, "%s", err.msg)) return false;
    int n[4];
    for (int k = 0; k < 4; k++) {
        const tg_st_tensor *t = tg_safetensors_find(&g->st, names[k]);
        n[k] = (int)t->count;
        g->ints[k] = malloc(t->count * sizeof(int32_t));
        for (size_t i = 0; i < t->count; i++) {
            int64_t v;
            memcpy(&v, t->data + 8 * i, sizeof v);
            g->ints[k][i] = (int32_t)v;
        }
    }
    g->batch = (tg_batch){n[0], n[1] - 1, n[2], g->ints[0], g->ints[1], g->ints[2], g->ints[3]};
    return true;
}

static void close_golden(struct golden *g) {
    for (int k = 0; k < 4; k++) free(g->ints[k]);
    tg_safetensors_close(&g->st);
}

static void check_near(const char *what, const float *got, const float *want, size_t n,
                       double tolerance) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= worst)) worst = d;
    }
    tg_check(worst <= tolerance, __FILE__, __LINE__, "%s: differs by %g, allowed %g", what, worst,
             tolerance);
}

/* Relative to the largest element of the tensor. */
static void check_grads(const tg_model *m, const struct golden *g, const char *prefix) {
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        char name[160];
        snprintf(name, sizeof name, "%s.%s", prefix, p->name);
        float *want = floats(g, name, p->count), *got = malloc(p->count * sizeof *got);
        CHECK_OK(tg_model_get_grad(m, p->name, got, p->count, &err));
        double top = 0;
        for (size_t k = 0; k < p->count; k++) top = fmax(top, fabs((double)want[k]));
        check_near(name, got, want, p->count, 1e-4 * top);
        free(want);
        free(got);
    }
}

static void check_forward(tg_pass *pass, const struct golden *g, int V) {
    size_t N = (size_t)g->batch.n_tokens, A = (size_t)g->batch.n_actions;
    float *out = malloc(3 * A * sizeof *out), *logits = malloc(N * (size_t)V * sizeof *logits);
    int32_t *rows = malloc(N * sizeof *rows);
    for (size_t i = 0; i < N; i++) rows[i] = (int32_t)i;
    CHECK_OK(tg_pass_forward(pass, &g->batch, (tg_pass_out){out, out + A, out + 2 * A}, &err));
    CHECK_OK(tg_pass_logits(pass, rows, (int)N, logits, &err));
    static const char *const names[] = {"logp", "entropy", "value"};
    for (size_t k = 0; k < 3; k++) {
        float *want = floats(g, names[k], A);
        check_near(names[k], out + k * A, want, A, 1e-5);
        free(want);
    }
    float *want = floats(g, "logits", N * (size_t)V), *loss = floats(g, "loss", 1);
    check_near("logits", logits, want, N * (size_t)V, 1e-5);
    double sum = 0;
    for (size_t i = 0; i < A; i++) sum -= (double)out[i];
    CHECK_NEAR(sum / (double)A, loss[0], 1e-5);
    free(loss);
    free(want);
    free(rows);
    free(logits);
    free(out);
}

static void check_backward(tg_model *m, tg_pass *pass, const struct golden *g) {
    size_t A = (size_t)g->batch.n_actions;
    float *d = malloc(A * sizeof *d);
    for (size_t i = 0; i < A; i++) d[i] = (float)(-1.0 / (double)A);
    CHECK_OK(tg_pass_backward(pass, d, NULL, NULL, &err));
    check_grads(m, g, "grad");
    m->be->ops->fill(m->be, m->grad, 0.0f, m->params.total);
    float *w[] = {floats(g, "dlogp", A), floats(g, "dentropy", A), floats(g, "dvalue", A)};
    CHECK_OK(tg_pass_backward(pass, w[0], w[1], w[2], &err));
    check_grads(m, g, "mixed");
    for (int k = 0; k < 3; k++) free(w[k]);
    free(d);
}

static void check_case(const char *backend, const char *name) {
    char folder[500];
    snprintf(folder, sizeof folder, "%s", tg_test_path(name));
    struct golden g;
    if (!open_golden(&g, folder)) return;
    tg_backend *be = NULL;
    tg_model *m = NULL;
    tg_pass *pass = NULL;
    CHECK_OK(tg_backend_open(&be, backend, 2, &err));
    CHECK_OK(tg_model_open(&m, be, folder, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    if (m) {
        tg_pass_caps caps = {g.batch.n_tokens + 3, g.batch.n_seqs + 2, g.batch.n_actions + 1};
        CHECK_OK(tg_pass_create(&pass, m, caps, true, &err));
        check_forward(pass, &g, m->arch.vocab_size);
        check_backward(m, pass, &g);
        tg_pass_destroy(&pass);
        CHECK_OK(tg_pass_create(&pass, m, caps, false, &err));
        check_forward(pass, &g, m->arch.vocab_size);
        tg_pass_destroy(&pass);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
    close_golden(&g);
}

static void check_backends(const char *name) {
    for (size_t i = 0; tg_backend_list()[i]; i++) check_case(tg_backend_list()[i]->name, name);
}

TEST(plain_gpt2_as_in_transformers) {
    check_backends("golden/gpt2/plain");
}

TEST(untied_and_layer_scaled_gpt2_as_in_transformers) {
    check_backends("golden/gpt2/odd");
}

TEST_MAIN
