/* embed_forward, embed_backward, gather_rows, scatter_add_rows. */
#include "tests/ops/ops.h"

static void run_embed_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->embed_forward(be, b[0], b[1], b[2], p->d[0], p->d[1], p->d[3]);
}

static void run_embed_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->embed_backward(be, b[0], b[1], b[2], p->d[0], p->d[1]);
}

static void run_gather(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->gather_rows(be, b[0], b[1], b[2], p->d[0], p->d[1]);
}

static void run_scatter(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->scatter_add_rows(be, b[0], b[1], b[2], p->d[0], p->d[1]);
}

enum { EMBED, EMBED_ADD, GATHER, EMBED_BACKWARD, SCATTER, N_KINDS };

static const struct {
    const char *op, *label;
    ops_run *run;
} kinds[N_KINDS] = {
    [EMBED] = {"embed_forward", "", run_embed_forward},
    [EMBED_ADD] = {"embed_forward", " +=", run_embed_forward},
    [GATHER] = {"gather_rows", "", run_gather},
    [EMBED_BACKWARD] = {"embed_backward", "", run_embed_backward},
    [SCATTER] = {"scatter_add_rows", "", run_scatter},
};

/* N rows of C floats, by index from (or into) `rows` rows. Few rows: many equal indices. */
static void make(ops_problem *p, ops_ctx *c, int kind, int N, int C, int rows) {
    ops_begin(p, c, kinds[kind].op, kinds[kind].run, "N=%d C=%d rows=%d%s", N, C, rows,
              kinds[kind].label);
    size_t n = (size_t)N * (size_t)C, table = (size_t)rows * (size_t)C;
    if (kind >= EMBED_BACKWARD) {
        ops_out(p, "dtable", table,
                1e-30); /* the order of additions is part of the contract: no difference at all */
        ops_in(p, "dy", n, 1);
    } else {
        ops_out(p, "y", n, 1e-30);
        ops_in(p, "table", table, 1);
    }
    ops_ints(p, "ids", (size_t)N, rows);
    p->d[0] = N, p->d[1] = C, p->d[2] = rows, p->d[3] = kind == EMBED_ADD;
    p->bytes = 4.0 * (double)n * (kind == EMBED || kind == GATHER ? 2 : 3);
}

static void test(ops_ctx *c) {
    static const int shapes[][3] = {{0, 5, 3},      {1, 1, 1},     {3, 2, 7},
                                    {9, 17, 2},     {40, 64, 5},   {65, 129, 9},
                                    {300, 128, 60}, {100, 768, 7}, {1000, 33, 11}};
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            make(&p, c, kind, shapes[i][0], shapes[i][1], shapes[i][2]);
            if (ops_wanted(c, p.op))
                ops_compare(c, &p);
            else
                ops_end(&p);
        }
}

static void grad(ops_ctx *c) {
    for (int pair = 0; pair < 2; pair++) {
        ops_problem f, b;
        if (!ops_wanted(c, kinds[pair ? SCATTER : EMBED_BACKWARD].op)) continue;
        make(&f, c, pair ? GATHER : EMBED_ADD, 7, 5, 4);
        make(&b, c, pair ? SCATTER : EMBED_BACKWARD, 7, 5, 4);
        ops_share(&f, &b);
        ops_gradcheck(c, &(ops_grad){.forward = &f,
                                     .backward = &b,
                                     .n_wrt = 1,
                                     .n_outs = 1,
                                     .tol = 1e-4,
                                     .wrt = {{"table", "dtable"}},
                                     .outs = {{"y", "dy"}}});
    }
}

static void perf(ops_ctx *c) {
    for (int kind = 0; kind < N_KINDS; kind++) {
        ops_problem p;
        make(&p, c, kind, 896, 768, 50257);
        if (ops_wanted(c, p.op))
            ops_perf(c, &p);
        else
            ops_end(&p);
    }
}

const ops_suite ops_suite_embed = {"embed", test, grad, perf};
