/* linear, weight_pack, weight_rows. A packed weight's order is the backend's own business: the runs pack first. */
#include "tests/ops/ops.h"

#include "common/base/check.h"

#include <math.h>

enum { M, N, K, FORM, TB, ACCUMULATE, ROUNDED };

static void *pack(tg_backend *be, const float *w, const ops_problem *p) {
    void *packed = tg_backend_alloc(
        be, TG_MAX(tg_weight_bytes(p->d[N], p->d[K], (tg_weight_form)p->d[FORM]), (size_t)64),
        NULL);
    TG_ASSERT(packed);
    if (p->d[FORM] != TG_WEIGHT_PLAIN)
        be->ops->weight_pack(be, packed, w, p->d[N], p->d[K], p->d[TB], (tg_weight_form)p->d[FORM]);
    return packed;
}

static tg_weight weight(const float *w, const void *packed, const ops_problem *p) {
    if (p->d[FORM] == TG_WEIGHT_PLAIN)
        return (tg_weight){w, TG_WEIGHT_PLAIN, p->d[TB], p->d[ROUNDED]};
    return (tg_weight){packed, (tg_weight_form)p->d[FORM], false, p->d[ROUNDED]};
}

static void run_linear(tg_backend *be, void *const *b, const ops_problem *p) {
    void *packed = pack(be, b[2], p);
    be->ops->linear(be, b[0], b[1], weight(b[2], packed, p), b[3], p->d[M], p->d[N], p->d[K],
                    p->d[ACCUMULATE]);
    tg_backend_free(be, packed);
}

static const char *const forms[] = {"plain", "packed", "bf16"};

static void set(ops_problem *p, const int shape[3], int form, bool tb, bool accumulate) {
    const int d[] = {shape[0], shape[1], shape[2], form, tb, accumulate};
    for (int i = 0; i < 6; i++) p->d[i] = d[i];
}

static void make_linear(ops_problem *p, ops_ctx *c, const int shape[3], int form, int flags) {
    const bool tb = flags & 1, bias = flags & 2, accumulate = flags & 4, rounded = flags & 8;
    const size_t m = (size_t)shape[0], n = (size_t)shape[1], k = (size_t)shape[2];
    ops_begin(p, c, "linear", run_linear, "M=%d N=%d K=%d %s%s%s%s%s", shape[0], shape[1], shape[2],
              forms[form], tb ? " tb" : "", bias ? " bias" : "", accumulate ? " +=" : "",
              rounded ? " rounded" : "");
    /* x may be rounded to bf16 too (op/linear.h) */
    const double unit = form == TG_WEIGHT_PACKED_BF16 && !rounded ? 1e-3 : 1e-7;
    ops_out(p, "y", m * n, unit * (5 + 12 * sqrt(shape[2])));
    ops_in(p, "x", m * k, 1);
    ops_in(p, "w", k * n, 1);
    if (bias)
        ops_in(p, "bias", n, 1);
    else
        ops_null(p, "bias");
    set(p, shape, form, tb, accumulate);
    p->d[ROUNDED] = rounded;
    p->flops = 2.0 * (double)m * (double)n * (double)k;
}

static void run_rows(tg_backend *be, void *const *b, const ops_problem *p) {
    void *packed = pack(be, b[1], p);
    be->ops->weight_rows(be, b[0], weight(b[1], packed, p), b[2], p->d[M], p->d[N], p->d[K]);
    tg_backend_free(be, packed);
}

static void make_rows(ops_problem *p, ops_ctx *c, const int shape[3], int form) {
    ops_begin(p, c, "weight_rows", run_rows, "n=%d N=%d K=%d %s", shape[0], shape[1], shape[2],
              forms[form]);
    ops_out(p, "y", (size_t)shape[0] * (size_t)shape[2], 0);
    ops_in(p, "w", (size_t)shape[1] * (size_t)shape[2], 1);
    ops_ints(p, "ids", (size_t)shape[0], shape[1]);
    set(p, shape, form, true, false);
}

static void test(ops_ctx *c) {
    static const int shapes[][3] = {{0, 5, 3},      {1, 1, 1},     {1, 64, 33},
                                    {3, 5, 7},      {8, 257, 100}, {16, 31, 48},
                                    {29, 130, 400}, {64, 96, 800}, {100, 384, 128}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int form = 0; form < 3; form++) {
            for (int flags = 0; flags < 16 && ops_wanted(c, "linear"); flags++) {
                if (form == TG_WEIGHT_PACKED && flags >= 8) continue; /* there is no such product */
                make_linear(&p, c, shapes[i], form, flags);
                ops_compare(c, &p);
            }
            if (!ops_wanted(c, "weight_rows")) continue;
            make_rows(&p, c, shapes[i], form);
            ops_compare(c, &p);
        }
}

/* Packing is done beforehand in real use; these times contain it, except for the plain form. */
static void perf(ops_ctx *c) {
    static const int shapes[][3] = {{896, 3072, 768}, {16, 3072, 768}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "linear"); i++) {
        make_linear(&p, c, shapes[i], TG_WEIGHT_PLAIN, 2);
        ops_perf(c, &p);
    }
}

/* The gradients of a linear layer are matmul's and bias_backward's. */
static void grad(ops_ctx *c) {
    (void)c;
}

const ops_suite ops_suite_linear = {"linear", test, grad, perf};
