/* rmsnorm_forward, rmsnorm_backward: whole rows, and heads inside rows. */
#include "tests/ops/ops.h"

#include <math.h>

typedef struct shape {
    int N, H, C, gap; /* gap: floats between the end of a row's last head and the next row */
    float offset;
} shape;

static tg_rms_dims dims_of(const ops_problem *p) {
    return (tg_rms_dims){p->d[0], p->d[1], p->d[2], p->d[3], p->d[2], (float)p->x[0]};
}

static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->rmsnorm_forward(be, b[0], b[1], b[2], b[3], 1e-5f, dims_of(p));
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->rmsnorm_backward(be, b[0], b[1], b[2], b[3], b[4], b[5], true, dims_of(p));
}

static void run_in_place(tg_backend *be, void *const *b, const ops_problem *p) {
    tg_rms_dims d = dims_of(p);
    be->ops->copy(be, b[0], b[2], (size_t)d.N * (size_t)d.ld);
    be->ops->rmsnorm_backward(be, b[0], b[1], b[0], b[3], b[4], b[5], false, d);
}

static void set(ops_problem *p, const shape *s) {
    p->d[0] = s->N, p->d[1] = s->H, p->d[2] = s->C, p->d[3] = s->H * s->C + s->gap;
    p->x[0] = (double)s->offset;
}

static void make_forward(ops_problem *p, ops_ctx *c, const shape *s) {
    size_t n = (size_t)s->N * (size_t)(s->H * s->C + s->gap);
    ops_begin(p, c, "rmsnorm_forward", run_forward, "N=%d H=%d C=%d +%d offset %g", s->N, s->H,
              s->C, s->gap, (double)s->offset);
    ops_out(p, "y", n, 2e-6);
    ops_out(p, "rstd", (size_t)s->N * (size_t)s->H, 2e-6);
    ops_in(p, "x", n, 2);
    ops_in(p, "gamma", (size_t)s->C, 1);
    set(p, s);
    p->bytes = 8.0 * (double)n;
}

static void make_backward(ops_problem *p, ops_ctx *c, const shape *s, bool frozen, bool in_place) {
    size_t n = (size_t)s->N * (size_t)(s->H * s->C + s->gap);
    ops_begin(p, c, "rmsnorm_backward", in_place ? run_in_place : run_backward,
              "N=%d H=%d C=%d +%d offset %g%s%s", s->N, s->H, s->C, s->gap, (double)s->offset,
              frozen ? " frozen" : "", in_place ? " in place" : "");
    ops_out(p, "dx", n, 4e-6);
    p->buf[0].overwrites = in_place;
    if (frozen)
        ops_null(p, "dgamma");
    else
        ops_out(p, "dgamma", (size_t)s->C, 1e-6 * (4 + sqrt((double)s->N * s->H)));
    ops_in(p, "dy", n, 1);
    ops_in(p, "x", n, 2);
    float *rstd = ops_in(p, "rstd", (size_t)s->N * (size_t)s->H, 0.3);
    for (int i = 0; i < s->N * s->H; i++) rstd[i] += 1;
    ops_in(p, "gamma", (size_t)s->C, 1);
    set(p, s);
    p->bytes = 16.0 * (double)n;
}

static void test(ops_ctx *c) {
    static const shape shapes[] = {{0, 1, 4, 0, 0},     {1, 1, 1, 0, 0},   {3, 1, 7, 0, 1},
                                   {5, 2, 16, 5, 0},    {33, 1, 17, 0, 0}, {31, 4, 32, 64, 1},
                                   {130, 1, 100, 0, 0}, {70, 3, 64, 0, 0}, {40, 1, 768, 0, 1},
                                   {3, 1, 1600, 0, 0},  {300, 8, 8, 16, 0}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < 4; kind++) {
            if (kind == 0)
                make_forward(&p, c, &shapes[i]);
            else
                make_backward(&p, c, &shapes[i], kind == 2, kind == 3);
            if (ops_wanted(c, p.op))
                ops_compare(c, &p);
            else
                ops_end(&p);
        }
}

static void grad(ops_ctx *c) {
    static const shape shapes[] = {{2, 1, 5, 0, 0}, {3, 2, 7, 4, 1}, {5, 1, 17, 0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "rmsnorm_backward");
         i++) {
        ops_problem f, b;
        make_forward(&f, c, &shapes[i]);
        make_backward(&b, c, &shapes[i], false, false);
        ops_share(&f, &b);
        const shape *s = &shapes[i];
        ops_buf *dy = ops_find(&b, "dy");
        for (size_t k = 0; k < dy->n; k++) /* what lies between heads is not part of the function */
            if ((int)k % (s->H * s->C + s->gap) >= s->H * s->C) dy->f[k] = 0;
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = 2,
                                     .n_outs = 1,
                                     .tol = 2e-3,
                                     .wrt = {{"x", "dx"}, {"gamma", "dgamma"}},
                                     .outs = {{"y", "dy"}}});
    }
}

static void perf(ops_ctx *c) {
    static const shape shapes[] = {{896, 1, 768, 0, 0}, {896, 12, 64, 768, 0}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int backward = 0; backward < 2; backward++) {
            if (backward)
                make_backward(&p, c, &shapes[i], false, false);
            else
                make_forward(&p, c, &shapes[i]);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
}

const ops_suite ops_suite_rmsnorm = {"rmsnorm", test, grad, perf};
