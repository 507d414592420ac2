/* The optimizers beside adamw: Adam with coupled decay, adam8, sgd, rmsprop. They have no gradients; that they follow torch is
 * checked by tests/unit/test_optim.c and tests/oracle/check_optim.py. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "tests/ops/ops.h"

#include <string.h>

enum { STEPS = 3 };

/* One-pass optimizers clear the gradient: every step gets another. */
static void next_grad(tg_backend *be, void *const *b, size_t n, int k) {
    if (!n) return;
    be->ops->copy(be, b[1], b[5], n);
    be->ops->scale(be, b[1], (float)(k * k + 1), n);
}

static void run_adam(tg_backend *be, void *const *b, const ops_problem *p) {
    size_t n = (size_t)p->d[0];
    tg_adamw_step s = {.lr = 1e-2,
                       .beta1 = 0.9,
                       .beta2 = 0.99,
                       .eps = 1e-8,
                       .weight_decay = 0.1,
                       .grad_scale = 0.7f,
                       .coupled = true};
    for (s.t = 1; s.t <= STEPS; s.t++) {
        next_grad(be, b, n, (int)s.t);
        be->ops->adamw(be, b[0], b[1], b[2], b[3], n, &s);
    }
}

static void run_sgd(tg_backend *be, void *const *b, const ops_problem *p) {
    size_t n = (size_t)p->d[0];
    tg_sgd_step s = {.lr = 1e-2,
                     .weight_decay = p->d[1] & 1 ? 0.1 : 0,
                     .momentum = 0.9,
                     .dampening = p->d[1] & 2 ? 0.3 : 0,
                     .grad_scale = 0.7f,
                     .nesterov = (p->d[1] & 4) != 0};
    for (int t = 1; t <= STEPS; t++) {
        next_grad(be, b, n, t);
        s.first = t == 1;
        be->ops->sgd(be, b[0], b[1], p->d[1] & 8 ? b[2] : NULL, n, &s);
    }
}

static void run_rmsprop(tg_backend *be, void *const *b, const ops_problem *p) {
    size_t n = (size_t)p->d[0];
    tg_rmsprop_step s = {.lr = 1e-2,
                         .alpha = p->d[1] & 8 ? 0.3 : 0.99,
                         .eps = 1e-5,
                         .weight_decay = p->d[1] & 1 ? 0.1 : 0,
                         .momentum = 0.9,
                         .grad_scale = 0.7f};
    for (int t = 1; t <= STEPS; t++) {
        next_grad(be, b, n, t);
        be->ops->rmsprop(be, b[0], b[1], b[3], p->d[1] & 2 ? b[4] : NULL, p->d[1] & 4 ? b[2] : NULL,
                         n, &s);
    }
}

/* Codes and block maxima live in buffers of the run; what they stand for is compared as floats. */
static void run_adam8(tg_backend *be, void *const *b, const ops_problem *p) {
    size_t n = (size_t)p->d[0], blocks = tg_quant8_blocks(n);
    tg_quant8_state state[2];
    for (int k = 0; k < 2; k++) {
        state[k] = (tg_quant8_state){tg_backend_alloc(be, n + 1, NULL),
                                     tg_backend_alloc(be, (blocks + 1) * 4, NULL)};
        TG_ASSERT(state[k].code && state[k].largest);
        memset(state[k].code, 0, n);
        memset(state[k].largest, 0, blocks * 4);
    }
    tg_adamw_step s = {.lr = 1e-2,
                       .beta1 = 0.9,
                       .beta2 = 0.99,
                       .eps = 1e-8,
                       .weight_decay = 0.1,
                       .grad_scale = 0.7f};
    for (s.t = 1; s.t <= STEPS; s.t++) {
        next_grad(be, b, n, (int)s.t);
        be->ops->adam8(be, b[0], b[1], &state[0], &state[1], n, &s);
    }
    for (int k = 0; k < 2; k++) {
        float *out = b[2 + k];
        for (size_t i = 0; i < n; i++)
            out[i] = (k ? tg_quant8_decode_unsigned(state[k].code[i])
                        : tg_quant8_decode_signed(state[k].code[i])) *
                     state[k].largest[i / TG_QUANT8_BLOCK];
        tg_backend_free(be, state[k].code);
        tg_backend_free(be, state[k].largest);
    }
}

static void make(ops_problem *p, ops_ctx *c, const char *op, ops_run *run, int n, int variant) {
    ops_begin(p, c, op, run, "n=%d variant=%d", n, variant);
    ops_out(p, "param", (size_t)n, 1e-6);
    ops_out(p, "grad", (size_t)n, 1e-30);
    /* A small root of a difference (centered) shows the last bit of a machine without fused multiply-add. */
    ops_out(p, "m", (size_t)n, run == run_rmsprop ? 1e-5 : 1e-6);
    float *v = ops_out(p, "v", (size_t)n, 1e-6);
    float *mean = ops_out(p, "mean", (size_t)n, 1e-6);
    for (int i = 0; i < n; i++) v[i] = 1 + (v[i] < 0 ? -v[i] : v[i]), mean[i] *= 0.1f;
    float *next = ops_in(p, "next", (size_t)n, 1);
    /* Magnitudes of every size: all decades of the code books are used. */
    for (int i = 0; i < n; i++) next[i] *= next[i] * next[i] * (i % 7 ? 1.0f : 1e-3f);
    p->d[0] = n, p->d[1] = variant;
    p->bytes = 32.0 * n;
}

static void test(ops_ctx *c) {
    static const int sizes[] = {0, 1, 3, 16, 255, 256, 257, 1000, 16385, 50001};
    static const struct {
        const char *name;
        ops_run *run;
        int variants;
    } ops[] = {{"adam_coupled", run_adam, 1},
               {"adam8", run_adam8, 1},
               {"sgd", run_sgd, 16},
               {"rmsprop", run_rmsprop, 16}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && ops_wanted(c, ops[k].name); i++)
            for (int v = 0; v < ops[k].variants; v++) {
                ops_problem p;
                make(&p, c, ops[k].name, ops[k].run, sizes[i], v);
                ops_compare(c, &p);
            }
}

static void grad(ops_ctx *c) {
    (void)c;
}

static void run_perf(tg_backend *be, void *const *b, const ops_problem *p) {
    size_t n = (size_t)p->d[0];
    const tg_quant8_state m = {b[2], b[4]}, v = {b[3], b[5]};
    tg_adamw_step s = {
        .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .t = 10, .grad_scale = 1};
    be->ops->adam8(be, b[0], b[1], &m, &v, n, &s);
}

static void perf(ops_ctx *c) {
    if (!ops_wanted(c, "adam8")) return;
    const size_t n = 30000000;
    ops_problem p;
    ops_begin(&p, c, "adam8", run_perf, "n=%zu", n);
    ops_in(&p, "param", n, 1);
    ops_in(&p, "grad", n, 1);
    memset(ops_in(&p, "m", n / 4 + 1, 1), 0, n);
    memset(ops_in(&p, "v", n / 4 + 1, 1), 0, n);
    memset(ops_in(&p, "m.largest", n / 256 + 1, 1), 0, n / 64);
    memset(ops_in(&p, "v.largest", n / 256 + 1, 1), 0, n / 64);
    p.d[0] = (int)n;
    p.bytes = 20.0 * (double)n;
    ops_perf(c, &p);
}

const ops_suite ops_suite_optim = {"optim", test, grad, perf};
