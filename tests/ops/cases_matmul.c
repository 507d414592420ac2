/* matmul, bias_forward, bias_backward. */
#include "tests/ops/ops.h"

#include <math.h>

static void run_matmul(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->matmul(be, b[0], b[1], b[2], p->d[0], p->d[1], p->d[2], p->d[3], p->d[4], p->d[5],
                    p->d[6]);
}

enum { ROUNDED = 8 };

static void make_matmul(ops_problem *p, ops_ctx *c, int M, int N, int K, int flags) {
    bool ta = flags & 1, tb = flags & 2, accumulate = flags & 4, rounded = flags & ROUNDED;
    ops_begin(p, c, "matmul", run_matmul, "M=%d N=%d K=%d%s%s%s%s", M, N, K, ta ? " ta" : "",
              tb ? " tb" : "", accumulate ? " +=" : "", rounded ? " bf16" : "");
    ops_out(p, "out", (size_t)M * (size_t)N, 1e-7 * (5 + 10 * sqrt(K)));
    ops_in(p, "a", (size_t)M * (size_t)K, 1);
    ops_in(p, "b", (size_t)K * (size_t)N, 1);
    int d[] = {M, N, K, ta, tb, accumulate, rounded};
    for (int i = 0; i < 7; i++) p->d[i] = d[i];
    p->flops = 2.0 * M * N * K;
    p->bytes = 4.0 * ((double)M * K + (double)K * N + (double)M * N * (accumulate ? 2 : 1));
}

static void run_bias_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->bias_forward(be, b[0], b[1], p->d[0], p->d[1]);
}

static void run_bias_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    be->ops->bias_backward(be, b[0], b[1], p->d[0], p->d[1]);
}

static void make_bias(ops_problem *p, ops_ctx *c, int N, int C, bool backward) {
    size_t n = (size_t)N * (size_t)C;
    ops_begin(p, c, backward ? "bias_backward" : "bias_forward",
              backward ? run_bias_backward : run_bias_forward, "N=%d C=%d", N, C);
    if (backward) {
        ops_out(p, "db", (size_t)C, 1e-7 * (5 + 6 * sqrt(N)));
        ops_in(p, "dy", n, 1);
    } else {
        ops_out(p, "y", n, 1e-7);
        ops_in(p, "b", (size_t)C, 1);
    }
    p->d[0] = N, p->d[1] = C;
    p->bytes = 4.0 * (double)n * (backward ? 1 : 2);
}

static void test(ops_ctx *c) {
    static const int shapes[][3] = {
        {0, 5, 3},      {5, 0, 3},      {4, 3, 0},       {1, 1, 1},       {1, 7, 5},
        {1, 64, 33},    {1, 300, 129},  {2, 17, 16},     {3, 5, 7},       {4, 64, 64},
        {5, 65, 63},    {7, 1, 9},      {300, 1, 40},    {8, 257, 100},   {15, 31, 17},
        {16, 128, 48},  {17, 130, 31},  {31, 33, 65},    {32, 48, 8},     {33, 2, 200},
        {64, 64, 64},   {65, 100, 1},   {100, 384, 128}, {128, 128, 300}, {257, 511, 33},
        {300, 260, 96}, {29, 70, 1537}, {450, 33, 770},  {9, 40, 2101},   {1801, 35, 37},
    };
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "matmul"); i++)
        for (int flags = 0; flags < 2 * ROUNDED; flags++) {
            make_matmul(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], flags);
            ops_compare(c, &p);
        }
    static const int rows[][2] = {{0, 3},  {3, 0},    {1, 1},     {2, 15},
                                  {5, 64}, {65, 129}, {300, 257}, {700, 66}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int backward = 0; backward < 2; backward++) {
            make_bias(&p, c, rows[i][0], rows[i][1], backward);
            if (ops_wanted(c, p.op))
                ops_compare(c, &p);
            else
                ops_end(&p);
        }
}

/* The gradients of a product are products: dA = dOut B^T, dB = A^T dOut. This checks the transposed
 * forms. */
static void grad(ops_ctx *c) {
    ops_problem f, b;
    if (ops_wanted(c, "matmul"))
        for (int side = 0; side < 2; side++) {
            const int M = 3, N = 5, K = 4;
            make_matmul(&f, c, M, N, K, 0);
            if (side == 0)
                make_matmul(&b, c, M, K, N, 2 | 4); /* out is dA, a is dOut, b is B */
            else
                make_matmul(&b, c, K, N, M, 1 | 4); /* out is dB, a is A, b is dOut */
            b.buf[0].name = "grad";
            b.buf[1].name = side == 0 ? "dout" : "a";
            b.buf[2].name = side == 0 ? "b" : "dout";
            ops_share(&f, &b);
            ops_grad g = {.forward = &f, .backward = &b, .n_wrt = 1, .n_outs = 1, .tol = 1e-4};
            g.wrt[0].input = side == 0 ? "a" : "b", g.wrt[0].gradient = "grad";
            g.outs[0].output = "out", g.outs[0].grad_out = "dout";
            ops_gradcheck(c, &g);
        }
    if (ops_wanted(c, "bias_backward")) {
        make_bias(&f, c, 5, 7, false);
        make_bias(&b, c, 5, 7, true);
        ops_grad g = {.forward = &f, .backward = &b, .n_wrt = 1, .n_outs = 1, .tol = 1e-4};
        g.wrt[0].input = "b", g.wrt[0].gradient = "db";
        g.outs[0].output = "y", g.outs[0].grad_out = "dy";
        ops_gradcheck(c, &g);
    }
}

static void perf(ops_ctx *c) {
    static const int shapes[][4] = {
        {896, 3072, 768, 0},      {896, 768, 3072, 0},         {896, 2304, 768, 0},
        {896, 768, 768, 0},       {896, 768, 3072, 2 | 4},     {768, 3072, 896, 1 | 4},
        {3072, 768, 896, 1 | 4},  {320, 50257, 768, 2},        {1, 3072, 768, 0},
        {4, 3072, 768, 0},        {8, 3072, 768, 0},           {16, 3072, 768, 0},
        {32, 3072, 768, 0},       {64, 3072, 768, 0},          {1, 3072, 24576, 0},
        {8, 3072, 24576, 0},      {16, 3072, 24576, 0},        {4, 50257, 768, 2},
        {32, 50257, 768, 2},      {64, 50257, 768, 2},         {1, 50257, 768, 2},
        {8, 50257, 768, 2},       {16, 50257, 768, 2},         {600, 384, 128, 0},
        {600, 512, 128, 0},       {128, 512, 600, 1 | 4},      {16, 384, 128, 0},
        {600, 1, 128, 0},         {896, 3072, 768, 8},         {896, 768, 3072, 8},
        {896, 2304, 768, 8},      {896, 768, 768, 8},          {896, 768, 3072, 2 | 4 | 8},
        {896, 3072, 768, 2 | 8},  {768, 3072, 896, 1 | 4 | 8}, {3072, 768, 896, 1 | 4 | 8},
        {320, 50257, 768, 2 | 8},
    };
    ops_problem p;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && ops_wanted(c, "matmul"); i++) {
        make_matmul(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        ops_perf(c, &p);
    }
    for (int backward = 0; backward < 2; backward++) {
        make_bias(&p, c, 896, 3072, backward);
        if (ops_wanted(c, p.op))
            ops_perf(c, &p);
        else
            ops_end(&p);
    }
}

const ops_suite ops_suite_matmul = {"matmul", test, grad, perf};
