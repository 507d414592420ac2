/* head_forward, head_backward. */
#include "tests/ops/ops.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

static tg_head_extra extra_of(const float *bias, float *dbias, const int32_t *mask,
                              const ops_problem *p) {
    return (tg_head_extra){.bias = bias,
                           .dbias = dbias,
                           .softcap = (float)p->x[0],
                           .mask = (const uint32_t *)mask,
                           .mask_words = (p->d[2] + 31) / 32,
                           .rounded = p->d[4]};
}

enum {
    MADE_AGAIN,
    KEPT,
    PACKED,
    HALF
}; /* d[3]: where logits come from in backward; what forward multiplies with */

static void *space(tg_backend *be, size_t bytes) {
    void *p = tg_backend_alloc(be, bytes ? bytes : 64, NULL);
    TG_ASSERT(p);
    return p;
}

static void run_forward(tg_backend *be, void *const *b, const ops_problem *p) {
    const int n = p->d[0], C = p->d[1], V = p->d[2];
    const tg_weight_form form = p->d[3] == HALF ? TG_WEIGHT_PACKED_BF16 : TG_WEIGHT_PACKED;
    tg_head_extra extra = extra_of(b[6], NULL, b[7], p);
    void *packed = p->d[3] >= PACKED ? space(be, tg_weight_bytes(V, C, form)) : NULL;
    if (packed) {
        be->ops->weight_pack(be, packed, b[4], V, C, true, form);
        extra.packed = (tg_weight){packed, form, false, p->d[4]};
    }
    be->ops->head_forward(be, b[0], b[1], b[2], b[3], packed ? NULL : b[4], b[5], n, C, V, extra);
    tg_backend_free(be, packed);
}

static void run_backward(tg_backend *be, void *const *b, const ops_problem *p) {
    const int n = p->d[0], C = p->d[1], V = p->d[2];
    tg_head_extra extra = extra_of(b[9], b[10], b[11], p);
    float *kept = NULL;
    if (p->d[3] == KEPT) {
        extra.kept = kept = space(be, ((size_t)n * (size_t)V + 3 * (size_t)n) * sizeof *kept);
        float *unused = kept + (size_t)n * (size_t)V;
        be->ops->head_forward(be, unused, unused + n, unused + 2 * n, b[4], b[5], b[6], n, C, V,
                              extra);
    }
    be->ops->head_backward(be, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], n, C, V,
                           extra);
    tg_backend_free(be, kept);
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

/* About a third of the tokens are allowed, the row's own among them; whole tiles of the vocabulary may be forbidden. */
static void masks(ops_problem *p, const int32_t *tokens, int n, int V, bool masked) {
    if (!masked) {
        ops_null(p, "mask");
        return;
    }
    const size_t words = (size_t)(V + 31) / 32;
    int32_t *bits = ops_ints(p, "mask", (size_t)n * words, INT32_MAX);
    const int32_t *more = ops_ints(p, "more", (size_t)n * words, INT32_MAX);
    for (int i = 0; i < n; i++) {
        int32_t *row = bits + (size_t)i * words;
        for (size_t k = 0; k < words; k++)
            row[k] = k % 32 >= 8 ? 0 : row[k] & more[(size_t)i * words + k];
        row[tokens[i] / 32] = (int32_t)((uint32_t)row[tokens[i] / 32] | 1u << (tokens[i] % 32));
    }
}

static void shape(ops_problem *p, int n, int C, int V) {
    p->d[0] = n, p->d[1] = C, p->d[2] = V;
    p->flops = 2.0 * n * C * V;
}

/* `scale` of x: large logits make sharp distributions. */
static void make_forward(ops_problem *p, ops_ctx *c, int n, int C, int V, double scale,
                         double softcap, bool masked) {
    ops_begin(p, c, "head_forward", run_forward, "n=%d C=%d V=%d scale=%g cap=%g%s", n, C, V, scale,
              softcap, masked ? " masked" : "");
    double tol = 2e-6 * (1 + scale * sqrt(C) / 10);
    ops_out(p, "logp", (size_t)n, tol);
    ops_out(p, "entropy", (size_t)n, tol);
    ops_out(p, "lse", (size_t)n, tol);
    ops_in(p, "x", (size_t)n * (size_t)C, scale);
    ops_in(p, "w", (size_t)V * (size_t)C, 1);
    const int32_t *tokens = ops_ints(p, "tokens", (size_t)n, V);
    extras(p, V, softcap, false, tol);
    masks(p, tokens, n, V, masked);
    shape(p, n, C, V);
}

static void make_backward(ops_problem *p, ops_ctx *c, int n, int C, int V, double scale,
                          bool frozen, double softcap, bool masked) {
    ops_begin(p, c, "head_backward", run_backward, "n=%d C=%d V=%d scale=%g cap=%g%s%s", n, C, V,
              scale, softcap, frozen ? " frozen" : "", masked ? " masked" : "");
    /* p is off by eps times the logit, and dw by that times x; sums over rows by their partial sums, of either sign */
    double row = 5e-6 * (1 + scale * scale * sqrt(C) / 20), tol = row * (1 + sqrt(n) / 16);
    ops_out_over(p, "dx", (size_t)n * (size_t)C, row);
    if (frozen)
        ops_null(p, "dw");
    else
        ops_out(p, "dw", (size_t)V * (size_t)C, tol);
    ops_in(p, "dlogp", (size_t)n, 1);
    ops_in(p, "dentropy", (size_t)n, 1);
    ops_in(p, "x", (size_t)n * (size_t)C, scale);
    ops_in(p, "w", (size_t)V * (size_t)C, 1);
    const int32_t *tokens = ops_ints(p, "tokens", (size_t)n, V);
    ops_in(p, "lse", (size_t)n, 1);
    ops_in(p, "entropy", (size_t)n, 1);
    extras(p, V, softcap, true, tol);
    masks(p, tokens, n, V, masked);
    shape(p, n, C, V);
    p->flops *= frozen ? 2 : 3;
}

/* After the plain cases of a shape, those with kept logits and packed weights. */
static void test_forms(ops_ctx *c, const int shape[3], bool masked, double cap) {
    const int n = shape[0], C = shape[1], V = shape[2];
    ops_problem f, b;
    for (int form = PACKED; form <= HALF && ops_wanted(c, "head_forward"); form++) {
        make_forward(&f, c, n, C, V, 1, cap, masked);
        f.d[3] = form;
        /* x may be rounded to bf16 too (op/linear.h) */
        for (int i = 0; i < f.n && form == HALF; i++) f.buf[i].tol *= 4000;
        ops_compare(c, &f);
    }
    if (!ops_wanted(c, "head_backward")) return;
    make_forward(&f, c, n, C, V, 1, cap, masked);
    make_backward(&b, c, n, C, V, 1, false, cap, masked);
    ops_share(&f, &b);
    ops_end(&f);
    b.d[3] = KEPT;
    ops_compare(c, &b);
}

/* Logits are as near as in f32. Their gradients may be rounded to one side here and to the other there. */
static void set_rounded(ops_problem *p, double more) {
    p->d[4] = true;
    snprintf(p->label + strlen(p->label), sizeof p->label - strlen(p->label), " bf16");
    for (int i = 0; i < p->n; i++) p->buf[i].tol += more;
}

static void test_rounded(ops_ctx *c, const int shape[3], bool masked, double cap) {
    static const int forward[] = {MADE_AGAIN, HALF}, backward[] = {MADE_AGAIN, KEPT};
    const int n = shape[0], C = shape[1], V = shape[2];
    ops_problem f, b;
    for (int i = 0; i < 2; i++) {
        make_forward(&f, c, n, C, V, 1, cap, masked);
        set_rounded(&f, 0);
        make_backward(&b, c, n, C, V, 1, false, cap, masked);
        set_rounded(&b, 4e-3);
        ops_share(&f, &b);
        f.d[3] = forward[i], b.d[3] = backward[i];
        if (ops_wanted(c, "head_forward"))
            ops_compare(c, &f);
        else
            ops_end(&f);
        if (ops_wanted(c, "head_backward"))
            ops_compare(c, &b);
        else
            ops_end(&b);
    }
}

static void test(ops_ctx *c) {
    static const int shapes[][3] = {{0, 3, 5},    {1, 1, 1},     {1, 8, 2},     {3, 5, 17},
                                    {7, 16, 100}, {33, 32, 257}, {20, 24, 600}, {5, 12, 5000},
                                    {300, 8, 40}, {2100, 4, 9}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int variant = 0; variant < 8; variant++) {
            const int n = shapes[i][0], C = shapes[i][1], V = shapes[i][2];
            static const double caps[] = {0, 0, 0, 3, -1, 0, 3, -1};
            const double scale = variant == 1 ? 20 : 1, cap = caps[variant];
            const bool masked = variant >= 5;
            ops_problem f, b;
            if (ops_wanted(c, "head_forward") && variant != 2) {
                make_forward(&f, c, n, C, V, scale, cap, masked);
                ops_compare(c, &f);
            }
            if (!ops_wanted(c, "head_backward")) continue;
            make_forward(&f, c, n, C, V, scale, cap, masked);
            make_backward(&b, c, n, C, V, scale, variant == 2, cap, masked);
            ops_share(&f, &b);
            ops_end(&f);
            ops_compare(c, &b);
        }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int masked = 0; masked < 2; masked++) {
            test_forms(c, shapes[i], masked, masked ? 3 : 0);
            test_rounded(c, shapes[i], masked, masked ? 3 : 0);
        }
}

static void grad(ops_ctx *c) {
    static const int shapes[][3] = {{2, 3, 5}, {4, 6, 33}};
    for (size_t i = 0; i < 6 * (sizeof shapes / sizeof *shapes) && ops_wanted(c, "head_backward");
         i++) {
        const int *s = shapes[i / 6];
        const bool masked = i % 2;
        const double cap = (double)(i / 2 % 3) * 2 - 2; /* -2: bias only, 0: neither, 2: both */
        ops_problem f, b;
        make_forward(&f, c, s[0], s[1], s[2], 1, cap, masked);
        make_backward(&b, c, s[0], s[1], s[2], 1, false, cap, masked);
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
                make_backward(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], 1, false, 0, false);
            else
                make_forward(&p, c, shapes[i][0], shapes[i][1], shapes[i][2], 1, 0, false);
            if (ops_wanted(c, p.op))
                ops_perf(c, &p);
            else
                ops_end(&p);
        }
}

const ops_suite ops_suite_head = {"head", test, grad, perf};
