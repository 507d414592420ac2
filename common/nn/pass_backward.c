/* The backward half: from dlogp, dentropy, dvalue at the actions down to every parameter's gradient. dx holds the gradient of
 * the residual stream and is updated in place from the last layer to the embedding. Outputs of norms and of the activation
 * function are made again from what forward kept: they cost little time and would be a third of the memory. */
#include "common/nn/pass_state.h"

/* For y = x w + b:  dw += x^T dy,  db += sum dy. */
static void weight_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role,
                            const float *dy, const float *x, int N, int out, int in) {
    const tg_ops *ops = t->be->ops;
    if (t->arch->out_in)
        ops->matmul(t->be, q->g[role], dy, x, out, in, N, true, false, true);
    else
        ops->matmul(t->be, q->g[role], x, dy, in, out, N, true, false, true);
    if (q->g[role + 1]) ops->bias_backward(t->be, q->g[role + 1], dy, N, out);
}

/* dx (N,in) = dy w^T. */
static void input_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                           const float *dy, int N, int out, int in) {
    t->be->ops->matmul(t->be, dx, dy, q->w[role], N, in, out, false, !t->arch->out_in, false);
}

/* dx (N,C) += the gradient through a norm of x. */
static void norm_backward(const tg_trunk *t, const tg_tensors *q, tg_param_role role, float *dx,
                          const float *dy, const float *x, const float *mean, const float *rstd,
                          int N) {
    const tg_arch *a = t->arch;
    int C = a->width;
    if (a->norm == TG_NORM_RMS)
        t->be->ops->rmsnorm_backward(t->be, dx, q->g[role], dy, x, rstd, q->w[role], true,
                                     (tg_rms_dims){N, 1, C, C, C, a->norm_offset});
    else
        t->be->ops->layernorm_backward(t->be, dx, q->g[role], q->g[role + 1], dy, x, mean, rstd,
                                       q->w[role], N, C);
}

/* The gradient of what a branch adds: dx, or what the norm behind the branch makes of it. */
static const float *branch_gradient(tg_pass *p, int layer, tg_param_role post, const float *x,
                                    const float *mean, const float *rstd) {
    const tg_trunk *t = &p->trunk;
    const tg_pass_buffers *b = &p->b;
    if (t->arch->parallel) return b->dy; /* a copy of dx, which the other branch may have changed */
    if (!t->arch->post_norms) return b->dx;
    t->be->ops->fill(t->be, b->dy, 0.0f, (size_t)p->n_tokens * (size_t)t->arch->width);
    norm_backward(t, &t->layers[layer], post, b->dy, b->dx, x, mean, rstd, p->n_tokens);
    return b->dy;
}

/* out = mid + act(norm2(mid) Wu + bu) Wd + bd:  dx (of out) becomes dx (of mid). Parallel: x in place of mid. */
static void mlp_backward(tg_pass *p, int layer) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &p->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const float *in = t->arch->parallel ? a->x : a->mid;
    int N = p->n_tokens, C = t->arch->width, F = t->arch->mlp_width;
    const float *dy = branch_gradient(p, layer, TG_ROLE_POST2_W, a->post2, a->mean4, a->rstd4);
    tg_trunk_act(t, b->act, a->up, N);
    weight_backward(t, q, TG_ROLE_DOWN_W, dy, b->act, N, C, F);
    input_backward(t, q, TG_ROLE_DOWN_W, b->act, dy, N, C, F);
    if (t->arch->gated)
        ops->gated_backward(t->be, b->wide, b->act, a->up, N, F, t->arch->act);
    else
        ops->act_backward(t->be, b->wide, b->wide, a->up, (size_t)N * (size_t)F, t->arch->act);
    tg_trunk_norm(t, q, tg_trunk_norm2(q), b->d1, a->mean2, a->rstd2, in, N);
    weight_backward(t, q, TG_ROLE_UP_W, b->wide, b->d1, N, tg_trunk_up_width(t->arch), C);
    input_backward(t, q, TG_ROLE_UP_W, b->d2, b->wide, N, tg_trunk_up_width(t->arch), C);
    norm_backward(t, q, tg_trunk_norm2(q), b->dx, b->d2, in, a->mean2, a->rstd2, N);
}

/* Gradients of turned and normalised queries and keys become those of the products. */
static void heads_in_backward(tg_pass *p, int layer, float *dqkv) {
    const tg_trunk *t = &p->trunk;
    const tg_arch *arch = t->arch;
    const tg_acts *a = &p->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    int N = p->n_tokens, k = tg_trunk_heads(arch).k;
    tg_trunk_rope(t, dqkv, p->b.positions, N, true);
    if (!arch->qk_norm) return;
    t->be->ops->rmsnorm_backward(t->be, dqkv, q->g[TG_ROLE_Q_NORM_W], dqkv, a->raw, a->rstd_q,
                                 q->w[TG_ROLE_Q_NORM_W], false,
                                 tg_trunk_head_norm(arch, N, arch->n_heads));
    t->be->ops->rmsnorm_backward(t->be, dqkv + k, q->g[TG_ROLE_K_NORM_W], dqkv + k, a->raw + k,
                                 a->rstd_k, q->w[TG_ROLE_K_NORM_W], false,
                                 tg_trunk_head_norm(arch, N, arch->n_kv_heads));
}

/* mid = x + attention(norm1(x) Wq + bq) Wo + bo:  dx (of mid) becomes dx (of x). */
static void attn_backward(tg_pass *p, int layer) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &p->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    const tg_heads at = tg_trunk_heads(t->arch);
    int N = p->n_tokens, C = t->arch->width, HD = tg_trunk_attn_width(t->arch);
    float *datt = b->d1, *dqkv = b->wide;
    const float *dy = branch_gradient(p, layer, TG_ROLE_POST1_W, a->post1, a->mean3, a->rstd3);
    weight_backward(t, q, TG_ROLE_ATTN_OUT_W, dy, a->att, N, C, HD);
    input_backward(t, q, TG_ROLE_ATTN_OUT_W, datt, dy, N, C, HD);
    ops->fill(t->be, dqkv, 0.0f, (size_t)N * (size_t)at.stride);
    ops->attention_backward(t->be, dqkv, dqkv + at.k, dqkv + at.v, datt, a->att, a->lse, a->qkv,
                            a->qkv + at.k, a->qkv + at.v, at.stride, b->offsets, p->n_seqs,
                            tg_trunk_attn(t, layer));
    heads_in_backward(p, layer, dqkv);
    tg_trunk_norm(t, q, TG_ROLE_NORM1_W, b->d1, a->mean1, a->rstd1, a->x, N);
    weight_backward(t, q, TG_ROLE_QKV_W, dqkv, b->d1, N, at.stride, C);
    input_backward(t, q, TG_ROLE_QKV_W, b->d2, dqkv, N, at.stride, C);
    norm_backward(t, q, TG_ROLE_NORM1_W, b->dx, b->d2, a->x, a->mean1, a->rstd1, N);
}

/* dx, of the first layer's input, reaches the tables. */
static void embed_backward(tg_pass *p) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    int N = p->n_tokens, C = t->arch->width;
    size_t n = (size_t)N * (size_t)C;
    float *dx = b->dx;
    if (t->arch->embed_norm) {
        dx = b->d1;
        ops->fill(t->be, dx, 0.0f, n);
        norm_backward(t, &t->top, TG_ROLE_EMBED_NORM_W, dx, b->dx, b->embed.raw, b->embed.mean,
                      b->embed.rstd, N);
    }
    if (t->top.g[TG_ROLE_POS_EMBED])
        ops->embed_backward(t->be, t->top.g[TG_ROLE_POS_EMBED], dx, b->positions, N, C);
    if (t->arch->embed_scale > 0) ops->scale(t->be, dx, t->arch->embed_scale, n);
    ops->embed_backward(t->be, t->top.g[TG_ROLE_TOKEN_EMBED], dx, b->tokens, N, C);
}

static void upload_or_clear(tg_pass *p, float *device, const float *host) {
    size_t A = (size_t)p->n_actions;
    if (host)
        tg_backend_upload(p->m->be, device, host, A * sizeof(float));
    else
        p->m->be->ops->fill(p->m->be, device, 0.0f, A);
}

/* Gradients of the heads; dhidden (A,C) is overwritten. */
static void heads_backward(tg_pass *p, float *dhidden, bool lm, bool value) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    int A = p->n_actions, C = t->arch->width;
    if (lm)
        ops->head_backward(t->be, dhidden, t->top.g[TG_ROLE_HEAD_W], b->dlogp, b->dentropy,
                           b->hidden, t->top.w[TG_ROLE_HEAD_W], b->act_token, b->lse, b->entropy, A,
                           C, t->arch->vocab_size,
                           (tg_head_extra){t->top.w[TG_ROLE_HEAD_B], t->top.g[TG_ROLE_HEAD_B],
                                           t->arch->logit_softcap});
    if (!value) return;
    ops->matmul(t->be, t->top.g[TG_ROLE_VALUE_W], b->dvalue, b->hidden, 1, C, A, true, false, true);
    ops->matmul(t->be, dhidden, b->dvalue, t->top.w[TG_ROLE_VALUE_W], A, C, 1, false, false, lm);
}

tg_status tg_pass_backward(tg_pass *p, const float *dlogp, const float *dentropy,
                           const float *dvalue, tg_error *err) {
    bool lm = dlogp || dentropy, value = dvalue != NULL;
    if (!p->train || !p->n_tokens || (lm && !p->has_lm) || (value && !p->has_value))
        return tg_fail(err, TG_BUG, "pass: backward of what forward did not compute");
    if (!p->n_actions || (!lm && !value)) return TG_OK;
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    int A = p->n_actions, N = p->n_tokens, C = t->arch->width;
    upload_or_clear(p, b->dlogp, dlogp);
    upload_or_clear(p, b->dentropy, dentropy);
    upload_or_clear(p, b->dvalue, dvalue);

    float *dhidden = b->d1, *drows = b->d2;
    heads_backward(p, dhidden, lm, value);
    ops->fill(t->be, drows, 0.0f, (size_t)A * (size_t)C);
    norm_backward(t, &t->top, TG_ROLE_FINAL_W, drows, dhidden, b->rows, b->mean, b->rstd, A);
    ops->fill(t->be, b->dx, 0.0f, (size_t)N * (size_t)C);
    ops->scatter_add_rows(t->be, b->dx, drows, b->act_row, A, C);

    for (int l = t->arch->n_layers - 1; l >= 0; l--) {
        if (t->arch->parallel) ops->copy(t->be, b->dy, b->dx, (size_t)N * (size_t)C);
        mlp_backward(p, l);
        attn_backward(p, l);
    }
    embed_backward(p);
    return TG_OK;
}
