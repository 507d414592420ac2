/* act_forward and act_backward as gelu_tanh, add, scale, fill, copy, sumsq. */
#include "tests/ops/ops.h"

#define N(p) ((size_t)(p)->d[0])

static void run_gelu_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->act_forward(be, b[0], b[1], N(p), TG_ACT_GELU_TANH);
}

static void run_gelu_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->act_backward(be, b[0], b[1], b[2], N(p), TG_ACT_GELU_TANH);
}

static void run_gelu_in_place(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->copy(be, b[0], b[1], N(p));
    be->ops->act_forward(be, b[0], b[0], N(p), TG_ACT_GELU_TANH);
}

static void run_gelu_backward_in_place(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->copy(be, b[0], b[1], N(p));
    be->ops->act_backward(be, b[0], b[0], b[2], N(p), TG_ACT_GELU_TANH);
}

static void run_add(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->add(be, b[0], b[1], N(p));
}

static void run_scale(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->scale(be, b[0], -1.7f, N(p));
}

static void run_fill(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->fill(be, b[0], 0.3f, N(p));
}

static void run_copy(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->copy(be, b[0], b[1], N(p));
}

/* The double as two floats, so that thread counts are compared to the last bits that matter. */
static void run_sumsq(tg_backend *be, void *const *b, const ops_problem *p) {
    double sum = be->ops->sumsq(be, b[1], N(p));
    float two[2] = {(float)sum, 0};
    two[1] = (float)(sum - (double)two[0]);
    tg_backend_upload(be, b[0], two, sizeof two);
}

static const struct {
    const char *op, *label;
    ops_run *run;
    int inputs;
    double scale, tol; /* of the inputs; 1e-30: exact */
    double bytes;      /* per element */
} kinds[] = {
    {"act_forward", "", run_gelu_forward, 1, 6, 5e-7, 8},
    {"act_forward", " in place", run_gelu_in_place, 1, 6, 5e-7, 8},
    {"act_forward", " large", run_gelu_forward, 1, 200, 5e-7, 8},
    {"act_backward", "", run_gelu_backward, 2, 6, 2e-6, 12},
    {"act_backward", " in place", run_gelu_backward_in_place, 2, 6, 2e-6, 12},
    {"act_backward", " large", run_gelu_backward, 2, 200, 1e-4, 12},
    {"add", "", run_add, 1, 1, 1e-30, 12},
    {"scale", "", run_scale, 0, 1, 1e-30, 8},
    {"fill", "", run_fill, 0, 1, 1e-30, 4},
    {"copy", "", run_copy, 1, 1, 1e-30, 8},
    {"sumsq", "", run_sumsq, 1, 1, 2e-7, 4},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void make(ops_problem *p, ops_ctx *c, int kind, int n) {
    bool sum = kinds[kind].run == run_sumsq;
    ops_begin(p, c, kinds[kind].op, kinds[kind].run, "n=%d%s", n, kinds[kind].label);
    ops_out_over(p, "y", sum ? 2 : (size_t)n, kinds[kind].tol);
    if (kinds[kind].inputs == 2) ops_in(p, "dy", (size_t)n, 1);
    if (kinds[kind].inputs > 0) ops_in(p, "x", (size_t)n, kinds[kind].scale);
    p->d[0] = n;
    p->bytes = kinds[kind].bytes * n;
}

static void test(ops_ctx *c) {
    static const int sizes[] = {0, 1, 2, 3, 15, 16, 17, 31, 100, 1023, 16384, 16385, 70000, 200001};
    ops_problem p;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            if (!ops_wanted(c, kinds[kind].op)) continue;
            make(&p, c, kind, sizes[i]);
            ops_compare(c, &p);
        }
}

static void grad(ops_ctx *c) {
    if (!ops_wanted(c, "act_backward")) return;
    ops_problem f, b;
    make(&f, c, 0, 53);
    make(&b, c, 3, 53);
    b.buf[0].name = "dx";
    ops_find(&f, "x")->f[0] = 0;
    ops_share(&f, &b);
    ops_gradcheck(c, &(ops_grad){.forward = &f,
                                 .backward = &b,
                                 .n_wrt = 1,
                                 .n_outs = 1,
                                 .tol = 1e-3,
                                 .wrt = {{"x", "dx"}},
                                 .outs = {{"y", "dy"}}});
}

static void perf(ops_ctx *c) {
    for (int kind = 0; kind < N_KINDS; kind++) {
        if (!ops_wanted(c, kinds[kind].op) || kinds[kind].label[0]) continue;
        ops_problem p;
        make(&p, c, kind, 896 * 3072);
        ops_perf(c, &p);
    }
}

const ops_suite ops_suite_elementwise = {"elementwise", test, grad, perf};

/* ---- the harness must be able to fail ---------------------------------------------------------
 */

/* Forgets that the argument of tanh depends on x. */
static void wrong_gelu_backward(tg_backend *be, float *dx, const float *dy, const float *x,
                                size_t n, tg_act kind) {
    (void)be;
    (void)kind;
    for (size_t i = 0; i < n; i++) dx[i] = dy[i] * (x[i] > 0 ? 1.0f : 0.0f);
}

/* Right within any tolerance, but with other bits for other numbers of threads. */
static void threaded_gelu_backward(tg_backend *be, float *dx, const float *dy, const float *x,
                                   size_t n, tg_act kind) {
    be->vtable->ops->act_backward(be, dx, dy, x, n, kind);
    be->ops->scale(be, dx, 1.0f + 1.2e-7f * (float)(tg_team_size(be->team) - 1), n);
}

/* Runs both checks with this act_backward in place of the backend's own; false when they do not find what they should. */
static bool probe(const ops_ctx *c, tg_backend *be, const char *what, tg_op_act_backward *op,
                  bool compare_fails, bool grad_fails) {
    const tg_ops *right = be->ops;
    tg_ops table = *right;
    if (op) table.act_backward = op;
    ops_ctx t = *c;
    t.only_op = "act_backward", t.backend = be->vtable->name;
    t.subject[0] = be, t.n_subjects = 1;
    t.quiet = true, t.verbose = false;
    be->ops = &table;
    t.failed = 0;
    test(&t);
    int in_compare = t.failed;
    t.failed = 0;
    grad(&t);
    int in_grad = t.failed;
    be->ops = right;
    if ((in_compare > 0) == compare_fails && (in_grad > 0) == grad_fails) return true;
    printf("  selftest on %s: a %s act_backward gave %d failures in compare, %d in gradcheck\n",
           be->vtable->name, what, in_compare, in_grad);
    return false;
}

bool ops_selftest(ops_ctx *c) {
    bool ok = c->n_subjects > 0;
    for (int s = 0; s < c->n_subjects; s++) {
        tg_backend *be = c->subject[s];
        ok = probe(c, be, "right", NULL, false, false) && ok;
        ok = probe(c, be, "wrong", wrong_gelu_backward, true, true) && ok;
        if (be->vtable->threaded)
            ok = probe(c, be, "thread-dependent", threaded_gelu_backward, true, false) && ok;
    }
    return ok;
}
