/* adamw. It has no gradient; that it follows torch is checked by tests/oracle/check_ops.py. */
#include "tests/ops/ops.h"

static void run_adamw(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_adamw_step step = {.lr = 1e-2,
                          .beta1 = p->x[0],
                          .beta2 = 0.99,
                          .eps = 1e-8,
                          .weight_decay = 0.1,
                          .t = p->d[1],
                          .grad_scale = 0.7f};
    be->ops->adamw(be, b[0], b[1], b[2], b[3], (size_t)p->d[0], &step);
    /* The gradient is cleared: give the second run one. */
    be->ops->add(be, b[1], b[4], (size_t)p->d[0]);
}

static void make(ops_problem *p, ops_ctx *c, int n, int t, double beta1) {
    ops_begin(p, c, "adamw", run_adamw, "n=%d t=%d beta1=%g", n, t, beta1);
    /* Exact where the machine has fused multiply-add; a machine without it rounds m and v once
     * more. */
    ops_out(p, "param", (size_t)n, 2e-7);
    ops_out(p, "grad", (size_t)n, 1e-30);
    ops_out(p, "m", (size_t)n, 2e-7);
    float *v = ops_out(p, "v", (size_t)n, 2e-7);
    for (int i = 0; i < n; i++) v[i] = v[i] < 0 ? -v[i] : v[i];
    ops_in(p, "next", (size_t)n, 1);
    p->d[0] = n, p->d[1] = t, p->x[0] = beta1;
    p->bytes = 32.0 * n;
}

static void test(ops_ctx *c) {
    static const int sizes[] = {0, 1, 3, 16, 17, 1000, 16385, 50001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && ops_wanted(c, "adamw"); i++)
        for (int t = 1; t <= 100; t += 33) {
            ops_problem p;
            make(&p, c, sizes[i], t, t == 34 ? 0.3 : 0.9);
            ops_compare(c, &p);
        }
}

static void grad(ops_ctx *c) {
    (void)c;
}

static void run_perf(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_adamw_step step = {.lr = 1e-3,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = 1e-8,
                          .weight_decay = 0.01,
                          .t = 10,
                          .grad_scale = 1};
    be->ops->adamw(be, b[0], b[1], b[2], b[3], (size_t)p->d[0], &step);
}

static void perf(ops_ctx *c) {
    static const int sizes[] = {1000000, 30000000};
    for (int i = 0; i < 2 && ops_wanted(c, "adamw"); i++) {
        ops_problem p;
        make(&p, c, sizes[i], 1, 0.9);
        p.run = run_perf;
        ops_perf(c, &p);
    }
}

const ops_suite ops_suite_adamw = {"adamw", test, grad, perf};
