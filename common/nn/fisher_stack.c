/* Tangents through a stack of layers, in step with trunk.c. The Jacobian of a norm without its gain is symmetric, so that its tangent
 * is what backward computes with a gain of 1; an activation function's tangent is its backward. */
#include "common/nn/fisher_state.h"

void tg_fisher_norm(const tg_fisher *f, const tg_trunk *t, const tg_tensors *q,
                    const tg_tensors *qv, tg_param_role role, float *ty, const float *tx,
                    const float *x, const float *mean, const float *rstd, int N) {
    const tg_arch *a = &t->arch;
    const tg_ops *ops = t->be->ops;
    const int C = role == TG_ROLE_EMBED_NORM_W ? tg_trunk_embed_width(a) : a->width;
    const size_t n = (size_t)N * (size_t)C;
    tg_rms_dims plain = {N, 1, C, C, C, 0}, gain = plain;
    if (a->norm == TG_NORM_RMS) {
        gain.offset = a->norm_offset;
        ops->rmsnorm_backward(t->be, ty, NULL, tx, x, rstd, f->ones, false, plain);
        ops->rmsnorm_forward(t->be, f->made, f->unused, x, qv->w[role], a->norm_eps, plain);
    } else {
        ops->fill(t->be, ty, 0.0f, n);
        ops->layernorm_backward(t->be, ty, NULL, NULL, tx, x, mean, rstd, f->ones, N, C);
        if (!qv->w[role]) return; /* there is no gain */
        ops->layernorm_forward(t->be, f->made, f->unused, f->unused + N, x, qv->w[role],
                               qv->w[role + 1], N, C, a->norm_eps);
    }
    ops->mul_heads(t->be, ty, q->w[role], gain);
    ops->add(t->be, ty, f->made, n);
}

void tg_fisher_linear(const tg_trunk *t, const tg_trunk *tv, int layer, tg_param_role role,
                      float *ty, const float *tx, const float *x, int N, int out, int in,
                      bool accumulate) {
    const tg_tensors *q = layer < 0 ? &t->top : &t->layers[layer];
    const tg_tensors *qv = layer < 0 ? &tv->top : &tv->layers[layer];
    t->be->ops->linear(t->be, ty, tx, tg_trunk_weight(t, q, role, t->arch.out_in), NULL, N, out, in,
                       accumulate);
    tg_trunk_linear(tv, qv, role, ty, x, N, out, in, true);
}

typedef struct reads { /* what a branch reads, and its tangent */
    const float *value, *tangent;
} reads;

static reads enter(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer,
                   const tg_branch *b, const float *tx) {
    const tg_trunk *t = &s->trunk;
    const tg_tensors *q = &t->layers[layer];
    if (t->arch.norm_after) return (reads){b->x, tx};
    tg_trunk_norm(t, q, b->norm, f->in, b->mean, b->rstd, b->x, s->n_tokens);
    tg_fisher_norm(f, t, q, &tv->layers[layer], b->norm, f->tin, tx, b->x, b->mean, b->rstd,
                   s->n_tokens);
    if (t->arch.norm_stream)
        t->be->ops->copy(t->be, f->tx, f->tin, (size_t)s->n_tokens * (size_t)t->arch.width);
    return (reads){f->in, f->tin};
}

/* f->tx of the stream behind the branch, from that before it and what the branch's last matrix reads. */
static void leave(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer,
                  const tg_branch *b, const float *inside, const float *tinside) {
    const tg_trunk *t = &s->trunk;
    const tg_tensors *q = &t->layers[layer], *qv = &tv->layers[layer];
    const tg_ops *ops = t->be->ops;
    const int N = s->n_tokens, C = t->arch.width;
    const size_t n = (size_t)N * (size_t)C;
    if (t->arch.post_norms) {
        tg_fisher_linear(t, tv, layer, b->out, f->in, tinside, inside, N, C, b->out_in, false);
        tg_fisher_norm(f, t, q, qv, b->post, f->tin, f->in, b->raw, b->post_mean, b->post_rstd, N);
        ops->add(t->be, f->tx, f->tin, n);
        return;
    }
    tg_fisher_linear(t, tv, layer, b->out, f->tx, tinside, inside, N, C, b->out_in, true);
    if (!t->arch.norm_after) return;
    tg_fisher_norm(f, t, q, qv, b->norm, f->tin, f->tx, b->raw, b->mean, b->rstd, N);
    ops->copy(t->be, f->tx, f->tin, n);
}

/* The norm of query or key heads, at `at` of a row; in place. */
static void head_norm(tg_fisher *f, const tg_trunk *t, const float *gain, const float *tgain,
                      float *tqkv, const float *raw, const float *rstd, int heads, int N) {
    const tg_ops *ops = t->be->ops;
    const tg_rms_dims d = tg_trunk_head_norm(&t->arch, N, heads);
    tg_rms_dims plain = d;
    plain.offset = 0;
    ops->rmsnorm_backward(t->be, tqkv, NULL, tqkv, raw, rstd, f->ones, false, plain);
    ops->mul_heads(t->be, tqkv, gain, d);
    ops->rmsnorm_forward(t->be, f->made, f->unused, raw, tgain, t->arch.norm_eps, plain);
}

static void qk_norms(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer) {
    const tg_trunk *t = &s->trunk;
    const tg_arch *arch = &t->arch;
    const tg_acts *a = &s->layers[layer];
    const tg_tensors *q = &t->layers[layer], *qv = &tv->layers[layer];
    const int N = s->n_tokens, k = tg_trunk_heads(arch).k;
    const size_t n = (size_t)N * (size_t)tg_trunk_qkv_width(arch);
    t->be->ops->fill(t->be, f->made, 0.0f, n);
    head_norm(f, t, q->w[TG_ROLE_Q_NORM_W], qv->w[TG_ROLE_Q_NORM_W], f->twide, a->raw, a->rstd_q,
              arch->n_heads, N);
    t->be->ops->add(t->be, f->twide, f->made, n);
    t->be->ops->fill(t->be, f->made, 0.0f, n);
    f->made += k;
    head_norm(f, t, q->w[TG_ROLE_K_NORM_W], qv->w[TG_ROLE_K_NORM_W], f->twide + k, a->raw + k,
              a->rstd_k, arch->n_kv_heads, N);
    f->made -= k;
    t->be->ops->add(t->be, f->twide, f->made, n);
}

static void attention(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer) {
    const tg_trunk *t = &s->trunk;
    const tg_acts *a = &s->layers[layer];
    const tg_heads at = tg_trunk_heads(&t->arch);
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_ATTN);
    const int N = s->n_tokens;
    const reads in = enter(f, s, tv, layer, &b, f->tx);
    tg_fisher_linear(t, tv, layer, TG_ROLE_QKV_W, f->twide, in.tangent, in.value, N, at.stride,
                     t->arch.width, false);
    if (t->arch.qk_norm) qk_norms(f, s, tv, layer);
    tg_trunk_rope(t, layer, f->twide, s->positions, N, false);
    t->be->ops->attention_tangent(
        t->be, f->tatt, (tg_attn_rows){a->qkv, a->qkv + at.k, a->qkv + at.v},
        (tg_attn_rows){f->twide, f->twide + at.k, f->twide + at.v}, t->bias ? f->tbias : NULL,
        a->att, a->lse, at.stride, s->offsets, f->p->n_seqs, tg_trunk_attn(t, layer));
    leave(f, s, tv, layer, &b, a->att, f->tatt);
}

static void source(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer) {
    const tg_trunk *t = &s->trunk;
    const tg_pass *p = f->p;
    const tg_acts *a = &s->layers[layer];
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_CROSS);
    const int C = t->arch.width, HD = tg_trunk_attn_width(&t->arch);
    const int GD = tg_trunk_kv_width(&t->arch);
    const reads in = enter(f, s, tv, layer, &b, f->tx);
    tg_fisher_linear(t, tv, layer, TG_ROLE_CROSS_Q_W, f->tq, in.tangent, in.value, s->n_tokens, HD,
                     C, false);
    tg_fisher_linear(t, tv, layer, TG_ROLE_CROSS_K_W, f->tkv, f->tstates, p->b.states,
                     p->enc.n_tokens, 2 * GD, C, false);
    t->be->ops->attention_tangent(t->be, f->tatt, (tg_attn_rows){a->cq, a->ckv, a->ckv + GD},
                                  (tg_attn_rows){f->tq, f->tkv, f->tkv + GD}, NULL, a->catt,
                                  a->clse, HD, s->offsets, p->n_seqs, tg_pass_source(p));
    leave(f, s, tv, layer, &b, a->catt, f->tatt);
}

/* Parallel: the branch reads what attention read, and `from` is the tangent of that. */
static void mlp(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, int layer,
                const float *from) {
    const tg_trunk *t = &s->trunk;
    const tg_acts *a = &s->layers[layer];
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_MLP);
    const int N = s->n_tokens, F = t->arch.mlp_width;
    const reads in = enter(f, s, tv, layer, &b, from);
    tg_fisher_linear(t, tv, layer, TG_ROLE_UP_W, f->twide, in.tangent, in.value, N,
                     tg_trunk_up_width(&t->arch), t->arch.width, false);
    tg_trunk_act(t, f->act, a->up, N);
    if (t->arch.gated)
        t->be->ops->gated_tangent(t->be, f->tact, f->twide, a->up, N, F, t->arch.act);
    else
        t->be->ops->act_backward(t->be, f->tact, f->twide, a->up, (size_t)N * (size_t)F,
                                 t->arch.act);
    leave(f, s, tv, layer, &b, f->act, f->tact);
}

/* As in backward, the word that pads is a constant where it is read: F would not be symmetric otherwise. Its row stays in the
 * direction for an output matrix that is tied to the table. */
static void tables(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv, float *ty) {
    const tg_arch *a = &s->trunk.arch;
    const tg_ops *ops = tv->be->ops;
    const size_t E = (size_t)tg_trunk_embed_width(a);
    const int32_t fixed = tg_arch_fixed_token(a);
    float *pad = fixed >= 0 ? tv->top.w[TG_ROLE_TOKEN_EMBED] + (size_t)fixed * E : NULL;
    if (pad) {
        ops->copy(tv->be, f->made, pad, E);
        ops->fill(tv->be, pad, 0.0f, E);
    }
    tg_trunk_tables(tv, ty, s->tokens, s->embed.types, s->positions, s->n_tokens);
    if (pad) ops->copy(tv->be, pad, f->made, E);
}

/* In step with tg_trunk_embed: linear in the tables and in what widens them; a norm has its own tangent. */
static void embed(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv) {
    const tg_trunk *t = &s->trunk;
    const tg_arch *a = &t->arch;
    const float *tpos = tv->top.w[TG_ROLE_POS_EMBED], *y = s->embed.raw;
    const int N = s->n_tokens;
    float *ty = a->embed_norm || a->narrow_embed ? f->tin : f->tx;
    tables(f, s, tv, ty);
    if (a->embed_norm) {
        ty = a->narrow_embed ? f->in : f->tx;
        tg_fisher_norm(f, t, &t->top, &tv->top, TG_ROLE_EMBED_NORM_W, ty, f->tin, s->embed.raw,
                       s->embed.mean, s->embed.rstd, N);
        y = s->embed.narrow;
    }
    if (a->narrow_embed)
        tg_fisher_linear(t, tv, TG_FISHER_TOP, TG_ROLE_EMBED_IN_W, f->tx, ty, y, N, a->width,
                         a->embed_width, false);
    if (tpos && (a->norm_first || a->wide_positions))
        t->be->ops->embed_forward(t->be, f->tx, tpos, s->positions, N, a->width, true);
}

void tg_fisher_stack(tg_fisher *f, const tg_pass_stack *s, const tg_trunk *tv) {
    const tg_trunk *t = &s->trunk;
    const size_t n = (size_t)s->n_tokens * (size_t)t->arch.width;
    if (t->bias)
        t->be->ops->embed_forward(t->be, f->tbias, tv->top.w[TG_ROLE_REL_BIAS], t->buckets,
                                  2 * t->reach + 1, t->arch.n_heads, false);
    embed(f, s, tv);
    for (int l = 0; l < t->arch.n_layers; l++) {
        if (t->arch.parallel) t->be->ops->copy(t->be, f->branch, f->tx, n);
        attention(f, s, tv, l);
        if (t->arch.kind == TG_KIND_SEQ2SEQ) source(f, s, tv, l);
        mlp(f, s, tv, l, t->arch.parallel ? f->branch : f->tx);
    }
}
