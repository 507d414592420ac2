/* act_forward and act_backward of every kind, gated_forward, gated_backward, softcap. */
#include "tests/ops/ops.h"

static const char *const names[TG_N_ACTS] = {"gelu_tanh", "gelu",       "relu",
                                             "silu",      "quick_gelu", "tanh"};

#define KIND(p) ((tg_act)(p)->d[2])

static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->act_forward(be, b[0], b[1], (size_t)p->d[0], KIND(p));
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->act_backward(be, b[0], b[1], b[2], (size_t)p->d[0], KIND(p));
}

static void run_gated_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->gated_forward(be, b[0], b[1], p->d[0], p->d[1], KIND(p));
}

static void run_gated_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->gated_backward(be, b[0], b[1], b[2], p->d[0], p->d[1], KIND(p));
}

static void run_softcap(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->copy(be, b[0], b[1], (size_t)p->d[0]);
    be->ops->softcap(be, b[0], (float)p->x[0], (size_t)p->d[0]);
}

static void make_plain(ops_problem *p, ops_ctx *c, bool backward, int n, int kind, double scale) {
    ops_begin(p, c, backward ? "act_backward" : "act_forward",
              backward ? run_backward : run_forward, "%s n=%d within %g", names[kind], n, scale);
    ops_out_over(p, backward ? "dx" : "y", (size_t)n, backward ? 2e-6 * (1 + scale / 10) : 5e-7);
    if (backward) ops_in(p, "dy", (size_t)n, 1);
    ops_in(p, "x", (size_t)n, scale);
    p->d[0] = n, p->d[2] = kind;
    p->bytes = (backward ? 12.0 : 8.0) * n;
}

static void make_gated(ops_problem *p, ops_ctx *c, bool backward, int N, int F, int kind) {
    size_t n = (size_t)N * (size_t)F;
    ops_begin(p, c, backward ? "gated_backward" : "gated_forward",
              backward ? run_gated_backward : run_gated_forward, "%s N=%d F=%d", names[kind], N, F);
    ops_out_over(p, backward ? "dx" : "y", backward ? 2 * n : n, 3e-6);
    if (backward) ops_in(p, "dy", n, 1);
    ops_in(p, "x", 2 * n, 5);
    p->d[0] = N, p->d[1] = F, p->d[2] = kind;
    p->bytes = (backward ? 20.0 : 12.0) * (double)n;
}

static void make_softcap(ops_problem *p, ops_ctx *c, int n, double cap, double scale) {
    ops_begin(p, c, "softcap", run_softcap, "n=%d cap=%g within %g", n, cap, scale);
    ops_out_over(p, "y", (size_t)n, 5e-7);
    ops_in(p, "x", (size_t)n, scale);
    p->d[0] = n;
    p->x[0] = cap;
    p->bytes = 8.0 * n;
}

static void compare(ops_ctx *c, ops_problem *p) {
    if (ops_wanted(c, p->op))
        ops_compare(c, p);
    else
        ops_end(p);
}

static void test(ops_ctx *c) {
    static const int sizes[] = {0, 1, 15, 16, 33, 1023, 40000};
    static const double scales[] = {0.3, 6, 100};
    static const int shapes[][2] = {{0, 4}, {1, 1}, {3, 5}, {7, 16}, {40, 100}, {33, 1030}};
    ops_problem p;
    for (int kind = 0; kind < TG_N_ACTS; kind++)
        for (int backward = 0; backward < 2; backward++) {
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
                    make_plain(&p, c, backward, sizes[i], kind, scales[s]);
                    compare(c, &p);
                }
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                make_gated(&p, c, backward, shapes[i][0], shapes[i][1], kind);
                compare(c, &p);
            }
        }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            make_softcap(&p, c, sizes[i], 30, scales[s]);
            compare(c, &p);
            make_softcap(&p, c, sizes[i], 1.5, scales[s]);
            compare(c, &p);
        }
}

static void grad(ops_ctx *c) {
    for (int kind = 0; kind < TG_N_ACTS; kind++) {
        ops_problem f, b;
        if (ops_wanted(c, "act_backward") && kind != TG_ACT_RELU) { /* differences straddle 0 */
            make_plain(&f, c, false, 41, kind, 4);
            make_plain(&b, c, true, 41, kind, 4);
            ops_share(&f, &b);
            ops_gradcheck(c, &(ops_grad){.forward = &f,
                                         .backward = &b,
                                         .n_wrt = 1,
                                         .n_outs = 1,
                                         .tol = 1e-3,
                                         .wrt = {{"x", "dx"}},
                                         .outs = {{"y", "dy"}}});
        }
        if (!ops_wanted(c, "gated_backward") || kind == TG_ACT_RELU) continue;
        make_gated(&f, c, false, 3, 9, kind);
        make_gated(&b, c, true, 3, 9, kind);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = 1,
                                     .n_outs = 1,
                                     .tol = 1e-3,
                                     .wrt = {{"x", "dx"}},
                                     .outs = {{"y", "dy"}}});
    }
}

static void perf(ops_ctx *c) {
    ops_problem p;
    for (int kind = TG_ACT_GELU; kind < TG_N_ACTS; kind++)
        for (int backward = 0; backward < 2; backward++) {
            if (ops_wanted(c, backward ? "act_backward" : "act_forward")) {
                make_plain(&p, c, backward, 896 * 3072, kind, 6);
                ops_perf(c, &p);
            }
            if (ops_wanted(c, backward ? "gated_backward" : "gated_forward")) {
                make_gated(&p, c, backward, 896, 2048, kind);
                ops_perf(c, &p);
            }
        }
}

const ops_suite ops_suite_activation = {"activation", test, grad, perf};
