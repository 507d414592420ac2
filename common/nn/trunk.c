/* Transformer layers:  mid = x + attention(norm1(x)),  out = mid + mlp(norm2(mid)); parallel: out = x + attention(norm1(x)) +
 * mlp(norm2(x)). What is added may be normalised itself, or the sum in place of what the branch reads. */
#include "common/nn/trunk.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/packed.h"

#include <math.h>

static void find_tensor(tg_tensors *at, const tg_param *p, const tg_model *m) {
    bool trained = m->grad && p->grad_offset != TG_PARAM_FROZEN;
    at->w[p->role] = m->data + p->offset;
    at->g[p->role] = trained ? m->grad + p->grad_offset : NULL;
}

/* Layers that share sets of parameters, which lie at the sets' numbers. From the last layer on, so that no set is overwritten before it
 * was read. */
static void share_layers(tg_trunk *t) {
    if (!t->arch.n_groups) return;
    const int inner = TG_MAX(t->arch.inner_group, 1), groups = t->arch.n_groups / inner;
    const int blocks = t->arch.n_layers / inner;
    const double per_group = (double)blocks / groups; /* as transformers has it */
    for (int l = t->arch.n_layers - 1; l >= 0; l--) {
        const int block = l / inner;
        t->layers[l] = t->layers[(int)(block / per_group) * inner + l % inner];
    }
}

tg_status tg_trunk_init(tg_trunk *t, const tg_model *m, tg_stack stack, tg_error *err) {
    *t = (tg_trunk){.be = m->be,
                    .arch = stack == TG_STACK_ENCODER ? tg_arch_encoder(&m->arch) : m->arch};
    t->layers = tg_alloc_array((size_t)t->arch.n_layers, sizeof *t->layers);
    if (!t->layers) return tg_fail_nomem(err, (size_t)t->arch.n_layers * sizeof *t->layers);
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        bool shared = stack == TG_STACK_ENCODER && p->role == TG_ROLE_TOKEN_EMBED;
        if (p->stack == stack)
            find_tensor(p->layer < 0 ? &t->top : &t->layers[p->layer], p, m);
        else if (shared && !t->top.w[p->role])
            find_tensor(&t->top, p, m); /* the main stack's */
    }
    share_layers(t);
    if (m->arch.tied_head) {
        t->top.w[TG_ROLE_HEAD_W] = t->top.w[TG_ROLE_TOKEN_EMBED];
        t->top.g[TG_ROLE_HEAD_W] = t->top.g[TG_ROLE_TOKEN_EMBED];
    }
    if (m->half && stack == TG_STACK_MAIN) tg_packed_half(t, m->half);
    return TG_OK;
}

void tg_trunk_fini(tg_trunk *t) {
    tg_free(t->layers);
    tg_free(t->own_host);
    *t = (tg_trunk){0};
}

tg_heads tg_trunk_heads(const tg_arch *a) {
    int D = a->head_dim, HD = tg_trunk_attn_width(a), stride = tg_trunk_qkv_width(a);
    if (a->qkv_by_head) return (tg_heads){D, 2 * D, 3 * D, stride};
    return (tg_heads){HD, HD + a->n_kv_heads * D, D, stride};
}

static double score_scale(const tg_arch *a) {
    if (a->attn_scale > 0) return (double)a->attn_scale;
    return a->unscaled_attn ? 1.0 : 1.0 / sqrt((double)a->head_dim);
}

tg_attn_dims tg_trunk_attn(const tg_trunk *t, int layer) {
    const tg_arch *a = &t->arch;
    double scale = score_scale(a);
    if (a->layer_scaled_attn) scale /= layer + 1;
    int step = tg_trunk_heads(a).step;
    return (tg_attn_dims){.H = a->n_heads,
                          .G = a->n_kv_heads,
                          .D = a->head_dim,
                          .scale = (float)scale,
                          .causal = a->kind != TG_KIND_ENCODER,
                          .q_step = step,
                          .kv_step = step,
                          .window = tg_arch_is_local(a, layer) ? a->window : 0,
                          .softcap = a->attn_softcap,
                          .slopes = t->slopes,
                          .bias = t->bias,
                          .dbias = t->dbias,
                          .reach = t->reach};
}

tg_attn_dims tg_trunk_attn_source(const tg_trunk *t, const int32_t *k_begin, const int32_t *k_end,
                                  int kv_stride) {
    const tg_arch *a = &t->arch;
    return (tg_attn_dims){.H = a->n_heads,
                          .G = a->n_kv_heads,
                          .D = a->head_dim,
                          .scale = (float)score_scale(a),
                          .k_begin = k_begin,
                          .k_end = k_end,
                          .kv_stride = kv_stride};
}

void tg_trunk_norm(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                   float *mean, float *rstd, const float *x, int N) {
    const tg_arch *a = &t->arch;
    int C = role == TG_ROLE_EMBED_NORM_W ? tg_trunk_embed_width(a) : a->width;
    if (a->norm == TG_NORM_RMS)
        t->be->ops->rmsnorm_forward(t->be, y, rstd, x, p->w[role], a->norm_eps,
                                    (tg_rms_dims){N, 1, C, C, C, a->norm_offset});
    else
        t->be->ops->layernorm_forward(t->be, y, mean, rstd, x, p->w[role], p->w[role + 1], N, C,
                                      a->norm_eps);
}

tg_weight tg_trunk_weight(const tg_trunk *t, const tg_tensors *p, tg_param_role role, bool out_in) {
    if (p->packed[role]) return (tg_weight){p->packed[role], t->form, false, t->rounded};
    return (tg_weight){p->w[role], TG_WEIGHT_PLAIN, out_in, t->rounded};
}

void tg_trunk_linear(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                     const float *x, int N, int out, int in, bool accumulate) {
    t->be->ops->linear(t->be, y, x, tg_trunk_weight(t, p, role, t->arch.out_in), p->w[role + 1], N,
                       out, in, accumulate);
}

void tg_trunk_bias(const tg_trunk *t) {
    if (!t->bias) return;
    t->be->ops->embed_forward(t->be, t->bias, t->top.w[TG_ROLE_REL_BIAS], t->buckets,
                              2 * t->reach + 1, t->arch.n_heads, false);
}

void tg_trunk_rope(const tg_trunk *t, int layer, float *qkv, const int32_t *positions, int N,
                   bool inverse) {
    const tg_arch *a = &t->arch;
    if (!a->rope.dims) return;
    const bool local = t->local_rope && tg_arch_is_local(a, layer);
    const tg_rope *r = local ? &a->local_rope : &a->rope;
    const float *table = local ? t->local_rope : t->rope;
    tg_heads at = tg_trunk_heads(a);
    tg_rope_dims d = {N, a->n_heads, at.stride, at.step, r->dims, r->pairs, inverse};
    if (!a->qkv_by_head) d.H += a->n_kv_heads; /* keys lie behind the queries */
    t->be->ops->rope(t->be, qkv, positions, table, d);
    if (a->qkv_by_head) t->be->ops->rope(t->be, qkv + at.k, positions, table, d);
}

tg_rms_dims tg_trunk_head_norm(const tg_arch *a, int N, int heads) {
    tg_heads at = tg_trunk_heads(a);
    return (tg_rms_dims){N, heads, a->head_dim, at.stride, at.step, a->norm_offset};
}

tg_branch tg_trunk_branch(const tg_trunk *t, int layer, const tg_acts *a, tg_branch_kind kind) {
    const tg_arch *arch = &t->arch;
    const int HD = tg_trunk_attn_width(arch);
    switch (kind) {
    case TG_BRANCH_ATTN:
        return (tg_branch){.norm = TG_ROLE_NORM1_W,
                           .out = TG_ROLE_ATTN_OUT_W,
                           .post = TG_ROLE_POST1_W,
                           .out_in = HD,
                           .x = a->x,
                           .y = a->mid,
                           .mean = a->mean1,
                           .rstd = a->rstd1,
                           .raw = a->post1,
                           .post_mean = a->mean3,
                           .post_rstd = a->rstd3};
    case TG_BRANCH_CROSS: /* no seq2seq family has post_norms */
        return (tg_branch){.norm = TG_ROLE_CROSS_NORM_W,
                           .out = TG_ROLE_CROSS_OUT_W,
                           .post = TG_N_ROLES,
                           .out_in = HD,
                           .x = a->mid,
                           .y = a->cmid,
                           .mean = a->cmean,
                           .rstd = a->crstd,
                           .raw = a->cpost};
    case TG_BRANCH_MLP:
        return (tg_branch){.norm = tg_trunk_norm2(&t->layers[layer]),
                           .out = TG_ROLE_DOWN_W,
                           .post = TG_ROLE_POST2_W,
                           .out_in = arch->mlp_width,
                           .x = arch->parallel ? a->x : a->cmid,
                           .y = a->out,
                           .mean = a->mean2,
                           .rstd = a->rstd2,
                           .raw = a->post2,
                           .post_mean = a->mean4,
                           .post_rstd = a->rstd4};
    }
    TG_UNREACHABLE();
}

/* What the branch reads: its norm of x, made in `norm`, or x. */
static const float *enter(const tg_trunk *t, int layer, const tg_branch *b, float *norm, int N) {
    if (t->arch.norm_after) return b->x;
    tg_trunk_norm(t, &t->layers[layer], b->norm, norm, b->mean, b->rstd, b->x, N);
    return norm;
}

void tg_trunk_qkv(const tg_trunk *t, int layer, const tg_acts *a, const int32_t *positions, int N) {
    const tg_tensors *p = &t->layers[layer];
    const tg_ops *ops = t->be->ops;
    const tg_arch *arch = &t->arch;
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_ATTN);
    int Q = tg_trunk_qkv_width(arch), k = tg_trunk_heads(arch).k;
    const float *in = enter(t, layer, &b, a->norm, N);
    tg_trunk_linear(t, p, TG_ROLE_QKV_W, a->qkv, in, N, Q, arch->width, false);
    if (arch->qk_norm) {
        if (a->raw != a->qkv) ops->copy(t->be, a->raw, a->qkv, (size_t)N * (size_t)Q);
        ops->rmsnorm_forward(t->be, a->qkv, a->rstd_q, a->raw, p->w[TG_ROLE_Q_NORM_W],
                             arch->norm_eps, tg_trunk_head_norm(arch, N, arch->n_heads));
        ops->rmsnorm_forward(t->be, a->qkv + k, a->rstd_k, a->raw + k, p->w[TG_ROLE_K_NORM_W],
                             arch->norm_eps, tg_trunk_head_norm(arch, N, arch->n_kv_heads));
    }
    tg_trunk_rope(t, layer, a->qkv, positions, N, false);
}

void tg_trunk_act(const tg_trunk *t, float *act, const float *up, int N) {
    int F = t->arch.mlp_width;
    if (t->arch.gated)
        t->be->ops->gated_forward(t->be, act, up, N, F, t->arch.act);
    else
        t->be->ops->act_forward(t->be, act, up, (size_t)N * (size_t)F, t->arch.act);
}

/* b->y from b->x (`from`) and what the branch's last matrix reads. */
static void leave(const tg_trunk *t, int layer, const tg_branch *b, const float *from,
                  const float *inside, float *norm, int N) {
    const tg_tensors *p = &t->layers[layer];
    const tg_ops *ops = t->be->ops;
    const tg_arch *arch = &t->arch;
    const size_t n = (size_t)N * (size_t)arch->width;
    float *sum = arch->norm_after ? b->raw : b->y;
    if (arch->norm_stream) from = norm; /* of what the branch read */
    if (sum != from) ops->copy(t->be, sum, from, n);
    if (arch->post_norms) {
        tg_trunk_linear(t, p, b->out, b->raw, inside, N, arch->width, b->out_in, false);
        tg_trunk_norm(t, p, b->post, norm, b->post_mean, b->post_rstd, b->raw, N);
        ops->add(t->be, b->y, norm, n);
        return;
    }
    tg_trunk_linear(t, p, b->out, sum, inside, N, arch->width, b->out_in, true);
    if (arch->norm_after) tg_trunk_norm(t, p, b->norm, b->y, b->mean, b->rstd, sum, N);
}

void tg_trunk_up(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_MLP);
    const float *in = enter(t, layer, &b, a->norm, N);
    tg_trunk_linear(t, &t->layers[layer], TG_ROLE_UP_W, a->up, in, N, tg_trunk_up_width(&t->arch),
                    t->arch.width, false);
}

/* x -> norm -> up -> act. */
static void mlp_inside(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    tg_trunk_up(t, layer, a, N);
    tg_trunk_act(t, a->act, a->up, N);
}

/* Parallel: the MLP reads x, which may lie where mid is written. */
void tg_trunk_mix(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_ATTN);
    if (t->arch.parallel) mlp_inside(t, layer, a, N);
    leave(t, layer, &b, b.x, a->att, a->norm, N);
}

void tg_trunk_query(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_CROSS);
    const float *in = enter(t, layer, &b, a->norm, N);
    tg_trunk_linear(t, &t->layers[layer], TG_ROLE_CROSS_Q_W, a->cq, in, N,
                    tg_trunk_attn_width(&t->arch), t->arch.width, false);
}

void tg_trunk_cross(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_CROSS);
    leave(t, layer, &b, b.x, a->catt, a->norm, N);
}

void tg_trunk_mlp(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_branch b = tg_trunk_branch(t, layer, a, TG_BRANCH_MLP);
    if (!t->arch.parallel) mlp_inside(t, layer, a, N);
    leave(t, layer, &b, t->arch.parallel ? a->mid : b.x, a->act, a->norm, N);
}

void tg_trunk_final(const tg_trunk *t, float *h, float *mean, float *rstd, const float *x, int n) {
    if (t->top.w[TG_ROLE_FINAL_W])
        tg_trunk_norm(t, &t->top, TG_ROLE_FINAL_W, h, mean, rstd, x, n);
    else
        t->be->ops->copy(t->be, h, x, (size_t)n * (size_t)t->arch.width);
}

void *tg_carve_bytes(tg_carve *c, size_t bytes) {
    enum { ALIGN = 64 };
    char *at = c->base ? c->base + c->used : NULL;
    c->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

float *tg_carve_f32(tg_carve *c, size_t rows, size_t columns) {
    return tg_carve_bytes(c, rows * columns * sizeof(float));
}

int32_t *tg_carve_i32(tg_carve *c, size_t n) {
    return tg_carve_bytes(c, n * sizeof(int32_t));
}

void tg_carve_shared_acts(tg_carve *c, const tg_arch *arch, size_t N, tg_acts *a) {
    size_t C = (size_t)arch->width, F = (size_t)arch->mlp_width,
           U = (size_t)tg_trunk_up_width(arch);
    size_t Q = (size_t)tg_trunk_qkv_width(arch), HD = (size_t)tg_trunk_attn_width(arch);
    a->x = a->mid = a->cmid = a->out = tg_carve_f32(c, N, C);
    a->mean1 = a->mean2 = a->mean3 = a->mean4 = a->cmean = tg_carve_f32(c, N, 1);
    a->rstd1 = a->rstd2 = a->rstd3 = a->rstd4 = a->crstd = tg_carve_f32(c, N, 1);
    a->lse = a->clse = tg_carve_f32(c, N, (size_t)arch->n_heads);
    a->rstd_q = a->rstd_k = a->lse; /* attention writes lse when they are used up */
    a->norm = a->att = a->catt =
        tg_carve_f32(c, N, TG_MAX(C, HD));   /* the norm is used up when attention writes */
    if (arch->parallel || arch->norm_stream) /* but not before the MLP's is made, or it is added */
        a->norm = tg_carve_f32(c, N, C);
    a->post1 = a->post2 = a->cpost = arch->post_norms ? tg_carve_f32(c, N, C) : a->x;
    size_t wide =
        TG_MAX(TG_MAX(Q, U), (size_t)tg_trunk_embed_width(arch)); /* decoders embed there */
    a->qkv = a->raw = a->cq = a->up = a->act = tg_carve_f32(c, N, wide);
    if (arch->gated) a->act = tg_carve_f32(c, N, F);
}
