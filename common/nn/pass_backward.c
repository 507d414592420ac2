/* The backward half: from dlogp, dentropy, dvalue at the actions down to every parameter's gradient. dx holds the gradient of
 * the residual stream and is updated in place from the last layer to the embedding. Outputs of norms and of the activation
 * function are made again from what forward kept: they cost little time and would be a third of the memory. */
#include "common/nn/pass_state.h"

/* For y = x w + b:  dw += x^T dy,  db += sum dy,  dx (N,in) = dy w^T. */
static void linear_backward(const tg_trunk *t, float *dx, float *dw, float *db, const float *dy,
                            const float *x, const float *w, int N, int out, int in) {
    const tg_ops *ops = t->be->ops;
    ops->matmul(t->be, dw, x, dy, in, out, N, true, false, true);
    ops->bias_backward(t->be, db, dy, N, out);
    ops->matmul(t->be, dx, dy, w, N, in, out, false, true, false);
}

/* norm = layernorm(x) made again, for the weight gradient of the linear map behind it. */
static void norm_again(const tg_trunk *t, float *norm, float *mean, float *rstd, const float *x,
                       const float *w, const float *b, int N) {
    t->be->ops->layernorm_forward(t->be, norm, mean, rstd, x, w, b, N, t->arch->width,
                                  t->arch->norm_eps);
}

/* out = mid + gelu(norm2(mid) Wu + bu) Wd + bd:  dx (of out) becomes dx (of mid). */
static void mlp_backward(tg_pass *p, int layer) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &p->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    int N = p->n_tokens, C = t->arch->width, F = t->arch->mlp_width;
    size_t nf = (size_t)N * (size_t)F;
    ops->act_forward(t->be, b->wide, a->up, nf, TG_ACT_GELU_TANH);
    ops->matmul(t->be, q->g[TG_ROLE_DOWN_W], b->wide, b->dx, F, C, N, true, false, true);
    ops->bias_backward(t->be, q->g[TG_ROLE_DOWN_B], b->dx, N, C);
    ops->matmul(t->be, b->wide, b->dx, q->w[TG_ROLE_DOWN_W], N, F, C, false, true, false);
    ops->act_backward(t->be, b->wide, b->wide, a->up, nf, TG_ACT_GELU_TANH);
    norm_again(t, b->d1, a->mean2, a->rstd2, a->mid, q->w[TG_ROLE_NORM2_W], q->w[TG_ROLE_NORM2_B],
               N);
    linear_backward(t, b->d2, q->g[TG_ROLE_UP_W], q->g[TG_ROLE_UP_B], b->wide, b->d1,
                    q->w[TG_ROLE_UP_W], N, F, C);
    ops->layernorm_backward(t->be, b->dx, q->g[TG_ROLE_NORM2_W], q->g[TG_ROLE_NORM2_B], b->d2,
                            a->mid, a->mean2, a->rstd2, q->w[TG_ROLE_NORM2_W], N, C);
}

/* mid = x + attention(norm1(x) Wq + bq) Wo + bo:  dx (of mid) becomes dx (of x). */
static void attn_backward(tg_pass *p, int layer) {
    const tg_trunk *t = &p->trunk;
    const tg_ops *ops = t->be->ops;
    const tg_acts *a = &p->layers[layer];
    const tg_tensors *q = &t->layers[layer];
    const tg_pass_buffers *b = &p->b;
    int N = p->n_tokens, C = t->arch->width, Q = tg_trunk_qkv_width(t->arch);
    int HD = tg_trunk_attn_width(t->arch), v = HD + t->arch->n_kv_heads * t->arch->head_dim;
    float *datt = b->d1, *dqkv = b->wide;
    linear_backward(t, datt, q->g[TG_ROLE_ATTN_OUT_W], q->g[TG_ROLE_ATTN_OUT_B], b->dx, a->att,
                    q->w[TG_ROLE_ATTN_OUT_W], N, C, HD);
    ops->fill(t->be, dqkv, 0.0f, (size_t)N * (size_t)Q);
    ops->attention_backward(t->be, dqkv, dqkv + HD, dqkv + v, datt, a->att, a->lse, a->qkv,
                            a->qkv + HD, a->qkv + v, Q, b->offsets, p->n_seqs,
                            tg_trunk_attn(t->arch, layer));
    norm_again(t, b->d1, a->mean1, a->rstd1, a->x, q->w[TG_ROLE_NORM1_W], q->w[TG_ROLE_NORM1_B], N);
    linear_backward(t, b->d2, q->g[TG_ROLE_QKV_W], q->g[TG_ROLE_QKV_B], dqkv, b->d1,
                    q->w[TG_ROLE_QKV_W], N, Q, C);
    ops->layernorm_backward(t->be, b->dx, q->g[TG_ROLE_NORM1_W], q->g[TG_ROLE_NORM1_B], b->d2, a->x,
                            a->mean1, a->rstd1, q->w[TG_ROLE_NORM1_W], N, C);
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
                           C, t->arch->vocab_size);
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
    ops->layernorm_backward(t->be, drows, t->top.g[TG_ROLE_FINAL_W], t->top.g[TG_ROLE_FINAL_B],
                            dhidden, b->rows, b->mean, b->rstd, t->top.w[TG_ROLE_FINAL_W], A, C);
    ops->fill(t->be, b->dx, 0.0f, (size_t)N * (size_t)C);
    ops->scatter_add_rows(t->be, b->dx, drows, b->act_row, A, C);

    for (int l = t->arch->n_layers - 1; l >= 0; l--) {
        mlp_backward(p, l);
        attn_backward(p, l);
    }
    ops->embed_backward(t->be, t->top.g[TG_ROLE_TOKEN_EMBED], b->dx, b->tokens, N, C);
    ops->embed_backward(t->be, t->top.g[TG_ROLE_POS_EMBED], b->dx, b->positions, N, C);
    return TG_OK;
}
