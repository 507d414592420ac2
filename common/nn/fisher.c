/* See fisher.h. The head is taken in panels of the vocabulary, twice: the first time for the mean of the logits' tangents under the
 * distribution, the second for their gradient, which goes on as in any backward. */
#include "common/nn/fisher_state.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

static tg_status check_arch(const tg_arch *a, tg_error *err) {
    if (a->kind == TG_KIND_ENCODER)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s is an encoder: it has no distribution of tokens, so no Fisher matrix",
                       a->family);
    return TG_OK;
}

/* The widest rows of either stack. */
static size_t widest(const tg_arch *a, const tg_arch *e, int (*width)(const tg_arch *)) {
    return (size_t)TG_MAX(width(a), width(e));
}
static int wide_of(const tg_arch *a) {
    return TG_MAX(tg_trunk_qkv_width(a), tg_trunk_up_width(a));
}
static int narrow_of(const tg_arch *a) {
    return TG_MAX(a->width, tg_trunk_embed_width(a));
}
static int made_of(const tg_arch *a) {
    return TG_MAX(narrow_of(a), tg_trunk_qkv_width(a));
}
static int heads_of(const tg_arch *a) {
    return a->n_heads;
}
static int mlp_of(const tg_arch *a) {
    return a->mlp_width;
}

/* reach: of the biases by distance; -1: there are none. */
static void carve(tg_fisher *f, tg_carve *c, const tg_arch *a, tg_pass_caps caps, int reach) {
    const tg_arch e = tg_arch_encoder(a);
    const size_t P = (size_t)caps.src, N = TG_MAX((size_t)caps.tokens, P);
    const size_t A = (size_t)caps.actions, C = (size_t)a->width;
    const size_t HD = widest(a, &e, tg_trunk_attn_width), H = widest(a, &e, heads_of);
    const size_t narrow = (size_t)narrow_of(a);
    float **rows[] = {&f->tx, &f->branch, &f->in, &f->tin};
    for (size_t i = 0; i < TG_COUNT_OF(rows); i++) *rows[i] = tg_carve_f32(c, N, narrow);
    f->ones = tg_carve_f32(c, 1, TG_MAX(narrow, HD));
    f->made = tg_carve_f32(c, N, widest(a, &e, made_of));
    f->unused = tg_carve_f32(c, N, TG_MAX(H, (size_t)2));
    f->twide = tg_carve_f32(c, N, widest(a, &e, wide_of));
    f->tatt = tg_carve_f32(c, N, HD);
    f->act = tg_carve_f32(c, N, widest(a, &e, mlp_of));
    f->tact = tg_carve_f32(c, N, widest(a, &e, mlp_of));
    if (reach >= 0) f->tbias = tg_carve_f32(c, 2 * (size_t)reach + 1, H);
    if (a->kind == TG_KIND_SEQ2SEQ) {
        f->tq = tg_carve_f32(c, N, HD);
        f->tkv = tg_carve_f32(c, P, 2 * (size_t)tg_trunk_kv_width(a));
        f->tstates = tg_carve_f32(c, P, C);
    }
    f->trows = tg_carve_f32(c, A, C);
    f->thidden = f->tlm = tg_carve_f32(c, A, C);
    if (a->narrow_embed) f->tlm = tg_carve_f32(c, A, (size_t)a->embed_width);
    f->logits = tg_carve_f32(c, A, TG_FISHER_PANEL);
    f->tlogits = tg_carve_f32(c, A, TG_FISHER_PANEL);
    f->mean = tg_carve_f32(c, A, 1);
    f->weight = tg_carve_f32(c, A, 1);
}

size_t tg_fisher_bytes(const tg_arch *arch, tg_pass_caps caps) {
    tg_fisher f;
    tg_carve c = {0};
    carve(&f, &c, arch, caps, arch->rel_buckets ? TG_MAX(caps.tokens, caps.src) : -1);
    return c.used + tg_model_bytes(arch, 0);
}

static tg_status open_direction(tg_fisher *f, tg_error *err) {
    tg_model *m = f->p->m;
    unsigned head = m->arch.value_head ? TG_MODEL_VALUE_HEAD : 0;
    tg_status st = tg_model_clone(&f->v, m, head, 0, err);
    if (st != TG_OK) return st;
    TG_ASSERT(f->v->params.total == m->params.total);
    m->be->ops->fill(m->be, f->v->data, 0.0f, f->v->params.total);
    st = tg_trunk_init(&f->main, f->v, TG_STACK_MAIN, err);
    if (st == TG_OK && f->p->seq2seq) st = tg_trunk_init(&f->enc, f->v, TG_STACK_ENCODER, err);
    f->main.rounded = f->enc.rounded = f->p->main.trunk.rounded;
    return st;
}

tg_status tg_fisher_create(tg_fisher **out, tg_pass *pass, tg_error *err) {
    *out = NULL;
    tg_status st = check_arch(&pass->m->arch, err);
    if (st != TG_OK) return st;
    if (!pass->train || pass->recompute || pass->caps.actions_only)
        return tg_fail(err, TG_BUG, "fisher: needs a training pass that keeps its activations");
    tg_fisher *f = tg_alloc(sizeof *f);
    if (!f) return tg_fail_nomem(err, sizeof *f);
    f->p = pass;
    pass->whole = true; /* tangents go through every row */
    tg_backend *be = pass->m->be;
    st = open_direction(f, err);
    const tg_arch *a = &pass->m->arch;
    int reach = TG_MAX(pass->main.trunk.reach, pass->enc.trunk.reach);
    if (!pass->main.trunk.bias) reach = -1;
    if (st == TG_OK) {
        tg_carve c = {0};
        carve(f, &c, a, pass->caps, reach);
        f->block = tg_backend_alloc(be, c.used, err);
        if (!f->block) st = TG_NOMEM;
    }
    if (st != TG_OK) {
        tg_fisher_destroy(&f);
        return st;
    }
    tg_carve c = {.base = f->block};
    carve(f, &c, a, pass->caps, reach);
    int ones = TG_MAX(narrow_of(a), tg_trunk_attn_width(a));
    be->ops->fill(be, f->ones, 1.0f, (size_t)ones);
    *out = f;
    return TG_OK;
}

void tg_fisher_destroy(tg_fisher **fisher) {
    tg_fisher *f = *fisher;
    if (!f) return;
    tg_backend_free(f->p->m->be, f->block);
    tg_trunk_fini(&f->main);
    tg_trunk_fini(&f->enc);
    tg_model_destroy(&f->v);
    tg_free(f);
    *fisher = NULL;
}

float *tg_fisher_direction(tg_fisher *f) {
    return f->v->data;
}

/* to = rows of a stack's end behind its final norm. */
static void final(tg_fisher *f, const tg_trunk *t, const tg_trunk *tv, float *to, const float *tx,
                  const float *x, const float *mean, const float *rstd, int n) {
    if (t->top.w[TG_ROLE_FINAL_W])
        tg_fisher_norm(f, t, &t->top, &tv->top, TG_ROLE_FINAL_W, to, tx, x, mean, rstd, n);
    else
        t->be->ops->copy(t->be, to, tx, (size_t)n * (size_t)t->arch.width);
}

/* Logits of a panel and their tangents. */
static void panel(tg_fisher *f, int first, int cols) {
    const tg_trunk *t = &f->p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const int A = f->p->n_actions, C = tg_trunk_embed_width(&t->arch);
    const float *lm = f->p->b.lm, *bias = t->top.w[TG_ROLE_HEAD_B];
    const size_t at = (size_t)first * (size_t)C;
    const float *w = t->top.w[TG_ROLE_HEAD_W] + at, *tw = f->main.top.w[TG_ROLE_HEAD_W] + at;
    ops->matmul(t->be, f->logits, lm, w, A, cols, C, false, true, false, t->rounded);
    ops->matmul(t->be, f->tlogits, f->tlm, w, A, cols, C, false, true, false, t->rounded);
    ops->matmul(t->be, f->tlogits, lm, tw, A, cols, C, false, true, true, t->rounded);
    if (bias) {
        ops->bias_forward(t->be, f->logits, bias + first, A, cols);
        ops->bias_forward(t->be, f->tlogits, f->main.top.w[TG_ROLE_HEAD_B] + first, A, cols);
    }
    if (t->arch.logit_softcap > 0)
        ops->softcap(t->be, f->logits, t->arch.logit_softcap, (size_t)A * (size_t)cols);
}

/* dlm (A,E) and the gradients of the head, from the tangents of the rows it reads. */
static void head(tg_fisher *f, float *dlm) {
    const tg_trunk *t = &f->p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const int A = f->p->n_actions, C = tg_trunk_embed_width(&t->arch), V = t->arch.vocab_size;
    const float cap = t->arch.logit_softcap, *lse = f->p->b.lse;
    ops->fill(t->be, f->mean, 0.0f, (size_t)A);
    for (int first = 0; first < V; first += TG_FISHER_PANEL) {
        int cols = TG_MIN(TG_FISHER_PANEL, V - first);
        panel(f, first, cols);
        ops->fisher_mean(t->be, f->mean, f->tlogits, f->logits, lse, A, cols, cap);
    }
    for (int first = 0; first < V; first += TG_FISHER_PANEL) {
        int cols = TG_MIN(TG_FISHER_PANEL, V - first);
        const size_t at = (size_t)first * (size_t)C;
        panel(f, first, cols);
        ops->fisher_grad(t->be, f->tlogits, f->logits, lse, f->mean, f->weight, A, cols, cap);
        ops->matmul(t->be, dlm, f->tlogits, t->top.w[TG_ROLE_HEAD_W] + at, A, C, cols, false, false,
                    first > 0, t->rounded);
        if (t->top.g[TG_ROLE_HEAD_W])
            ops->matmul(t->be, t->top.g[TG_ROLE_HEAD_W] + at, f->tlogits, f->p->b.lm, cols, C, A,
                        true, false, true, t->rounded);
        if (t->top.g[TG_ROLE_HEAD_B])
            ops->bias_backward(t->be, t->top.g[TG_ROLE_HEAD_B] + first, f->tlogits, A, cols);
    }
}

tg_status tg_fisher_product(tg_fisher *f, const float *weights, tg_error *err) {
    tg_pass *p = f->p;
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const int A = p->n_actions, C = t->arch.width;
    if (!p->main.n_tokens || !p->has_lm || p->has_mask)
        return tg_fail(err, TG_BUG, "fisher: needs a forward with log-probs and without masks");
    if (!A) return TG_OK;
    tg_status st = tg_model_wake_grad(p->m, err);
    if (st != TG_OK) return st;
    tg_backend_upload(t->be, f->weight, weights, (size_t)A * sizeof(float));
    if (p->seq2seq) {
        tg_fisher_stack(f, &p->enc, &f->enc);
        final(f, &p->enc.trunk, &f->enc, f->tstates, f->tx, tg_pass_last_rows(&p->enc), b->smean,
              b->srstd, p->enc.n_tokens);
    }
    tg_fisher_stack(f, &p->main, &f->main);
    ops->gather_rows(t->be, f->trows, f->tx, b->act_row, A, C);
    final(f, t, &f->main, f->thidden, f->trows, b->rows, b->mean, b->rstd, A);
    const bool narrow = t->arch.narrow_embed;
    const int E = tg_trunk_embed_width(&t->arch);
    if (narrow)
        tg_fisher_linear(t, &f->main, TG_FISHER_TOP, TG_ROLE_HEAD_IN_W, f->tlm, f->thidden,
                         b->hidden, A, E, C, false);
    if (t->arch.logit_scale > 0)
        ops->scale(t->be, f->tlm, t->arch.logit_scale, (size_t)A * (size_t)E);
    float *dlm = narrow ? b->d2 : b->d1;
    head(f, dlm);
    tg_pass_lm_backward(p, b->d1, dlm);
    tg_pass_rows_backward(p, b->d1);
    return TG_OK;
}
