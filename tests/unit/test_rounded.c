/* Models whose matrix products round to bf16 (TG_MODEL_ROUNDED), for every instruction set of the machine: the same bits for any number
 * of threads, for scoring and training and for a bf16-stored copy; near ref, and near f32; what is not finite stays so. */
#include "common/base/alloc.h"
#include "common/nn/pass.h"
#include "tests/support/tg_test.h"
#include "tests/support/tiny.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static tg_error err;
static const int LENGTHS[] = {7, 1, 12, 24};
static const char *const ISAS[] = {"plain", "avx2", "avx512", "avx512_bf16"};
enum { TRAIN = TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, MOST = 512 };

typedef struct result {
    float logp[MOST], entropy[MOST], value[MOST];
    float *grad;
    size_t n; /* parameters */
} result;

static void fini(result *r) {
    free(r->grad);
}

/* One forward and backward of the same model and batch, whatever the backend. */
static result run(const char *backend, int threads, unsigned flags, unsigned mode) {
    result r = {0};
    tg_arch arch = tg_tiny_arch();
    tg_backend *be = tg_tiny_backend(backend, threads);
    tg_model *m = tg_tiny_model(be, &arch, TRAIN | flags, 3);
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, LENGTHS, 4, 2, 4);
    tg_pass *p;
    CHECK_OK(tg_pass_create(&p, m, tg_tiny_caps(&b.batch), mode, &err));
    CHECK_OK(tg_pass_forward(p, &b.batch, (tg_pass_out){r.logp, r.entropy, r.value}, &err));
    float d[3][MOST];
    for (int i = 0; i < b.batch.n_actions; i++) {
        d[0][i] = (float)sin(1.0 + i);
        d[1][i] = (float)cos(2.0 * i);
        d[2][i] = (float)sin(3.0 * i + 0.5);
    }
    if (mode != TG_PASS_SCORE) {
        CHECK_OK(tg_pass_backward(p, d[0], d[1], d[2], &err));
        r.n = m->params.total;
        r.grad = malloc(r.n * sizeof *r.grad);
        tg_backend_download(be, r.grad, m->grad, r.n * sizeof *r.grad);
    }
    tg_pass_destroy(&p);
    tg_model_destroy(&m);
    tg_backend_close(&be);
    return r;
}

static bool same(const result *a, const result *b) {
    return a->n == b->n && !memcmp(a->grad, b->grad, a->n * sizeof *a->grad) &&
           !memcmp(a->logp, b->logp, sizeof a->logp) &&
           !memcmp(a->entropy, b->entropy, sizeof a->entropy) &&
           !memcmp(a->value, b->value, sizeof a->value);
}

/* The norm of the difference of gradients, beside b's. */
static double apart(const result *a, const result *b) {
    double d = 0, n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const double x = (double)a->grad[i], y = (double)b->grad[i];
        d += (x - y) * (x - y), n += y * y;
    }
    return sqrt(d / n);
}

static void each_isa(void (*check)(void)) {
    for (size_t i = 0; i < sizeof ISAS / sizeof *ISAS; i++) {
        setenv("TEXTGEN_CPU_ISA", ISAS[i], 1);
        check();
    }
    unsetenv("TEXTGEN_CPU_ISA");
}

static void check_bits(void) {
    result one = run("cpu", 1, TG_MODEL_ROUNDED, TG_PASS_TRAIN);
    for (int threads = 2; threads <= 3; threads++) {
        result more = run("cpu", threads, TG_MODEL_ROUNDED, TG_PASS_TRAIN);
        CHECK(same(&one, &more));
        fini(&more);
    }
    result again = run("cpu", 2, TG_MODEL_ROUNDED, TG_PASS_RECOMPUTE);
    CHECK(same(&one, &again));
    result score = run("cpu", 2, TG_MODEL_ROUNDED, TG_PASS_SCORE);
    CHECK(!memcmp(one.logp, score.logp, sizeof one.logp)); /* the first ratio of an update is 1 */
    fini(&one);
    fini(&again);
}

TEST(the_same_bits_for_any_number_of_threads) {
    each_isa(check_bits);
}

static void check_values(void) {
    result r = run("cpu", 2, TG_MODEL_ROUNDED, TG_PASS_TRAIN), full = run("cpu", 2, 0, 1);
    result ref = run("ref", 1, TG_MODEL_ROUNDED, TG_PASS_TRAIN);
    CHECK(apart(&r, &full) > 1e-4); /* something was rounded */
    CHECK(apart(&r, &full) < 2e-2);
    CHECK(tg_tiny_worst(r.logp, full.logp, MOST) < 0.1);
    /* a sum that is a little different may be rounded to the other side, and what follows with it */
    CHECK(apart(&r, &ref) < 0.5 * apart(&r, &full));
    CHECK(tg_tiny_worst(r.logp, ref.logp, MOST) < 0.03);
    fini(&r);
    fini(&full);
    fini(&ref);
}

TEST(near_the_reference_and_near_f32) {
    each_isa(check_values);
}

/* A reference whose weights are stored as bf16 has the very log-probs of one whose products round them. */
static void check_stored(void) {
    tg_arch arch = tg_tiny_arch();
    tg_backend *be = tg_tiny_backend("cpu", 2);
    tg_model *m = tg_tiny_model(be, &arch, TG_MODEL_ROUNDED, 3), *half;
    tg_tiny_batch b;
    tg_tiny_fill(&b, &arch, LENGTHS, 4, 2, 4);
    REQUIRE_OK(tg_model_clone(&half, m, TG_MODEL_ROUNDED, 0, &err));
    /* the embedding is read rounded then */
    float w[29 * 12];
    CHECK_OK(tg_model_get(m, "transformer.wte.weight", w, 29 * 12, &err));
    for (int i = 0; i < 29 * 12; i++) w[i] = (float)(int)(w[i] * 64) / 64;
    CHECK_OK(tg_model_set(m, "transformer.wte.weight", w, 29 * 12, &err));
    CHECK_OK(tg_model_set(half, "transformer.wte.weight", w, 29 * 12, &err));
    REQUIRE_OK(tg_model_halve(half, &err));
    float logp[2][MOST] = {{0}};
    for (int i = 0; i < 2; i++) {
        tg_pass *p;
        REQUIRE_OK(tg_pass_create(&p, i ? half : m, tg_tiny_caps(&b.batch), TG_PASS_SCORE, &err));
        CHECK_OK(tg_pass_forward(p, &b.batch, (tg_pass_out){.logp = logp[i]}, &err));
        tg_pass_destroy(&p);
    }
    CHECK(!memcmp(logp[0], logp[1], sizeof logp[0]));
    tg_model_destroy(&half);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(a_stored_copy_has_the_same_bits) {
    each_isa(check_stored);
}

/* Infinity and NaN reach the results of their row or column, and no other. */
static void check_nonfinite(void) {
    enum { M = 5, N = 37, K = 21 };
    tg_backend *be = tg_tiny_backend("cpu", 2);
    float *a = tg_backend_alloc(be, M * K * sizeof *a, &err);
    float *b = tg_backend_alloc(be, K * N * sizeof *b, &err);
    float *c = tg_backend_alloc(be, M * N * sizeof *c, &err);
    REQUIRE(a && b && c);
    for (int i = 0; i < M * K; i++) a[i] = 0.5f;
    for (int i = 0; i < K * N; i++) b[i] = 0.25f;
    a[1 * K + 20] = NAN;
    a[2 * K + 3] = INFINITY;
    b[4 * N + 30] = -INFINITY;
    be->ops->matmul(be, c, a, b, M, N, K, false, false, false, true);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            const float x = c[m * N + n];
            if (m == 1 || (m == 2 && n == 30))
                CHECK(isnan(x));
            else if (m == 2)
                CHECK(isinf(x) && x > 0);
            else if (n == 30)
                CHECK(isinf(x) && x < 0);
            else
                CHECK(x == 21 * 0.125f);
        }
    tg_backend_free(be, a);
    tg_backend_free(be, b);
    tg_backend_free(be, c);
    tg_backend_close(&be);
}

TEST(what_is_not_finite_stays_so) {
    each_isa(check_nonfinite);
}

/* Bytes of the backend's workspace that have memory behind them. */
static size_t touched(const tg_backend *be) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = be->vtable->scratch_bytes / page;
    unsigned char *in = malloc(n);
    size_t sum = 0;
    if (in && !mincore(be->scratch, n * page, in))
        for (size_t i = 0; i < n; i++) sum += in[i] & 1 ? page : 0;
    free(in);
    return sum;
}

/* Pairs of bf16 take half of what floats do, and memory plans say so. */
static void check_workspace(void) {
    enum { MIB = 1 << 20, SEQS = 20 };
    tg_arch arch = tg_tiny_arch();
    arch.mlp_width = 6400;
    int lengths[SEQS];
    for (int i = 0; i < SEQS; i++) lengths[i] = 24;
    for (unsigned flags = 0; flags <= TG_MODEL_ROUNDED; flags += TG_MODEL_ROUNDED) {
        tg_backend *be = tg_tiny_backend("cpu", 2);
        tg_model *m = tg_tiny_model(be, &arch, flags, 3);
        tg_tiny_batch b;
        tg_tiny_fill(&b, &arch, lengths, SEQS, 2, 4);
        const tg_pass_caps caps = tg_tiny_caps(&b.batch);
        float logp[MOST];
        tg_pass *p;
        REQUIRE_OK(tg_pass_create(&p, m, caps, TG_PASS_SCORE, &err));
        CHECK_OK(tg_pass_forward(p, &b.batch, (tg_pass_out){.logp = logp}, &err));
        const size_t planned = tg_pass_workspace(&arch, flags, caps, TG_PASS_SCORE, 0, 0);
        CHECK(touched(be) <= planned && planned - touched(be) < 5 * MIB);
        tg_pass_destroy(&p);
        tg_model_destroy(&m);
        tg_backend_close(&be);
    }
}

TEST(workspaces_are_planned_as_large_as_they_get) {
    each_isa(check_workspace);
}

TEST_MAIN
