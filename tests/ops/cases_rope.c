/* rope: half and pairs, part of a head, there and back. */
#include "tests/ops/ops.h"

enum { POSITIONS = 50 };

static tg_rope_dims dims_of(const ops_problem *p) {
    return (tg_rope_dims){.N = p->d[0],
                          .H = p->d[1],
                          .step = p->d[2],
                          .ld = p->d[1] * p->d[2] + 5,
                          .R = p->d[3],
                          .pairs = p->d[4]};
}

static void run_rope(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->rope(be, b[0], b[1], b[2], dims_of(p));
}

static void run_inverse(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_rope_dims d = dims_of(p);
    d.inverse = true;
    be->ops->rope(be, b[0], b[1], b[2], d);
}

/* Forward and backward as gradcheck wants them: y from x, dx from dy. */
static void run_copied(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_rope_dims d = dims_of(p);
    be->ops->copy(be, b[0], b[3], (size_t)d.N * (size_t)d.ld);
    be->ops->rope(be, b[0], b[1], b[2], d);
}

static void run_copied_inverse(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_rope_dims d = dims_of(p);
    d.inverse = true;
    be->ops->copy(be, b[0], b[3], (size_t)d.N * (size_t)d.ld);
    be->ops->rope(be, b[0], b[1], b[2], d);
}

static void make(ops_problem *p, ops_ctx *c, const int *s, ops_run *run, const char *what) {
    size_t n = (size_t)s[0] * (size_t)(s[1] * s[2] + 5);
    ops_begin(p, c, "rope", run, "N=%d H=%d D=%d R=%d%s%s", s[0], s[1], s[2], s[3],
              s[4] ? " pairs" : "", what);
    ops_out(p, "x", n, 1e-6);
    ops_ints(p, "positions", (size_t)s[0], POSITIONS);
    ops_in(p, "table", (size_t)(POSITIONS * s[3]), 1);
    for (int i = 0; i < 5; i++) p->d[i] = s[i];
    p->bytes = 8.0 * s[0] * s[1] * s[3];
}

static void test(ops_ctx *c) {
    static const int shapes[][5] = {{0, 1, 2, 2, 0},      {1, 1, 2, 2, 1},    {3, 2, 8, 4, 0},
                                    {5, 3, 10, 10, 1},    {33, 4, 16, 16, 0}, {70, 2, 64, 16, 1},
                                    {200, 12, 64, 64, 0}, {40, 2, 128, 32, 0}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "rope"); i++) {
        make(&p, c, shapes[i], run_rope, "");
        ops_compare(c, &p);
        make(&p, c, shapes[i], run_inverse, " inverse");
        ops_compare(c, &p);
    }
}

static void grad(ops_ctx *c) {
    static const int shapes[][5] = {{3, 2, 6, 4, 0}, {2, 2, 4, 4, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "rope"); i++) {
        ops_problem f, b;
        make(&f, c, shapes[i], run_copied, "");
        make(&b, c, shapes[i], run_copied_inverse, " inverse");
        size_t n = f.buf[0].n;
        f.buf[0].name = "y", b.buf[0].name = "dx";
        f.buf[0].overwrites = b.buf[0].overwrites = true;
        ops_in(&f, "x", n, 1);
        ops_in(&b, "dy", n, 1);
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
    static const int shapes[][5] = {{896, 12, 64, 64, 0}, {896, 12, 64, 64, 1}};
    ops_problem p;
    for (size_t i = 0; i < 2 && ops_wanted(c, "rope"); i++) {
        make(&p, c, shapes[i], run_rope, "");
        ops_perf(c, &p);
    }
}

const ops_suite ops_suite_rope = {"rope", test, grad, perf};
