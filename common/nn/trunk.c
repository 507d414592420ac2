/* Transformer layers:  mid = x + attention(norm1(x)),  out = mid + mlp(norm2(mid)); parallel: out = x + attention(norm1(x)) +
 * mlp(norm2(x)). What is added may be normalised itself. */
#include "common/nn/trunk.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/positions.h"

#include <math.h>

tg_status tg_trunk_init(tg_trunk *t, const tg_model *m, tg_error *err) {
    *t = (tg_trunk){.be = m->be, .arch = &m->arch};
    t->layers = tg_alloc_array((size_t)m->arch.n_layers, sizeof *t->layers);
    if (!t->layers) return tg_fail_nomem(err, (size_t)m->arch.n_layers * sizeof *t->layers);
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        tg_tensors *at = p->layer < 0 ? &t->top : &t->layers[p->layer];
        at->w[p->role] = m->data + p->offset;
        at->g[p->role] = m->grad ? m->grad + p->offset : NULL;
    }
    if (m->arch.tied_head) {
        t->top.w[TG_ROLE_HEAD_W] = t->top.w[TG_ROLE_TOKEN_EMBED];
        t->top.g[TG_ROLE_HEAD_W] = t->top.g[TG_ROLE_TOKEN_EMBED];
    }
    return TG_OK;
}

void tg_trunk_fini(tg_trunk *t) {
    tg_free(t->layers);
    *t = (tg_trunk){0};
}

tg_heads tg_trunk_heads(const tg_arch *a) {
    int D = a->head_dim, HD = tg_trunk_attn_width(a), stride = tg_trunk_qkv_width(a);
    if (a->qkv_by_head) return (tg_heads){D, 2 * D, 3 * D, stride};
    return (tg_heads){HD, HD + a->n_kv_heads * D, D, stride};
}

tg_attn_dims tg_trunk_attn(const tg_trunk *t, int layer) {
    const tg_arch *a = t->arch;
    double scale = a->unscaled_attn ? 1.0 : 1.0 / sqrt((double)a->head_dim);
    if (a->attn_scale > 0) scale = (double)a->attn_scale;
    if (a->layer_scaled_attn) scale /= layer + 1;
    bool local = a->local_layers[layer / 64] >> layer % 64 & 1;
    int step = tg_trunk_heads(a).step;
    return (tg_attn_dims){.H = a->n_heads,
                          .G = a->n_kv_heads,
                          .D = a->head_dim,
                          .scale = (float)scale,
                          .causal = true,
                          .q_step = step,
                          .kv_step = step,
                          .window = local ? a->window : 0,
                          .softcap = a->attn_softcap,
                          .slopes = t->slopes};
}

void tg_trunk_norm(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                   float *mean, float *rstd, const float *x, int N) {
    const tg_arch *a = t->arch;
    int C = a->width;
    if (a->norm == TG_NORM_RMS)
        t->be->ops->rmsnorm_forward(t->be, y, rstd, x, p->w[role], a->norm_eps,
                                    (tg_rms_dims){N, 1, C, C, C, a->norm_offset});
    else
        t->be->ops->layernorm_forward(t->be, y, mean, rstd, x, p->w[role], p->w[role + 1], N, C,
                                      a->norm_eps);
}

void tg_trunk_linear(const tg_trunk *t, const tg_tensors *p, tg_param_role role, float *y,
                     const float *x, int N, int out, int in, bool accumulate) {
    t->be->ops->matmul(t->be, y, x, p->w[role], N, out, in, false, t->arch->out_in, accumulate);
    if (p->w[role + 1]) t->be->ops->bias_forward(t->be, y, p->w[role + 1], N, out);
}

void tg_trunk_embed(const tg_trunk *t, float *x, const tg_embed_acts *e, const int32_t *tokens,
                    const int32_t *positions, int N) {
    const tg_ops *ops = t->be->ops;
    const tg_arch *a = t->arch;
    float *y = a->embed_norm ? e->raw : x;
    ops->embed_forward(t->be, y, t->top.w[TG_ROLE_TOKEN_EMBED], tokens, N, a->width, false);
    if (a->embed_scale > 0) ops->scale(t->be, y, a->embed_scale, (size_t)N * (size_t)a->width);
    if (t->top.w[TG_ROLE_POS_EMBED])
        ops->embed_forward(t->be, y, t->top.w[TG_ROLE_POS_EMBED], positions, N, a->width, true);
    if (a->embed_norm)
        tg_trunk_norm(t, &t->top, TG_ROLE_EMBED_NORM_W, x, e->mean, e->rstd, e->raw, N);
}

void tg_trunk_rope(const tg_trunk *t, float *qkv, const int32_t *positions, int N, bool inverse) {
    const tg_arch *a = t->arch;
    if (!a->rope.dims) return;
    tg_heads at = tg_trunk_heads(a);
    tg_rope_dims d = {N, a->n_heads, at.stride, at.step, a->rope.dims, a->rope.pairs, inverse};
    if (!a->qkv_by_head) d.H += a->n_kv_heads; /* keys lie behind the queries */
    t->be->ops->rope(t->be, qkv, positions, t->rope, d);
    if (a->qkv_by_head) t->be->ops->rope(t->be, qkv + at.k, positions, t->rope, d);
}

tg_rms_dims tg_trunk_head_norm(const tg_arch *a, int N, int heads) {
    tg_heads at = tg_trunk_heads(a);
    return (tg_rms_dims){N, heads, a->head_dim, at.stride, at.step, a->norm_offset};
}

void tg_trunk_qkv(const tg_trunk *t, int layer, const tg_acts *a, const int32_t *positions, int N) {
    const tg_tensors *p = &t->layers[layer];
    const tg_ops *ops = t->be->ops;
    const tg_arch *arch = t->arch;
    int Q = tg_trunk_qkv_width(arch), k = tg_trunk_heads(arch).k;
    tg_trunk_norm(t, p, TG_ROLE_NORM1_W, a->norm, a->mean1, a->rstd1, a->x, N);
    tg_trunk_linear(t, p, TG_ROLE_QKV_W, a->qkv, a->norm, N, Q, arch->width, false);
    if (arch->qk_norm) {
        if (a->raw != a->qkv) ops->copy(t->be, a->raw, a->qkv, (size_t)N * (size_t)Q);
        ops->rmsnorm_forward(t->be, a->qkv, a->rstd_q, a->raw, p->w[TG_ROLE_Q_NORM_W],
                             arch->norm_eps, tg_trunk_head_norm(arch, N, arch->n_heads));
        ops->rmsnorm_forward(t->be, a->qkv + k, a->rstd_k, a->raw + k, p->w[TG_ROLE_K_NORM_W],
                             arch->norm_eps, tg_trunk_head_norm(arch, N, arch->n_kv_heads));
    }
    tg_trunk_rope(t, a->qkv, positions, N, false);
}

void tg_trunk_act(const tg_trunk *t, float *act, const float *up, int N) {
    int F = t->arch->mlp_width;
    if (t->arch->gated)
        t->be->ops->gated_forward(t->be, act, up, N, F, t->arch->act);
    else
        t->be->ops->act_forward(t->be, act, up, (size_t)N * (size_t)F, t->arch->act);
}

/* x -> norm -> up -> act. */
static void mlp_inside(const tg_trunk *t, const tg_tensors *p, const tg_acts *a, const float *x,
                       int N) {
    tg_trunk_norm(t, p, tg_trunk_norm2(p), a->norm, a->mean2, a->rstd2, x, N);
    tg_trunk_linear(t, p, TG_ROLE_UP_W, a->up, a->norm, N, tg_trunk_up_width(t->arch),
                    t->arch->width, false);
    tg_trunk_act(t, a->act, a->up, N);
}

void tg_trunk_mix(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_tensors *p = &t->layers[layer];
    const tg_ops *ops = t->be->ops;
    const tg_arch *arch = t->arch;
    int C = arch->width, F = arch->mlp_width, HD = tg_trunk_attn_width(arch);
    size_t n = (size_t)N * (size_t)C;
    if (arch->parallel) mlp_inside(t, p, a, a->x, N);
    if (a->mid != a->x) ops->copy(t->be, a->mid, a->x, n);
    tg_trunk_linear(t, p, TG_ROLE_ATTN_OUT_W, arch->post_norms ? a->post1 : a->mid, a->att, N, C,
                    HD, !arch->post_norms);
    if (arch->post_norms) {
        tg_trunk_norm(t, p, TG_ROLE_POST1_W, a->norm, a->mean3, a->rstd3, a->post1, N);
        ops->add(t->be, a->mid, a->norm, n);
    }
    if (!arch->parallel) mlp_inside(t, p, a, a->mid, N);
    if (a->out != a->mid) ops->copy(t->be, a->out, a->mid, n);
    tg_trunk_linear(t, p, TG_ROLE_DOWN_W, arch->post_norms ? a->post2 : a->out, a->act, N, C, F,
                    !arch->post_norms);
    if (arch->post_norms) {
        tg_trunk_norm(t, p, TG_ROLE_POST2_W, a->norm, a->mean4, a->rstd4, a->post2, N);
        ops->add(t->be, a->out, a->norm, n);
    }
}

void tg_trunk_final(const tg_trunk *t, float *h, float *mean, float *rstd, const float *x, int n) {
    tg_trunk_norm(t, &t->top, TG_ROLE_FINAL_W, h, mean, rstd, x, n);
}

void tg_trunk_logits(const tg_trunk *t, float *logits, const float *h, int n) {
    const tg_ops *ops = t->be->ops;
    int V = t->arch->vocab_size;
    ops->matmul(t->be, logits, h, t->top.w[TG_ROLE_HEAD_W], n, V, t->arch->width, false, true,
                false);
    if (t->top.w[TG_ROLE_HEAD_B]) ops->bias_forward(t->be, logits, t->top.w[TG_ROLE_HEAD_B], n, V);
    if (t->arch->logit_softcap > 0)
        ops->softcap(t->be, logits, t->arch->logit_softcap, (size_t)n * (size_t)V);
}

static void *carve(tg_carve *c, size_t bytes) {
    enum { ALIGN = 64 };
    char *at = c->base ? c->base + c->used : NULL;
    c->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

float *tg_carve_f32(tg_carve *c, size_t rows, size_t columns) {
    return carve(c, rows * columns * sizeof(float));
}

int32_t *tg_carve_i32(tg_carve *c, size_t n) {
    return carve(c, n * sizeof(int32_t));
}

void tg_carve_shared_acts(tg_carve *c, const tg_arch *arch, size_t N, tg_acts *a) {
    size_t C = (size_t)arch->width, F = (size_t)arch->mlp_width,
           U = (size_t)tg_trunk_up_width(arch);
    size_t Q = (size_t)tg_trunk_qkv_width(arch), HD = (size_t)tg_trunk_attn_width(arch);
    a->x = a->mid = a->out = tg_carve_f32(c, N, C);
    a->mean1 = a->mean2 = a->mean3 = a->mean4 = tg_carve_f32(c, N, 1);
    a->rstd1 = a->rstd2 = a->rstd3 = a->rstd4 = tg_carve_f32(c, N, 1);
    a->lse = tg_carve_f32(c, N, (size_t)arch->n_heads);
    a->rstd_q = a->rstd_k = a->lse; /* attention writes lse when they are used up */
    a->norm = a->att =
        tg_carve_f32(c, N, TG_MAX(C, HD)); /* the norm is used up when attention writes */
    if (arch->parallel) a->norm = tg_carve_f32(c, N, C); /* but not before the MLP's is made */
    a->post1 = a->post2 = arch->post_norms ? tg_carve_f32(c, N, C) : NULL;
    a->qkv = a->raw = a->up = a->act = tg_carve_f32(c, N, TG_MAX(Q, U));
    if (arch->gated) a->act = tg_carve_f32(c, N, F);
}

void tg_carve_tables(tg_carve *c, const tg_arch *arch, int positions, tg_trunk *t) {
    t->rope = t->slopes = NULL;
    if (arch->rope.dims) t->rope = tg_carve_f32(c, (size_t)positions, (size_t)arch->rope.dims);
    if (arch->alibi) t->slopes = tg_carve_f32(c, (size_t)arch->n_heads, 1);
}

tg_status tg_trunk_fill_tables(tg_trunk *t, int positions, tg_error *err) {
    const tg_arch *arch = t->arch;
    size_t angles = t->rope ? (size_t)positions * (size_t)arch->rope.dims : 0;
    size_t n = TG_MAX(angles, (size_t)arch->n_heads);
    if (!t->rope && !t->slopes) return TG_OK;
    float *host = tg_alloc_array(n, sizeof *host);
    if (!host) return tg_fail_nomem(err, n * sizeof *host);
    if (t->rope) {
        tg_rope_table(&arch->rope, positions, host);
        tg_backend_upload(t->be, t->rope, host, angles * sizeof *host);
    }
    if (t->slopes) {
        tg_alibi_slopes(arch->n_heads, host);
        tg_backend_upload(t->be, t->slopes, host, (size_t)arch->n_heads * sizeof *host);
    }
    tg_free(host);
    return TG_OK;
}
