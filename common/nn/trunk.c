/* Pre-norm transformer layers:  mid = x + attention(norm1(x)),  out = mid + mlp(norm2(mid)). Linear weights are (inputs, outputs). */
#include "common/nn/trunk.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

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

tg_attn_dims tg_trunk_attn(const tg_arch *a, int layer) {
    double scale = a->unscaled_attn ? 1.0 : 1.0 / sqrt((double)a->head_dim);
    if (a->layer_scaled_attn) scale /= layer + 1;
    return (tg_attn_dims){.H = a->n_heads,
                          .G = a->n_kv_heads,
                          .D = a->head_dim,
                          .scale = (float)scale,
                          .causal = true};
}

void tg_trunk_embed(const tg_trunk *t, float *x, const int32_t *tokens, const int32_t *positions,
                    int N) {
    const tg_ops *ops = t->be->ops;
    ops->embed_forward(t->be, x, t->top.w[TG_ROLE_TOKEN_EMBED], tokens, N, t->arch->width, false);
    ops->embed_forward(t->be, x, t->top.w[TG_ROLE_POS_EMBED], positions, N, t->arch->width, true);
}

/* y (N,out) = x (N,in) w + b, or += when accumulate. */
static void linear(const tg_trunk *t, float *y, const float *x, const float *w, const float *b,
                   int N, int out, int in, bool accumulate) {
    t->be->ops->matmul(t->be, y, x, w, N, out, in, false, false, accumulate);
    t->be->ops->bias_forward(t->be, y, b, N, out);
}

void tg_trunk_qkv(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_tensors *p = &t->layers[layer];
    int C = t->arch->width;
    t->be->ops->layernorm_forward(t->be, a->norm, a->mean1, a->rstd1, a->x, p->w[TG_ROLE_NORM1_W],
                                  p->w[TG_ROLE_NORM1_B], N, C, t->arch->norm_eps);
    linear(t, a->qkv, a->norm, p->w[TG_ROLE_QKV_W], p->w[TG_ROLE_QKV_B], N,
           tg_trunk_qkv_width(t->arch), C, false);
}

void tg_trunk_mix(const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const tg_tensors *p = &t->layers[layer];
    const tg_ops *ops = t->be->ops;
    int C = t->arch->width, F = t->arch->mlp_width;
    size_t n = (size_t)N * (size_t)C;
    if (a->mid != a->x) ops->copy(t->be, a->mid, a->x, n);
    linear(t, a->mid, a->att, p->w[TG_ROLE_ATTN_OUT_W], p->w[TG_ROLE_ATTN_OUT_B], N, C,
           tg_trunk_attn_width(t->arch), true);
    ops->layernorm_forward(t->be, a->norm, a->mean2, a->rstd2, a->mid, p->w[TG_ROLE_NORM2_W],
                           p->w[TG_ROLE_NORM2_B], N, C, t->arch->norm_eps);
    linear(t, a->up, a->norm, p->w[TG_ROLE_UP_W], p->w[TG_ROLE_UP_B], N, F, C, false);
    ops->act_forward(t->be, a->act, a->up, (size_t)N * (size_t)F, TG_ACT_GELU_TANH);
    if (a->out != a->mid) ops->copy(t->be, a->out, a->mid, n);
    linear(t, a->out, a->act, p->w[TG_ROLE_DOWN_W], p->w[TG_ROLE_DOWN_B], N, C, F, true);
}

void tg_trunk_final(const tg_trunk *t, float *h, float *mean, float *rstd, const float *x, int n) {
    t->be->ops->layernorm_forward(t->be, h, mean, rstd, x, t->top.w[TG_ROLE_FINAL_W],
                                  t->top.w[TG_ROLE_FINAL_B], n, t->arch->width, t->arch->norm_eps);
}

void tg_trunk_logits(const tg_trunk *t, float *logits, const float *h, int n) {
    t->be->ops->matmul(t->be, logits, h, t->top.w[TG_ROLE_HEAD_W], n, t->arch->vocab_size,
                       t->arch->width, false, true, false);
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
    size_t C = (size_t)arch->width, F = (size_t)arch->mlp_width;
    size_t Q = (size_t)tg_trunk_qkv_width(arch), HD = (size_t)tg_trunk_attn_width(arch);
    a->x = a->mid = a->out = tg_carve_f32(c, N, C);
    a->mean1 = a->mean2 = tg_carve_f32(c, N, 1);
    a->rstd1 = a->rstd2 = tg_carve_f32(c, N, 1);
    a->lse = tg_carve_f32(c, N, (size_t)arch->n_heads);
    a->norm = a->att =
        tg_carve_f32(c, N, TG_MAX(C, HD)); /* the norm is used up when attention writes */
    a->qkv = a->up = a->act = tg_carve_f32(c, N, TG_MAX(Q, F));
}
