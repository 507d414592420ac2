/* The backward half: from dlogp, dentropy, dvalue at the actions down to every parameter's gradient. dx holds the gradient of
 * the residual stream and is updated in place from the last layer to the embedding; the decoder's layers leave the gradient of the
 * encoder's states in dstates, from which the encoder's go on. Outputs of norms and of the activation
 * function are made again from what forward kept: they cost little time and would be a third of the memory. */
#include "common/nn/pass_state.h"

/* For y = x w + b:  dw += x^T dy,  db += sum dy. */
void tg_pass_weight_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role,
                             const float *dy, const float *x, int N, int out, int in) {
    const tg_ops *ops = t->be->ops;
    if (t->arch.out_in)
        ops->matmul(t->be, q->g[role], dy, x, out, in, N, true, false, true, t->rounded);
    else
        ops->matmul(t->be, q->g[role], x, dy, in, out, N, true, false, true, t->rounded);
    if (q->g[role + 1]) ops->bias_backward(t->be, q->g[role + 1], dy, N, out);
}

/* dx (N,in) = dy w^T, or += when accumulate. */
void tg_pass_input_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                            const float *dy, int N, int out, int in, bool accumulate) {
    t->be->ops->matmul(t->be, dx, dy, q->w[role], N, in, out, false, !t->arch.out_in, accumulate,
                       t->rounded);
}

/* dx (N,C) += the gradient through a norm of x. */
void tg_pass_norm_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                           const float *dy, const float *x, const float *mean, const float *rstd,
                           int N) {
    const tg_arch *a = &t->arch;
    int C = role == TG_ROLE_EMBED_NORM_W ? tg_trunk_embed_width(a) : a->width;
    if (a->norm == TG_NORM_RMS)
        t->be->ops->rmsnorm_backward(t->be, dx, q->g[role], dy, x, rstd, q->w[role], true,
                                     (tg_rms_dims){N, 1, C, C, C, a->norm_offset});
    else
        t->be->ops->layernorm_backward(t->be, dx, q->g[role], q->g[role + 1], dy, x, mean, rstd,
                                       q->w[role], N, C);
}

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

/* to (N,width) = rows (A,width) in the places of the actions, 0 elsewhere. */
static void spread_rows(const tg_pass *p, float *to, const float *rows, int width) {
    const tg_ops *ops = p->m->be->ops;
    ops->fill(p->m->be, to, 0.0f, (size_t)p->main.n_tokens * (size_t)width);
    ops->scatter_add_rows(p->m->be, to, rows, p->b.act_row, p->n_actions, width);
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
        spread_rows(p, b->d1, b->d2, tg_trunk_attn_width(&s->trunk.arch));
        p->m->be->ops->copy(p->m->be, b->d2, b->dx, (size_t)rows->n * (size_t)C);
        spread_rows(p, b->dx, b->d2, C);
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

/* Gradient of narrow embeddings (N,E), in `to`, from that of the widened ones (N,C). `norm` is scratch. */
static void widen_backward(tg_pass *p, const tg_pass_stack *s, float *to, float *norm) {
    const tg_trunk *t = &s->trunk;
    const tg_arch *a = &t->arch;
    const float *in = s->embed.raw;
    if (a->embed_norm) {
        tg_trunk_norm(t, &t->top, TG_ROLE_EMBED_NORM_W, norm, s->embed.mean, s->embed.rstd,
                      s->embed.raw, s->n_tokens);
        in = norm;
    }
    tg_pass_weight_backward(t, &t->top, TG_ROLE_EMBED_IN_W, p->b.dx, in, s->n_tokens, a->width,
                            a->embed_width);
    tg_pass_input_backward(t, &t->top, TG_ROLE_EMBED_IN_W, to, p->b.dx, s->n_tokens, a->width,
                           a->embed_width, false);
}

/* Adds dx (N,E) to the rows of a table that were read, all but `fixed`; -1: none is. `kept` is scratch. */
static void rows_backward(const tg_trunk *t, float *g, const float *dx, const int32_t *rows, int N,
                          int E, int fixed, float *kept) {
    const tg_ops *ops = t->be->ops;
    float *row = fixed >= 0 ? g + (size_t)fixed * (size_t)E : NULL;
    if (row) ops->copy(t->be, kept, row, (size_t)E);
    ops->embed_backward(t->be, g, dx, rows, N, E);
    if (row) ops->copy(t->be, row, kept, (size_t)E);
}

/* dx, of the first layer's input, reaches the tables. */
static void embed_backward(tg_pass *p, const tg_pass_stack *s) {
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const tg_arch *a = &t->arch;
    int N = s->n_tokens, E = tg_trunk_embed_width(a);
    size_t n = (size_t)N * (size_t)E;
    float *dx = b->dx, *dpos = t->top.g[TG_ROLE_POS_EMBED];
    const bool late = a->norm_first || a->wide_positions;
    if (dpos && late) ops->embed_backward(t->be, dpos, dx, s->positions, N, a->width);
    if (a->narrow_embed) {
        widen_backward(p, s, b->d2, b->d1);
        dx = b->d2;
    }
    if (a->embed_norm) {
        ops->fill(t->be, b->d1, 0.0f, n);
        tg_pass_norm_backward(t, &t->top, TG_ROLE_EMBED_NORM_W, b->d1, dx, s->embed.raw,
                              s->embed.mean, s->embed.rstd, N);
        dx = b->d1;
    }
    float *kept = dx == b->d2 ? b->d1 : b->d2;
    if (dpos && !late) /* the padding's position is as fixed as the padding */
        rows_backward(t, dpos, dx, s->positions, N, E, a->skip_pad ? a->pad_id : -1, kept);
    if (a->types)
        ops->embed_backward(t->be, t->top.g[TG_ROLE_TYPE_EMBED], dx, s->embed.types, N, E);
    if (tg_trunk_scales(a)) ops->scale(t->be, dx, a->embed_scale, n);
    rows_backward(t, t->top.g[TG_ROLE_TOKEN_EMBED], dx, s->tokens, N, E,
                  a->pad_fixed ? a->pad_id : -1, kept);
}

/* dx, of the last layer's output, becomes gradients of all that is trained of the stack. */
void tg_pass_stack_backward(tg_pass *p, tg_pass_stack *s) {
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const int distances = 2 * t->reach + 1, H = t->arch.n_heads;
    if (t->dbias) ops->fill(t->be, t->dbias, 0.0f, (size_t)distances * (size_t)H);
    for (int l = t->arch.n_layers - 1; l >= s->lowest; l--) {
        if (p->recompute && s->held != l) tg_pass_layer(p, s, s->held = l, true);
        const tg_pass_rows rows = tg_pass_rows_of(p, s, l);
        if (t->arch.parallel)
            ops->copy(t->be, p->b.dy, p->b.dx, (size_t)rows.n * (size_t)t->arch.width);
        mlp_backward(p, s, l, &rows);
        if (t->arch.kind == TG_KIND_SEQ2SEQ) cross_backward(p, l);
        attn_both_backward(p, s, l, &rows);
    }
    if (!p->embed_trained) return;
    if (t->dbias)
        ops->embed_backward(t->be, t->top.g[TG_ROLE_REL_BIAS], t->dbias, t->buckets, distances, H);
    embed_backward(p, s);
}

static void encoder_backward(tg_pass *p) {
    const tg_pass_buffers *b = &p->b;
    const tg_trunk *t = &p->enc.trunk;
    const tg_ops *ops = t->be->ops;
    const int P = p->enc.n_tokens;
    const size_t n = (size_t)P * (size_t)t->arch.width;
    if (t->top.w[TG_ROLE_FINAL_W]) {
        ops->fill(t->be, b->dx, 0.0f, n);
        tg_pass_norm_backward(t, &t->top, TG_ROLE_FINAL_W, b->dx, b->dstates,
                              p->enc.layers[t->arch.n_layers - 1].out, b->smean, b->srstd, P);
    } else {
        ops->copy(t->be, b->dx, b->dstates, n);
    }
    tg_pass_stack_backward(p, &p->enc);
}

static void upload_or_clear(tg_pass *p, float *device, const float *host) {
    size_t A = (size_t)p->n_actions;
    if (host)
        tg_backend_upload(p->m->be, device, host, A * sizeof(float));
    else
        p->m->be->ops->fill(p->m->be, device, 0.0f, A);
}

void tg_pass_lm_backward(tg_pass *p, float *dhidden, float *dlm) {
    const tg_trunk *t = &p->main.trunk;
    const int A = p->n_actions, C = t->arch.width, E = tg_trunk_embed_width(&t->arch);
    if (t->arch.logit_scale > 0)
        t->be->ops->scale(t->be, dlm, t->arch.logit_scale, (size_t)A * (size_t)E);
    if (!t->arch.narrow_embed) return;
    if (t->top.g[TG_ROLE_HEAD_IN_W])
        tg_pass_weight_backward(t, &t->top, TG_ROLE_HEAD_IN_W, dlm, p->b.hidden, A, E, C);
    tg_pass_input_backward(t, &t->top, TG_ROLE_HEAD_IN_W, dhidden, dlm, A, E, C, false);
}

/* Gradients of the heads; dhidden (A,C) is overwritten. */
static void heads_backward(tg_pass *p, float *dhidden, bool lm, bool value) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    int A = p->n_actions, C = t->arch.width, E = tg_trunk_embed_width(&t->arch);
    float *dlm = t->arch.narrow_embed ? b->d2 : dhidden;
    if (lm)
        ops->head_backward(t->be, dlm, t->top.g[TG_ROLE_HEAD_W], b->dlogp, b->dentropy, b->lm,
                           t->top.w[TG_ROLE_HEAD_W], b->act_token, b->lse, b->entropy, A, E,
                           t->arch.vocab_size, tg_pass_head(p));
    if (lm) p->kept_whole = false;
    if (lm) tg_pass_lm_backward(p, dhidden, dlm);
    if (!value) return;
    ops->matmul(t->be, t->top.g[TG_ROLE_VALUE_W], b->dvalue, b->hidden, 1, C, A, true, false, true,
                false);
    ops->matmul(t->be, dhidden, b->dvalue, t->top.w[TG_ROLE_VALUE_W], A, C, 1, false, false, lm,
                false);
}

void tg_pass_rows_backward(tg_pass *p, float *dhidden) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    int A = p->n_actions, C = t->arch.width;
    float *drows = dhidden;
    if (t->top.w[TG_ROLE_FINAL_W]) {
        drows = b->d2;
        ops->fill(t->be, drows, 0.0f, (size_t)A * (size_t)C);
        tg_pass_norm_backward(t, &t->top, TG_ROLE_FINAL_W, drows, dhidden, b->rows, b->mean,
                              b->rstd, A);
    }
    if (p->cut)
        ops->copy(t->be, b->dx, drows, (size_t)A * (size_t)C);
    else
        spread_rows(p, b->dx, drows, C);
    if (p->seq2seq) ops->fill(t->be, b->dstates, 0.0f, (size_t)p->enc.n_tokens * (size_t)C);
    tg_pass_stack_backward(p, &p->main);
    if (p->seq2seq && p->embed_trained) encoder_backward(p);
}

tg_status tg_pass_backward(tg_pass *p, const float *dlogp, const float *dentropy,
                           const float *dvalue, tg_error *err) {
    bool lm = dlogp || dentropy, value = dvalue != NULL;
    const tg_pass_buffers *b = &p->b;
    if (!p->train || !p->main.n_tokens || (lm && !p->has_lm) || (value && !p->has_value))
        return tg_fail(err, TG_BUG, "pass: backward of what forward did not compute");
    if (!p->n_actions || (!lm && !value)) return TG_OK;
    tg_status st = tg_model_wake_grad(p->m, err);
    if (st != TG_OK) return st;
    upload_or_clear(p, b->dlogp, dlogp);
    upload_or_clear(p, b->dentropy, dentropy);
    upload_or_clear(p, b->dvalue, dvalue);

    heads_backward(p, b->d1, lm, value);
    tg_pass_rows_backward(p, b->d1);
    return TG_OK;
}
