#include "tests/support/model_golden.h"

#include "common/base/alloc.h"
#include "common/nn/decoder.h"
#include "common/nn/pass.h"
#include "common/nn/safetensors.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

struct golden {
    tg_safetensors st;
    tg_batch batch;
    int32_t *ints[6];
    double forward_tol, grad_tol;
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
    static const char *const names[] = {"tokens",    "offsets",    "act_row",
                                        "act_token", "src_tokens", "src_offsets"};
    char path[600];
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    tg_status status = tg_safetensors_open(&g->st, path, &err);
    if (!tg_check(status == TG_OK, __FILE__, __LINE__, "%s", err.msg)) return false;
    int n[6] = {0}, lists = tg_safetensors_find(&g->st, "src_tokens") ? 6 : 4;
    for (int k = 0; k < lists; k++) {
        const tg_st_tensor *t = tg_safetensors_find(&g->st, names[k]);
        n[k] = (int)t->count;
        g->ints[k] = malloc(t->count * sizeof(int32_t));
        for (size_t i = 0; i < t->count; i++) {
            int64_t v;
            memcpy(&v, t->data + 8 * i, sizeof v);
            g->ints[k][i] = (int32_t)v;
        }
    }
    g->batch = (tg_batch){.n_tokens = n[0],
                          .n_seqs = n[1] - 1,
                          .n_actions = n[2],
                          .tokens = g->ints[0],
                          .offsets = g->ints[1],
                          .act_row = g->ints[2],
                          .act_token = g->ints[3],
                          .n_src = n[4],
                          .src_tokens = g->ints[4],
                          .src_offsets = g->ints[5]};
    return true;
}

static void close_golden(struct golden *g) {
    for (int k = 0; k < 6; k++) free(g->ints[k]);
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

/* The largest gradient of any tensor. */
static double largest(const struct golden *g, const char *prefix) {
    double top = 0;
    for (size_t i = 0; i < g->st.n; i++) {
        const tg_st_tensor *t = &g->st.tensors[i];
        if (strncmp(t->name, prefix, strlen(prefix)) != 0) continue;
        float *x = malloc(t->count * sizeof *x);
        CHECK_OK(tg_st_to_f32(t, x, &err));
        for (size_t k = 0; k < t->count; k++) top = fmax(top, fabs((double)x[k]));
        free(x);
    }
    return top;
}

/* Relative to the largest element of the tensor; one that is nothing but rounding, to the largest of all. */
static void check_grads(const tg_model *m, const struct golden *g, const char *prefix) {
    double all = largest(g, prefix);
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        char name[160];
        if (p->fixed) continue;
        snprintf(name, sizeof name, "%s.%s", prefix, p->name);
        float *want = floats(g, name, p->count), *got = malloc(p->count * sizeof *got);
        CHECK_OK(tg_model_get_grad(m, p->name, got, p->count, &err));
        double top = 0;
        for (size_t k = 0; k < p->count; k++) top = fmax(top, fabs((double)want[k]));
        check_near(name, got, want, p->count, g->grad_tol * fmax(top, 1e-3 * all));
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
        check_near(names[k], out + k * A, want, A, g->forward_tol);
        free(want);
    }
    float *want = floats(g, "logits", N * (size_t)V), *loss = floats(g, "loss", 1);
    check_near("logits", logits, want, N * (size_t)V, g->forward_tol);
    double sum = 0;
    for (size_t i = 0; i < A; i++) sum -= (double)out[i];
    CHECK_NEAR(sum / (double)A, loss[0], g->forward_tol);
    free(loss);
    free(want);
    free(rows);
    free(logits);
    free(out);
}

static void check_states(tg_pass *pass, const struct golden *g, int C) {
    size_t n = (size_t)g->batch.n_src * (size_t)C;
    if (!n) return;
    float *want = floats(g, "states", n), *got = malloc(n * sizeof *got);
    for (int32_t row = 0; row < g->batch.n_src; row++)
        CHECK_OK(tg_pass_source_states(pass, &row, 1, got + (size_t)row * (size_t)C, &err));
    check_near("states", got, want, n, g->forward_tol);
    free(want);
    free(got);
}

static void check_backward(tg_model *m, tg_pass *pass, const struct golden *g) {
    size_t A = (size_t)g->batch.n_actions;
    float *d = malloc(A * sizeof *d);
    for (size_t i = 0; i < A; i++) d[i] = (float)(-1.0 / (double)A);
    if (largest(g, "grad.") > 0) {
        CHECK_OK(tg_pass_backward(pass, d, NULL, NULL, &err));
        check_grads(m, g, "grad");
        m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
    }
    float *w[] = {floats(g, "dlogp", A), floats(g, "dentropy", A), floats(g, "dvalue", A)};
    CHECK_OK(tg_pass_backward(pass, w[0], w[1], w[2], &err));
    check_grads(m, g, "mixed");
    for (int k = 0; k < 3; k++) free(w[k]);
    free(d);
}

/* Prompts of half of each sequence at once, then its other tokens one by one; rows as the pass has them. */
static void decode(tg_decoder *d, const tg_batch *b, size_t V, float *out) {
    int S = b->n_seqs, longest = 0;
    int32_t *prompts = malloc((size_t)b->n_tokens * sizeof *prompts),
            *offsets = calloc((size_t)S + 1, sizeof *offsets);
    int32_t *slots = malloc((size_t)S * sizeof *slots),
            *tokens = malloc((size_t)S * sizeof *tokens);
    float *logits = malloc((size_t)S * V * sizeof *logits);
    for (int s = 0; s < S; s++) {
        int len = b->offsets[s + 1] - b->offsets[s], half = (len + 1) / 2;
        slots[s] = S - 1 - s; /* not the order of the batch */
        memcpy(prompts + offsets[s], b->tokens + b->offsets[s], (size_t)half * sizeof *prompts);
        offsets[s + 1] = offsets[s] + half;
        if (len > longest) longest = len;
    }
    if (b->n_src) CHECK_OK(tg_decoder_encode(d, slots, b->src_tokens, b->src_offsets, S, &err));
    CHECK_OK(tg_decoder_prefill(d, slots, prompts, offsets, S, logits, &err));
    for (int s = 0; s < S; s++)
        memcpy(out + (size_t)(b->offsets[s] + offsets[s + 1] - offsets[s] - 1) * V,
               logits + (size_t)s * V, V * sizeof *out);
    for (int step = 0; step < longest; step++) {
        int n = 0, rows[64];
        for (int s = 0; s < S && s < 64; s++) {
            int at = b->offsets[s] + offsets[s + 1] - offsets[s] + step;
            if (at >= b->offsets[s + 1]) continue;
            slots[n] = S - 1 - s;
            tokens[n] = b->tokens[at];
            rows[n++] = at;
        }
        CHECK_OK(tg_decoder_step(d, slots, tokens, n, logits, &err));
        for (int i = 0; i < n; i++)
            memcpy(out + (size_t)rows[i] * V, logits + (size_t)i * V, V * sizeof *out);
    }
    free(prompts);
    free(offsets);
    free(slots);
    free(tokens);
    free(logits);
}

static int longest_text(const int32_t *offsets, int n) {
    int longest = 0;
    for (int s = 0; s < n; s++)
        if (offsets[s + 1] - offsets[s] > longest) longest = offsets[s + 1] - offsets[s];
    return longest;
}

static void check_decoder(tg_model *m, tg_pass *pass, const struct golden *g) {
    const tg_batch *b = &g->batch;
    size_t V = (size_t)m->arch.vocab_size;
    float *want = malloc((size_t)b->n_tokens * V * sizeof *want),
          *got = malloc((size_t)b->n_tokens * V * sizeof *got);
    tg_decoder_caps caps = {.slots = b->n_seqs,
                            .len = longest_text(b->offsets, b->n_seqs),
                            .src = b->n_src ? longest_text(b->src_offsets, b->n_seqs) : 0};
    tg_decoder *d = NULL;
    CHECK_OK(tg_decoder_create(&d, m, caps, &err));
    if (d) {
        for (int32_t row = 0; row < b->n_tokens;
             row++) /* rows inside a prompt have no logits of their own */
            CHECK_OK(tg_pass_logits(pass, &row, 1, want + (size_t)row * V, &err));
        if (tg_safetensors_find(&g->st, "decoded")) { /* where it differs from the pass */
            free(want);
            want = floats(g, "decoded", (size_t)b->n_tokens * V);
        }
        memcpy(got, want, (size_t)b->n_tokens * V * sizeof *got);
        decode(d, b, V, got);
        check_near("decoder", got, want, (size_t)b->n_tokens * V, 1e-5);
    }
    tg_decoder_destroy(&d);
    free(want);
    free(got);
}

static void check_case(const char *backend, const char *name, double forward_tol, double grad_tol) {
    char folder[500];
    snprintf(folder, sizeof folder, "%s", tg_test_path(name));
    struct golden g = {0};
    if (!open_golden(&g, folder)) return;
    g.forward_tol = forward_tol;
    g.grad_tol = grad_tol;
    tg_backend *be = NULL;
    tg_model *m = NULL;
    tg_pass *pass = NULL;
    CHECK_OK(tg_backend_open(&be, backend, 2, &err));
    CHECK_OK(tg_model_open(&m, be, folder, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    if (m) {
        tg_pass_caps caps = {.tokens = g.batch.n_tokens + 3,
                             .seqs = g.batch.n_seqs + 2,
                             .actions = g.batch.n_actions + 1,
                             .src = g.batch.n_src ? g.batch.n_src + 2 : 0};
        CHECK_OK(tg_pass_create(&pass, m, caps, true, &err));
        check_forward(pass, &g, m->arch.vocab_size);
        check_states(pass, &g, m->arch.width);
        check_backward(m, pass, &g);
        tg_pass_destroy(&pass);
        CHECK_OK(tg_pass_create(&pass, m, caps, false, &err));
        check_forward(pass, &g, m->arch.vocab_size);
        check_decoder(m, pass, &g);
        tg_pass_destroy(&pass);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
    close_golden(&g);
}

void tg_golden_check(const char *name, double forward_tol, double grad_tol) {
    for (size_t i = 0; tg_backend_list()[i]; i++)
        check_case(tg_backend_list()[i]->name, name, forward_tol, grad_tol);
}
