/* The backward half: from dlogp, dentropy, dvalue at the actions down to every parameter's gradient. dx holds the gradient of
 * the residual stream and is updated in place from the last layer to the embedding (pass_backward_layer.c has the layers); the decoder's
 * layers leave the gradient of the encoder's states in dstates, from which the encoder's go on. */
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

void tg_pass_spread_rows(const tg_pass *p, float *to, const float *rows, int width) {
    const tg_ops *ops = p->m->be->ops;
    ops->fill(p->m->be, to, 0.0f, (size_t)p->main.n_tokens * (size_t)width);
    ops->scatter_add_rows(p->m->be, to, rows, p->b.act_row, p->n_actions, width);
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
    rows_backward(t, t->top.g[TG_ROLE_TOKEN_EMBED], dx, s->tokens, N, E, tg_arch_fixed_token(a),
                  kept);
}

/* dx, of the last layer's output, becomes gradients of all that is trained of the stack. */
void tg_pass_stack_backward(tg_pass *p, tg_pass_stack *s) {
    const tg_trunk *t = &s->trunk;
    const tg_ops *ops = t->be->ops;
    const int distances = 2 * t->reach + 1, H = t->arch.n_heads;
    if (t->dbias) ops->fill(t->be, t->dbias, 0.0f, (size_t)distances * (size_t)H);
    for (int l = t->arch.n_layers - 1; l >= s->lowest; l--) {
        if (p->recompute && s->held != l) tg_pass_layer(p, s, s->held = l, true);
        tg_pass_layer_backward(p, s, l);
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
        tg_pass_spread_rows(p, b->dx, drows, C);
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
