/* Products with the Fisher matrix, on every recorded family: u^T F v beside the covariance of the logits' derivatives along u and v, which
 * come from central differences of the logits themselves. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/nn/fisher.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tg_error err;

enum { SEQS = 3, MAX = 64 };
static const int LENGTHS[SEQS] = {7, 4, 9}, SOURCES[SEQS] = {4, 8, 5};

typedef struct problem {
    tg_model *m;
    tg_pass *pass;
    tg_batch batch;
    int32_t tokens[MAX], src[MAX], offsets[SEQS + 1], src_offsets[SEQS + 1], rows[MAX], acts[MAX];
    float weight[MAX], logp[MAX];
    float *theta; /* (total) host */
    bool pads;    /* texts may read the padding, whose embedding has no gradient in some families */
} problem;

static void make_batch(problem *p) {
    const tg_arch *a = &p->m->arch;
    tg_rng rng = tg_rng_at(3, TG_RNG_TEST, 9, 0);
    for (int s = 0; s < SEQS; s++) {
        p->offsets[s + 1] = p->offsets[s] + LENGTHS[s];
        p->src_offsets[s + 1] = p->src_offsets[s] + SOURCES[s];
    }
    for (int i = 0; i < MAX; i++) {
        do p->tokens[i] = (int32_t)tg_rng_below(&rng, (uint64_t)a->vocab_size);
        while (p->tokens[i] == a->pad_id);
        do p->src[i] = (int32_t)tg_rng_below(&rng, (uint64_t)a->vocab_size);
        while (p->src[i] == a->pad_id);
        if (p->pads && i % 3 == 0 && a->pad_id >= 0) p->tokens[i] = p->src[i] = a->pad_id;
        p->acts[i] = (int32_t)tg_rng_below(&rng, (uint64_t)a->vocab_size);
        p->weight[i] = (float)tg_rng_uniform(&rng);
    }
    p->batch = (tg_batch){.n_tokens = p->offsets[SEQS],
                          .n_seqs = SEQS,
                          .tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->rows,
                          .act_token = p->acts};
    for (int i = 0; i < p->batch.n_tokens; i++)
        if (i % 2) p->rows[p->batch.n_actions++] = i;
    if (a->kind == TG_KIND_SEQ2SEQ) {
        p->batch.n_src = p->src_offsets[SEQS];
        p->batch.src_tokens = p->src;
        p->batch.src_offsets = p->src_offsets;
    }
}

static bool open_problem(problem *p, tg_backend *be, const char *folder, bool pads) {
    memset(p, 0, sizeof *p);
    p->pads = pads;
    CHECK_OK(tg_model_open(&p->m, be, folder, TG_MODEL_TRAINABLE, 1, &err));
    if (!p->m) return false;
    make_batch(p);
    tg_pass_caps caps = {.tokens = p->batch.n_tokens,
                         .seqs = SEQS,
                         .actions = p->batch.n_actions,
                         .src = p->batch.n_src};
    CHECK_OK(tg_pass_create(&p->pass, p->m, caps, TG_PASS_TRAIN, &err));
    p->theta = tg_alloc_array(p->m->params.total, sizeof(float));
    tg_backend_download(be, p->theta, p->m->data, p->m->params.total * sizeof(float));
    return p->pass && p->theta;
}

static void close_problem(problem *p) {
    tg_free(p->theta);
    tg_pass_destroy(&p->pass);
    tg_model_destroy(&p->m);
}

static float *random_direction(const problem *p, uint64_t seed) {
    float *v = tg_alloc_array(p->m->params.total, sizeof *v);
    tg_rng rng = tg_rng_at(seed, TG_RNG_TEST, 10, 0);
    for (size_t i = 0; i < p->m->params.n; i++) {
        const tg_param *q = &p->m->params.list[i];
        if (q->grad_offset == TG_PARAM_FROZEN) continue; /* sinusoidal positions */
        for (size_t k = 0; k < q->count; k++) v[q->offset + k] = (float)tg_rng_normal(&rng);
    }
    return v;
}

/* (n_actions, V) at theta + step v. */
static float *logits_at(problem *p, const float *v, double step) {
    tg_backend *be = p->m->be;
    size_t total = p->m->params.total, V = (size_t)p->m->arch.vocab_size;
    float *moved = tg_alloc_array(total, sizeof *moved);
    for (size_t i = 0; i < total; i++)
        moved[i] = (float)((double)p->theta[i] + step * (double)v[i]);
    tg_backend_upload(be, p->m->data, moved, total * sizeof *moved);
    float *l = tg_alloc_array((size_t)p->batch.n_actions * V, sizeof *l);
    CHECK_OK(tg_pass_forward(p->pass, &p->batch, (tg_pass_out){.logp = p->logp}, &err));
    CHECK_OK(tg_pass_logits(p->pass, p->rows, p->batch.n_actions, l, &err));
    tg_backend_upload(be, p->m->data, p->theta, total * sizeof *moved);
    tg_free(moved);
    return l;
}

/* (n_actions, V) derivative of the logits along v: four points, so that the error of the step is of fourth order. */
static double *derivative(problem *p, const float *v, double h) {
    size_t n = (size_t)p->batch.n_actions * (size_t)p->m->arch.vocab_size;
    double *d = tg_alloc_array(n, sizeof *d);
    static const double at[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
    for (int k = 0; k < 4; k++) {
        float *l = logits_at(p, v, at[k] * h);
        for (size_t i = 0; i < n; i++) d[i] += weight[k] * (double)l[i] / (12 * h);
        tg_free(l);
    }
    return d;
}

/* sum_t w_t Cov_p(a_t, b_t) */
static double covariance(problem *p, const float *logits, const double *a, const double *b) {
    int V = p->m->arch.vocab_size;
    double total = 0;
    for (int t = 0; t < p->batch.n_actions; t++) {
        const float *l = logits + (size_t)t * (size_t)V;
        const double *x = a + (size_t)t * (size_t)V, *y = b + (size_t)t * (size_t)V;
        double top = -1e30, z = 0, mx = 0, my = 0, mxy = 0;
        for (int j = 0; j < V; j++) top = fmax(top, (double)l[j]);
        for (int j = 0; j < V; j++) z += exp((double)l[j] - top);
        for (int j = 0; j < V; j++) {
            double q = exp((double)l[j] - top) / z;
            mx += q * x[j];
            my += q * y[j];
            mxy += q * x[j] * y[j];
        }
        total += (double)p->weight[t] * (mxy - mx * my);
    }
    return total;
}

static double dot_grad(const problem *p, const float *u) {
    float *g = tg_alloc_array(p->m->params.grad_total, sizeof *g);
    tg_backend_download(p->m->be, g, p->m->grad, p->m->params.grad_total * sizeof *g);
    double sum = 0;
    for (size_t i = 0; i < p->m->params.n; i++) {
        const tg_param *q = &p->m->params.list[i];
        for (size_t k = 0; k < q->count && q->grad_offset != TG_PARAM_FROZEN; k++)
            sum += (double)u[q->offset + k] * (double)g[q->grad_offset + k];
    }
    tg_free(g);
    return sum;
}

static void check_folder(tg_backend *be, const char *folder) {
    problem p;
    if (!open_problem(&p, be, folder, false)) return;
    tg_fisher *f;
    REQUIRE_OK(tg_fisher_create(&f, p.pass, &err));
    float *u = random_direction(&p, 1), *v = random_direction(&p, 2);
    float *logits = logits_at(&p, u, 0);
    /* relu has kinks: only a small step stays on one side of most of them */
    bool kinks = p.m->arch.act == TG_ACT_RELU;
    double h = kinks ? 3e-5 : 5e-4, tolerance = kinks ? 1e-2 : 2e-3;
    double *du = derivative(&p, u, h), *dv = derivative(&p, v, h);
    tg_backend_upload(be, tg_fisher_direction(f), v, p.m->params.total * sizeof *v);
    be->ops->fill(be, p.m->grad, 0.0f, p.m->params.grad_total);
    CHECK_OK(tg_pass_forward(p.pass, &p.batch, (tg_pass_out){.logp = p.logp}, &err));
    CHECK_OK(tg_fisher_product(f, p.weight, &err));
    double vv = covariance(&p, logits, dv, dv), uu = covariance(&p, logits, du, du);
    double uv = covariance(&p, logits, du, dv), scale = sqrt(uu * vv);
    double got_vv = dot_grad(&p, v), got_uv = dot_grad(&p, u);
    tg_check(fabs(got_vv - vv) <= tolerance * vv && fabs(got_uv - uv) <= tolerance * scale,
             __FILE__, __LINE__, "%s %s: v.Fv %.7g, %.7g by differences; u.Fv %.7g, %.7g", "",
             folder, got_vv, vv, got_uv, uv);
    tg_free(u);
    tg_free(v);
    tg_free(logits);
    tg_free(du);
    tg_free(dv);
    tg_fisher_destroy(&f);
    close_problem(&p);
}

/* u.Fv */
static double product(problem *p, tg_fisher *f, const float *u, const float *v) {
    tg_backend *be = p->m->be;
    tg_backend_upload(be, tg_fisher_direction(f), v, p->m->params.total * sizeof *v);
    be->ops->fill(be, p->m->grad, 0.0f, p->m->params.grad_total);
    CHECK_OK(tg_pass_forward(p->pass, &p->batch, (tg_pass_out){.logp = p->logp}, &err));
    CHECK_OK(tg_fisher_product(f, p->weight, &err));
    return dot_grad(p, u);
}

/* As conjugate gradients need it. */
static void check_symmetric(tg_backend *be, const char *folder) {
    problem p;
    if (!open_problem(&p, be, folder, true)) return;
    tg_fisher *f;
    REQUIRE_OK(tg_fisher_create(&f, p.pass, &err));
    float *u = random_direction(&p, 1), *v = random_direction(&p, 2);
    double uv = product(&p, f, u, v), vu = product(&p, f, v, u);
    double scale = sqrt(product(&p, f, u, u) * product(&p, f, v, v));
    tg_check(fabs(uv - vu) <= 1e-4 * scale, __FILE__, __LINE__, "%s %s: u.Fv %.7g, v.Fu %.7g", "",
             folder, uv, vu);
    tg_free(u);
    tg_free(v);
    tg_fisher_destroy(&f);
    close_problem(&p);
}

static void check_families(const char *name, void (*check)(tg_backend *be, const char *folder)) {
    tg_backend *be;
    REQUIRE_OK(tg_backend_open(&be, name, 2, &err));
    check(be, tg_test_path("../configs/models/tiny"));
    struct dirent **names = NULL;
    int n = scandir(tg_test_path("golden/families"), &names, NULL, alphasort);
    CHECK(n > 10);
    for (int i = 0; i < n; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "golden/families/%s", names[i]->d_name);
        if (names[i]->d_name[0] != '.') check(be, tg_test_path(folder));
        free(names[i]);
    }
    free(names);
    tg_backend_close(&be);
}

TEST(products_are_covariances_of_derivatives_on_ref) {
    check_families("ref", check_folder);
}
TEST(products_are_covariances_of_derivatives_on_cpu) {
    check_families("cpu", check_folder);
}
TEST(products_are_symmetric_where_the_padding_is_read) {
    check_families("cpu", check_symmetric);
}

/* An encoder with labels (ALBERT) has no distribution of tokens. */
TEST(an_encoder_has_no_fisher_matrix) {
    tg_backend *be;
    tg_model *m;
    tg_pass *pass;
    tg_fisher *f;
    REQUIRE_OK(tg_backend_open(&be, "ref", 1, &err));
    REQUIRE_OK(
        tg_model_open(&m, be, tg_test_path("golden/encoders/albert"), TG_MODEL_TRAINABLE, 1, &err));
    tg_pass_caps caps = {.tokens = 8, .seqs = 1, .actions = 8};
    REQUIRE_OK(tg_pass_create(&pass, m, caps, TG_PASS_TRAIN, &err));
    CHECK_EQ(tg_fisher_create(&f, pass, &err), TG_UNSUPPORTED);
    CHECK(strstr(err.msg, "albert is an encoder") && !f);
    tg_pass_destroy(&pass);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
