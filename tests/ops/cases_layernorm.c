/* layernorm_forward, layernorm_backward. */
#include "tests/ops/ops.h"

#include <math.h>

static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->layernorm_forward(be, b[0], b[1], b[2], b[3], b[4], b[5], p->d[0], p->d[1], 1e-5f);
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->layernorm_backward(be, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], p->d[0],
                                p->d[1]);
}

static void make_forward(ops_problem *p, ops_ctx *c, int N, int C) {
    size_t n = (size_t)N * (size_t)C, rows = (size_t)N, cols = (size_t)C;
    ops_begin(p, c, "layernorm_forward", run_forward, "N=%d C=%d", N, C);
    ops_out(p, "y", n, 2e-6);
    ops_out(p, "mean", rows, 1e-6);
    ops_out(p, "rstd", rows, 2e-6);
    ops_in(p, "x", n, 2);
    ops_in(p, "gamma", cols, 1);
    ops_in(p, "beta", cols, 1);
    if (N > 1 && C == 1)
        p->buf[2].tol = p->buf[0].tol; /* one column: variance 0, rstd 1/sqrt(eps) */
    p->d[0] = N, p->d[1] = C;
    p->bytes = 4.0 * 2 * (double)n;
}

static void make_backward(ops_problem *p, ops_ctx *c, int N, int C, bool frozen) {
    size_t n = (size_t)N * (size_t)C, rows = (size_t)N, cols = (size_t)C;
    ops_begin(p, c, "layernorm_backward", run_backward, "N=%d C=%d%s", N, C,
              frozen ? " frozen" : "");
    ops_out(p, "dx", n, 4e-6);
    if (frozen) {
        ops_null(p, "dgamma");
        ops_null(p, "dbeta");
    } else {
        ops_out(p, "dgamma", cols, 1e-6 * (4 + sqrt(N)));
        ops_out(p, "dbeta", cols, 1e-6 * (4 + sqrt(N)));
    }
    ops_in(p, "dy", n, 1);
    ops_in(p, "x", n, 2);
    ops_in(p, "mean", rows, 0.3);
    float *rstd = ops_in(p, "rstd", rows, 0.3);
    for (size_t i = 0; i < rows; i++) rstd[i] += 1;
    ops_in(p, "gamma", cols, 1);
    p->d[0] = N, p->d[1] = C;
    p->bytes = 4.0 * 4 * (double)n;
}

static void test(ops_ctx *c) {
    static const int shapes[][2] = {{0, 4},     {1, 1},     {1, 2},    {3, 3},    {2, 7},
                                    {5, 16},    {33, 17},   {64, 64},  {31, 128}, {7, 255},
                                    {130, 100}, {700, 128}, {40, 768}, {3, 1600}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 3; kind++) {
            if (kind == 0)
                make_forward(&p, c, shapes[i][0], shapes[i][1]);
            else
                make_backward(&p, c, shapes[i][0], shapes[i][1], kind == 2);
            if (ops_wanted(c, p.op))
                ops_compare(c, &p);
            else
                ops_end(&p);
        }
}

static void grad(ops_ctx *c) {
    static const int shapes[][2] = {{2, 5}, {3, 17}, {5, 32}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "layernorm_backward");
         i++) {
        ops_problem f, b;
        make_forward(&f, c, shapes[i][0], shapes[i][1]);
        make_backward(&b, c, shapes[i][0], shapes[i][1], false);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = 3,
                                     .n_outs = 1,
                                     .tol = 2e-3,
                                     .wrt = {{"x", "dx"}, {"gamma", "dgamma"}, {"beta", "dbeta"}},
                                     .outs = {{"y", "dy"}}});
    }
}

static void perf(ops_ctx *c) {
    static const int shapes[][2] = {{896, 768}, {600, 128}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int backward = 0; backward < 2; backward++) {
            if (backward)
                make_backward(&p, c, shapes[i][0], shapes[i][1], false);
            else
                make_forward(&p, c, shapes[i][0], shapes[i][1]);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
}

const ops_suite ops_suite_layernorm = {"layernorm", test, grad, perf};
