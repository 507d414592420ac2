/* One layer of the backward half: its branches, from the last to the first, take dx from the layer's output to its input. Outputs of norms
 * and of the activation function are made again from what forward kept: they cost little time and would be a third of the memory. */
#include "common/nn/pass_state.h"

/* The gradient of what a branch adds: dx, or what the norm behind the branch makes of it. */
static const float *branch_gradient(tg_pass *p, const tg_pass_stack *s, int layer,
                                    const tg_branch *br, int N) {
    const tg_trunk *t = &s->trunk;
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const size_t n = (size_t)N * (size_t)t->arch.width;
    if (t->arch.parallel) return b->dy; /* a copy of dx, which the other branch may have changed */
    if (!tg_trunk_keeps_post(&t->arch)) return b->dx;
    t->be->ops->fill(t->be, b->dy, 0.0f, n);
    if (t->arch.norm_after) { /* the stream's gradient goes through the norm too */
        tg_pass_norm_backward(t, q, br->norm, b->dy, b->dx, br->raw, br->mean, br->rstd, N);
        t->be->ops->copy(t->be, b->dx, b->dy, n);
    } else {
        tg_pass_norm_backward(t, q, br->post, b->dy, b->dx, br->raw, br->post_mean, br->post_rstd,
                              N);
    }
    return b->dy;
}

/* What the branch read: its norm of x, made again in `norm`, or x. */
static const float *branch_input(const tg_pass_stack *s, int layer, const tg_branch *br,
                                 float *norm, int N) {
    const tg_trunk *t = &s->trunk;
    if (t->arch.norm_after) return br->x;
    tg_trunk_norm(t, &t->layers[layer], br->norm, norm, br->mean, br->rstd, br->x, N);
    return norm;
}

/* dx += the gradient through the branch's first matrix and its norm, from dy (N,out). `d` (N,C) is scratch. */
static void branch_end(tg_pass *p, const tg_pass_stack *s, int layer, const tg_branch *br,
                       tg_param_role role, const float *dy, int out, float *d, int N) {
    const tg_trunk *t = &s->trunk;
    const tg_tensors *q = &t->layers[layer];
    const int C = t->arch.width;
    if (t->arch.norm_after || t->arch.norm_stream) { /* dx is that of what the branch read */
        tg_pass_input_backward(t, q, role, p->b.dx, dy, N, out, C, true);
        if (t->arch.norm_after) return;
        t->be->ops->copy(t->be, d, p->b.dx, (size_t)N * (size_t)C);
        t->be->ops->fill(t->be, p->b.dx, 0.0f, (size_t)N * (size_t)C);
    } else {
        tg_pass_input_backward(t, q, role, d, dy, N, out, C, false);
    }
    tg_pass_norm_backward(t, q, br->norm, p->b.dx, d, br->x, br->mean, br->rstd, N);
}

/* out = mid + act(norm2(mid) Wu + bu) Wd + bd:  dx (of out) becomes dx (of mid). Parallel: x in place of mid. */
static void mlp_backward(tg_pass *p, const tg_pass_stack *s, int layer, const tg_pass_rows *rows) {
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &rows->a;
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const tg_branch br = tg_trunk_branch(t, layer, a, TG_BRANCH_MLP);
    int N = rows->n, C = t->arch.width, F = t->arch.mlp_width;
    const int U = tg_trunk_up_width(&t->arch);
    const float *dy = branch_gradient(p, s, layer, &br, N);
    tg_trunk_act(t, b->act, a->up, N);
    tg_pass_weight_backward(t, q, TG_ROLE_DOWN_W, dy, b->act, N, C, F);
    tg_pass_input_backward(t, q, TG_ROLE_DOWN_W, b->act, dy, N, C, F, false);
    if (t->arch.gated)
        ops->gated_backward(t->be, b->wide, b->act, a->up, N, F, t->arch.act);
    else
        ops->act_backward(t->be, b->wide, b->wide, a->up, (size_t)N * (size_t)F, t->arch.act);
    tg_pass_weight_backward(t, q, TG_ROLE_UP_W, b->wide, branch_input(s, layer, &br, b->d1, N), N,
                            U, C);
    branch_end(p, s, layer, &br, TG_ROLE_UP_W, b->wide, U, b->d2, N);
}

/* Gradients of turned and normalised queries and keys become those of the products. */
static void heads_in_backward(const tg_pass_stack *s, int layer, float *dqkv) {
    const tg_trunk *t = &s->trunk;
    const tg_arch *arch = &t->arch;
    const tg_acts *a = &s->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    int N = s->n_tokens, k = tg_trunk_heads(arch).k;
    tg_trunk_rope(t, layer, dqkv, s->positions, N, true);
    if (!arch->qk_norm) return;
    t->be->ops->rmsnorm_backward(t->be, dqkv, q->g[TG_ROLE_Q_NORM_W], dqkv, a->raw, a->rstd_q,
                                 q->w[TG_ROLE_Q_NORM_W], false,
                                 tg_trunk_head_norm(arch, N, arch->n_heads));
    t->be->ops->rmsnorm_backward(t->be, dqkv + k, q->g[TG_ROLE_K_NORM_W], dqkv + k, a->raw + k,
                                 a->rstd_k, q->w[TG_ROLE_K_NORM_W], false,
                                 tg_trunk_head_norm(arch, N, arch->n_kv_heads));
}

/* mid = x + attention(norm1(x) Wq + bq) Wo + bo:  dx (of mid) becomes dx (of x), in two parts: down to attention's results, datt, and from
 * there. */
static void mix_backward(tg_pass *p, const tg_pass_stack *s, int layer, const tg_pass_rows *rows,
                         float *datt) {
    const tg_trunk *t = &s->trunk;
    const tg_tensors *q = &t->layers[layer];
    const tg_branch br = tg_trunk_branch(t, layer, &rows->a, TG_BRANCH_ATTN);
    const int N = rows->n, C = t->arch.width, HD = tg_trunk_attn_width(&t->arch);
    const float *dy = branch_gradient(p, s, layer, &br, N);
    tg_pass_weight_backward(t, q, TG_ROLE_ATTN_OUT_W, dy, rows->a.att, N, C, HD);
    tg_pass_input_backward(t, q, TG_ROLE_ATTN_OUT_W, datt, dy, N, C, HD, false);
}

static void attn_backward(tg_pass *p, const tg_pass_stack *s, int layer, const float *datt) {
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &s->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const tg_heads at = tg_trunk_heads(&t->arch);
    const tg_branch br = tg_trunk_branch(t, layer, a, TG_BRANCH_ATTN);
    const int N = s->n_tokens, C = t->arch.width;
    float *dqkv = b->wide;
    ops->fill(t->be, dqkv, 0.0f, (size_t)N * (size_t)at.stride);
    ops->attention_backward(t->be, dqkv, dqkv + at.k, dqkv + at.v, datt, a->att, a->lse, a->qkv,
                            a->qkv + at.k, a->qkv + at.v, at.stride, s->offsets, p->n_seqs,
                            tg_trunk_attn(t, layer));
    heads_in_backward(s, layer, dqkv);
    tg_pass_weight_backward(t, &t->layers[layer], TG_ROLE_QKV_W, dqkv,
                            branch_input(s, layer, &br, b->d1, N), N, at.stride, C);
    branch_end(p, s, layer, &br, TG_ROLE_QKV_W, dqkv, at.stride, b->d2, N);
}

/* Attention's gradients reach all rows again. */
static void attn_both_backward(tg_pass *p, const tg_pass_stack *s, int layer,
                               const tg_pass_rows *rows) {
    const tg_pass_buffers *b = &p->b;
    const int C = s->trunk.arch.width;
    if (!tg_pass_is_cut(p, s, layer)) {
        mix_backward(p, s, layer, rows, b->d1);
    } else {
        mix_backward(p, s, layer, rows, b->d2);
        tg_pass_spread_rows(p, b->d1, b->d2, tg_trunk_attn_width(&s->trunk.arch));
        p->m->be->ops->copy(p->m->be, b->d2, b->dx, (size_t)rows->n * (size_t)C);
        tg_pass_spread_rows(p, b->dx, b->d2, C);
    }
    attn_backward(p, s, layer, b->d1);
}

/* cmid = mid + attention(norm(mid) Wq, states Wkv) Wo:  dx (of cmid) becomes dx (of mid), and dstates += the states' part. */
static void cross_backward(tg_pass *p, int layer) {
    const tg_pass_stack *s = &p->main;
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &s->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const tg_branch br = tg_trunk_branch(t, layer, a, TG_BRANCH_CROSS);
    const int N = s->n_tokens, P = p->enc.n_tokens, C = t->arch.width;
    const int HD = tg_trunk_attn_width(&t->arch), GD = tg_trunk_kv_width(&t->arch);
    float *datt = b->d1, *dq = b->d2, *dkv = b->wide;
    const float *dy = branch_gradient(p, s, layer, &br, N);
    tg_pass_weight_backward(t, q, TG_ROLE_CROSS_OUT_W, dy, a->catt, N, C, HD);
    tg_pass_input_backward(t, q, TG_ROLE_CROSS_OUT_W, datt, dy, N, C, HD, false);
    ops->fill(t->be, dq, 0.0f, (size_t)N * (size_t)HD);
    ops->fill(t->be, dkv, 0.0f, (size_t)P * 2 * (size_t)GD);
    ops->attention_backward(t->be, dq, dkv, dkv + GD, datt, a->catt, a->clse, a->cq, a->ckv,
                            a->ckv + GD, HD, s->offsets, p->n_seqs, tg_pass_source(p));
    tg_pass_weight_backward(t, q, TG_ROLE_CROSS_K_W, dkv, b->states, P, 2 * GD, C);
    if (p->embed_trained)
        tg_pass_input_backward(t, q, TG_ROLE_CROSS_K_W, b->dstates, dkv, P, 2 * GD, C, true);
    tg_pass_weight_backward(t, q, TG_ROLE_CROSS_Q_W, dq, branch_input(s, layer, &br, b->d1, N), N,
                            HD, C);
    branch_end(p, s, layer, &br, TG_ROLE_CROSS_Q_W, dq, HD, b->d1, N);
}

void tg_pass_layer_backward(tg_pass *p, const tg_pass_stack *s, int layer) {
    const tg_trunk *t = &s->trunk;
    const tg_pass_rows rows = tg_pass_rows_of(p, s, layer);
    if (t->arch.parallel)
        t->be->ops->copy(t->be, p->b.dy, p->b.dx, (size_t)rows.n * (size_t)t->arch.width);
    mlp_backward(p, s, layer, &rows);
    if (t->arch.kind == TG_KIND_SEQ2SEQ) cross_backward(p, layer);
    attn_both_backward(p, s, layer, &rows);
}
