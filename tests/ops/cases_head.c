/* head_forward, head_backward. */
#include "tests/ops/ops.h"

#include <math.h>

static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->head_forward(be, b[0], b[1], b[2], b[3], b[4], b[5], p->d[0], p->d[1], p->d[2],
                          (tg_head_extra){.bias = b[6], .softcap = (float)p->x[0]});
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->head_backward(be, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], p->d[0],
                           p->d[1], p->d[2], (tg_head_extra){b[9], b[10], (float)p->x[0]});
}

/* softcap > 0: capped, and with a bias; < 0: a bias only. */
static void extras(ops_problem *p, int V, double softcap, bool backward, double tol) {
    if (softcap != 0)
        ops_in(p, "bias", (size_t)V, 1);
    else
        ops_null(p, "bias");
    if (backward && softcap != 0)
        ops_out(p, "dbias", (size_t)V, tol);
    else if (backward)
        ops_null(p, "dbias");
    p->x[0] = softcap > 0 ? softcap : 0;
}

static void shape(ops_problem *p, int n, int C, int V) {
    p->d[0] = n, p->d[1] = C, p->d[2] = V;
    p->flops = 2.0 * n * C * V;
}

/* `scale` of x: large logits make sharp distributions. */
static void make_forward(ops_problem *p, ops_ctx *c, int n, int C, int V, double scale,
                         double softcap) {
    ops_begin(p, c, "head_forward", run_forward, "n=%d C=%d V=%d scale=%g cap=%g", n, C, V, scale,
              softcap);
    double tol = 2e-6 * (1 + scale * sqrt(C) / 10);
    ops_out(p, "logp", (size_t)n, tol);
    ops_out(p, "entropy", (size_t)n, tol);
    ops_out(p, "lse", (size_t)n, tol);
    ops_in(p, "x", (size_t)n * (size_t)C, scale);
    ops_in(p, "w", (size_t)V * (size_t)C, 1);
    ops_ints(p, "tokens", (size_t)n, V);
    extras(p, V, softcap, false, tol);
    shape(p, n, C, V);
}

static void make_backward(ops_problem *p, ops_ctx *c, int n, int C, int V, double scale,
                          bool frozen, double softcap) {
    ops_begin(p, c, "head_backward", run_backward, "n=%d C=%d V=%d scale=%g cap=%g%s", n, C, V,
              scale, softcap, frozen ? " frozen" : "");
    /* p is off by eps times the logit, and dw by that times x */
    double tol = 5e-6 * (1 + scale * scale * sqrt(C) / 20) * (1 + sqrt(n) / 40);
    ops_out_over(p, "dx", (size_t)n * (size_t)C, tol);
    if (frozen)
        ops_null(p, "dw");
    else
        ops_out(p, "dw", (size_t)V * (size_t)C, tol);
    ops_in(p, "dlogp", (size_t)n, 1);
    ops_in(p, "dentropy", (size_t)n, 1);
    ops_in(p, "x", (size_t)n * (size_t)C, scale);
    ops_in(p, "w", (size_t)V * (size_t)C, 1);
    ops_ints(p, "tokens", (size_t)n, V);
    ops_in(p, "lse", (size_t)n, 1);
    ops_in(p, "entropy", (size_t)n, 1);
    extras(p, V, softcap, true, tol);
    shape(p, n, C, V);
    p->flops *= frozen ? 2 : 3;
}

static void test(ops_ctx *c) {
    static const int shapes[][3] = {{0, 3, 5},    {1, 1, 1},     {1, 8, 2},     {3, 5, 17},
                                    {7, 16, 100}, {33, 32, 257}, {20, 24, 600}, {5, 12, 5000},
                                    {300, 8, 40}, {2100, 4, 9}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int variant = 0; variant < 5; variant++) {
            const int n = shapes[i][0], C = shapes[i][1], V = shapes[i][2];
            const double scale = variant == 1 ? 20 : 1, cap = variant < 3    ? 0
                                                              : variant == 3 ? 3
                                                                             : -1;
            ops_problem f, b;
            if (ops_wanted(c, "head_forward") && variant != 2) {
                make_forward(&f, c, n, C, V, scale, cap);
                ops_compare(c, &f);
            }
            if (!ops_wanted(c, "head_backward")) continue;
            make_forward(&f, c, n, C, V, scale, cap);
            make_backward(&b, c, n, C, V, scale, variant == 2, cap);
            ops_share(&f, &b);
            ops_end(&f);
            ops_compare(c, &b);
        }
}

static void grad(ops_ctx *c) {
    static const int shapes[][3] = {{2, 3, 5}, {4, 6, 33}};
    for (size_t i = 0; i < 3 * (sizeof shapes / sizeof *shapes) && ops_wanted(c, "head_backward");
         i++) {
        const int *s = shapes[i / 3];
        const double cap = (double)(i % 3) * 2 - 2; /* -2: bias only, 0: neither, 2: both */
        ops_problem f, b;
        make_forward(&f, c, s[0], s[1], s[2], 1, cap);
        make_backward(&b, c, s[0], s[1], s[2], 1, false, cap);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = cap != 0 ? 3 : 2,
                                     .n_outs = 2,
                                     .tol = 1e-3,
                                     .wrt = {{"x", "dx"}, {"w", "dw"}, {"bias", "dbias"}},
                                     .outs = {{"logp", "dlogp"}, {"entropy", "dentropy"}}});
    }
}

static void perf(ops_ctx *c) {
    static const int shapes[][3] = {{384, 768, 50257}, {896, 768, 50257}, {400, 128, 600}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int backward = 0; backward < 2; backward++) {
            if (backward)
                make_backward(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], 1, false, 0);
            else
                make_forward(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], 1, 0);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
}

const ops_suite ops_suite_head = {"head", test, grad, perf};
