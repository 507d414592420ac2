/* op-eval: one op of one backend on arrays from stdin (raw little-endian f32 or i32, in the order listed), results on stdout. For
 * comparison with other implementations (tests/oracle/check_ops.py).
 *
 *   op-eval BACKEND gelu N               x, dy                        -> y, dx
 *   op-eval BACKEND layernorm N C        x, gamma, beta, dy           -> y, dx, dgamma, dbeta
 *   op-eval BACKEND head N C V           x, w, tokens, dlogp, dent    -> logp, entropy, dx, dw
 *   op-eval BACKEND attention N H D      qkv (N, 3HD), dout; one causal sequence -> out, dqkv
 *   op-eval BACKEND adamw N STEPS LR BETA1 BETA2 EPS DECAY   param, grad of each step -> param, m, v */
#include "common/nn/backend.h"

#include "common/base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct eval {
    tg_backend *be;
    bool failed;
    int64_t d[3];
    double x[5];
} eval;

static float *zeros(eval *e, size_t n) {
    tg_error err;
    float *p = tg_backend_alloc(e->be, n * 4, &err);
    if (!p) {
        fprintf(stderr, "op-eval: %s\n", err.msg);
        exit(71);
    }
    memset(p, 0, n * 4);
    return p;
}

static void *in(eval *e, size_t n) {
    float *p = zeros(e, n);
    if (fread(p, 4, n, stdin) != n) e->failed = true;
    return p;
}

static void out(eval *e, const float *p, size_t n) {
    if (fwrite(p, 4, n, stdout) != n) e->failed = true;
}

static void eval_gelu(eval *e) {
    size_t n = (size_t)e->d[0];
    float *x = in(e, n), *dy = in(e, n), *y = zeros(e, n), *dx = zeros(e, n);
    e->be->ops->act_forward(e->be, y, x, n, TG_ACT_GELU_TANH);
    e->be->ops->act_backward(e->be, dx, dy, x, n, TG_ACT_GELU_TANH);
    out(e, y, n);
    out(e, dx, n);
}

static void eval_layernorm(eval *e) {
    int N = (int)e->d[0], C = (int)e->d[1];
    size_t n = (size_t)N * (size_t)C, c = (size_t)C;
    float *x = in(e, n), *gamma = in(e, c), *beta = in(e, c), *dy = in(e, n), *y = zeros(e, n),
          *dx = zeros(e, n);
    float *mean = zeros(e, (size_t)N), *rstd = zeros(e, (size_t)N), *dgamma = zeros(e, c),
          *dbeta = zeros(e, c);
    e->be->ops->layernorm_forward(e->be, y, mean, rstd, x, gamma, beta, N, C, 1e-5f);
    e->be->ops->layernorm_backward(e->be, dx, dgamma, dbeta, dy, x, mean, rstd, gamma, N, C);
    out(e, y, n);
    out(e, dx, n);
    out(e, dgamma, c);
    out(e, dbeta, c);
}

static void eval_head(eval *e) {
    int N = (int)e->d[0], C = (int)e->d[1], V = (int)e->d[2];
    size_t n = (size_t)N, nx = n * (size_t)C, nw = (size_t)V * (size_t)C;
    float *x = in(e, nx), *w = in(e, nw);
    int32_t *tokens = in(e, n);
    float *dlogp = in(e, n), *dent = in(e, n), *logp = zeros(e, n), *entropy = zeros(e, n),
          *lse = zeros(e, n);
    float *dx = zeros(e, nx), *dw = zeros(e, nw);
    e->be->ops->head_forward(e->be, logp, entropy, lse, x, w, tokens, N, C, V, (tg_head_extra){0});
    e->be->ops->head_backward(e->be, dx, dw, dlogp, dent, x, w, tokens, lse, entropy, N, C, V,
                              (tg_head_extra){0});
    out(e, logp, n);
    out(e, entropy, n);
    out(e, dx, nx);
    out(e, dw, nw);
}

static void eval_attention(eval *e) {
    int N = (int)e->d[0], H = (int)e->d[1], D = (int)e->d[2], W = H * D;
    size_t n = (size_t)N, nw = n * (size_t)W;
    int32_t offsets[2] = {0, N};
    tg_attn_dims d = {.H = H, .G = H, .D = D, .scale = (float)(1 / sqrt(D)), .causal = true};
    float *qkv = in(e, 3 * nw), *dout = in(e, nw), *o = zeros(e, nw),
          *lse = zeros(e, n * (size_t)H);
    float *dqkv = zeros(e, 3 * nw);
    e->be->ops->attention_forward(e->be, o, lse, qkv, qkv + W, qkv + 2 * W, 3 * W, offsets, 1, d);
    e->be->ops->attention_backward(e->be, dqkv, dqkv + W, dqkv + 2 * W, dout, o, lse, qkv, qkv + W,
                                   qkv + 2 * W, 3 * W, offsets, 1, d);
    out(e, o, nw);
    out(e, dqkv, 3 * nw);
}

static void eval_adamw(eval *e) {
    size_t n = (size_t)e->d[0];
    float *param = in(e, n), *m = zeros(e, n), *v = zeros(e, n);
    tg_adamw_step s = {.lr = e->x[0],
                       .beta1 = e->x[1],
                       .beta2 = e->x[2],
                       .eps = e->x[3],
                       .weight_decay = e->x[4],
                       .grad_scale = 1};
    for (s.t = 1; s.t <= e->d[1]; s.t++) {
        float *grad = in(e, n);
        e->be->ops->adamw(e->be, param, grad, m, v, n, &s);
        tg_backend_free(e->be, grad);
    }
    out(e, param, n);
    out(e, m, n);
    out(e, v, n);
}

static const struct {
    const char *name;
    void (*run)(eval *e);
    int sizes, reals;
} ops[] = {{"gelu", eval_gelu, 1, 0},
           {"layernorm", eval_layernorm, 2, 0},
           {"head", eval_head, 3, 0},
           {"attention", eval_attention, 3, 0},
           {"adamw", eval_adamw, 2, 5}};

int main(int argc, char **argv) {
    eval e = {0};
    tg_error err;
    for (size_t i = 0; i < sizeof ops / sizeof *ops && argc > 2; i++) {
        if (strcmp(ops[i].name, argv[2]) || argc != 3 + ops[i].sizes + ops[i].reals) continue;
        bool ok = true;
        for (int k = 0; k < ops[i].sizes; k++)
            ok = ok && tg_parse_i64(argv[3 + k], &e.d[k]) && e.d[k] > 0 && e.d[k] < 1 << 20;
        for (int k = 0; k < ops[i].reals; k++)
            ok = ok && tg_parse_f64(argv[3 + ops[i].sizes + k], &e.x[k]);
        if (!ok) break;
        tg_status st = tg_backend_open(&e.be, argv[1], 0, &err);
        if (st != TG_OK) {
            fprintf(stderr, "op-eval: %s\n", err.msg);
            return tg_status_exit_code(st);
        }
        ops[i].run(&e);
        tg_backend_close(&e.be);
        if (e.failed || fflush(stdout))
            fprintf(stderr, "op-eval: short input, or output that cannot be written\n");
        return e.failed ? 65 : 0;
    }
    fprintf(stderr, "usage: op-eval BACKEND gelu|layernorm|head|attention|adamw SIZES...; the "
                    "sizes are at the top of the source\n");
    return 64;
}
