/* Sequence classification and regression: logits of whole texts. With x the state of a text's first token, an encoder's are
 *
 *     logits = pool_act(x Wp + bp) Wl + bl;
 *
 * a causal model's are  norm(x) Wl  of its last one, or  norm(x) Wo Wl  where the language head reads narrow states. */
#include "common/nn/pass_state.h"

/* The row that is judged: an encoder's first; a causal model's last that is not the pad token, as transformers has it. */
static void upload_rows(tg_pass *p, const tg_batch *b) {
    const tg_arch *a = &p->main.trunk.arch;
    int32_t *rows = p->host_positions; /* used up by the forward */
    for (int s = 0; s < b->n_seqs; s++) {
        int first = b->offsets[s], row = b->offsets[s + 1] - 1;
        while (row > first && a->pad_id >= 0 && b->tokens[row] == a->pad_id) row--;
        rows[s] = a->pooler ? first : row;
    }
    tg_backend_upload(p->m->be, p->b.label_rows, rows, (size_t)b->n_seqs * sizeof(int32_t));
}

/* What the last matrix reads. */
static void pool_rows(tg_pass *p, int S) {
    const tg_trunk *t = &p->main.trunk;
    const tg_pass_buffers *b = &p->b;
    const int C = t->arch.width, E = t->arch.embed_width;
    if (!t->arch.pooler) {
        tg_trunk_final(t, b->pooled, b->label_mean, b->label_rstd, b->first, S);
        if (tg_arch_judges_narrow(&t->arch))
            tg_trunk_linear(t, &t->top, TG_ROLE_HEAD_IN_W, b->judged, b->pooled, S, E, C, false);
        return;
    }
    tg_trunk_linear(t, &t->top, TG_ROLE_POOL_W, b->pool, b->first, S, C, C, false);
    t->be->ops->act_forward(t->be, b->pooled, b->pool, (size_t)S * (size_t)C, t->arch.pool_act);
}

/* y (S,L) = x Wl + bl. It is stored (labels, width) in every family. */
static void labels_of(const tg_trunk *t, float *y, const float *x, int S) {
    const tg_ops *ops = t->be->ops;
    const int J = tg_arch_judged_width(&t->arch), L = t->arch.n_labels;
    ops->matmul(t->be, y, x, t->top.w[TG_ROLE_LABELS_W], S, L, J, false, true, false, false);
    if (t->top.w[TG_ROLE_LABELS_B]) ops->bias_forward(t->be, y, t->top.w[TG_ROLE_LABELS_B], S, L);
}

tg_status tg_pass_labels(tg_pass *p, const tg_batch *batch, float *logits, tg_error *err) {
    const tg_trunk *t = &p->main.trunk;
    const tg_pass_buffers *b = &p->b;
    if (!t->arch.labels) return tg_fail(err, TG_BUG, "pass: labels asked of a model without them");
    tg_batch bare = *batch;
    bare.n_actions = 0;
    tg_status st = tg_pass_forward(p, &bare, (tg_pass_out){0}, err);
    if (st != TG_OK) return st;
    const int S = p->n_seqs;
    upload_rows(p, batch);
    t->be->ops->gather_rows(t->be, b->first, tg_pass_last_rows(&p->main), b->label_rows, S,
                            t->arch.width);
    pool_rows(p, S);
    labels_of(t, b->labels, b->judged, S);
    tg_backend_download(t->be, logits, b->labels,
                        (size_t)S * (size_t)t->arch.n_labels * sizeof(float));
    p->has_labels = true;
    return TG_OK;
}

/* Where what the last matrix read was made of pooled states: their gradient (S,C), in d1, from that of what it read (S,E), there too. */
static void narrow_backward(tg_pass *p, int S) {
    const tg_trunk *t = &p->main.trunk;
    const tg_pass_buffers *b = &p->b;
    const int C = t->arch.width, E = t->arch.embed_width;
    if (t->top.g[TG_ROLE_HEAD_IN_W])
        tg_pass_weight_backward(t, &t->top, TG_ROLE_HEAD_IN_W, b->d1, b->pooled, S, E, C);
    tg_pass_input_backward(t, &t->top, TG_ROLE_HEAD_IN_W, b->d2, b->d1, S, E, C, false);
    t->be->ops->copy(t->be, b->d1, b->d2, (size_t)S * (size_t)C);
}

/* Gradient of the states of the judged rows (S,C), in d2, from that of pooled ones, in d1. */
static void pool_backward(tg_pass *p, int S) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const int C = t->arch.width;
    const size_t n = (size_t)S * (size_t)C;
    if (t->arch.pooler) {
        ops->act_backward(t->be, b->d1, b->d1, b->pool, n, t->arch.pool_act);
        tg_pass_weight_backward(t, &t->top, TG_ROLE_POOL_W, b->d1, b->first, S, C, C);
        tg_pass_input_backward(t, &t->top, TG_ROLE_POOL_W, b->d2, b->d1, S, C, C, false);
    } else if (t->top.w[TG_ROLE_FINAL_W]) {
        ops->fill(t->be, b->d2, 0.0f, n);
        tg_pass_norm_backward(t, &t->top, TG_ROLE_FINAL_W, b->d2, b->d1, b->first, b->label_mean,
                              b->label_rstd, S);
    } else {
        ops->copy(t->be, b->d2, b->d1, n);
    }
}

tg_status tg_pass_labels_backward(tg_pass *p, const float *dlogits, tg_error *err) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const int S = p->n_seqs, C = t->arch.width, L = t->arch.n_labels;
    const int J = tg_arch_judged_width(&t->arch);
    if (!p->train || !p->has_labels)
        return tg_fail(err, TG_BUG, "pass: backward of labels that forward did not compute");
    tg_status st = tg_model_wake_grad(p->m, err);
    if (st != TG_OK) return st;
    tg_backend_upload(t->be, b->dlabels, dlogits, (size_t)S * (size_t)L * sizeof(float));
    ops->matmul(t->be, t->top.g[TG_ROLE_LABELS_W], b->dlabels, b->judged, L, J, S, true, false,
                true, false);
    if (t->top.g[TG_ROLE_LABELS_B])
        ops->bias_backward(t->be, t->top.g[TG_ROLE_LABELS_B], b->dlabels, S, L);
    ops->matmul(t->be, b->d1, b->dlabels, t->top.w[TG_ROLE_LABELS_W], S, J, L, false, false, false,
                false);
    if (tg_arch_judges_narrow(&t->arch)) narrow_backward(p, S);
    pool_backward(p, S);
    ops->fill(t->be, b->dx, 0.0f, (size_t)p->main.n_tokens * (size_t)C);
    ops->scatter_add_rows(t->be, b->dx, b->d2, b->label_rows, S, C);
    tg_pass_stack_backward(p, &p->main);
    return TG_OK;
}
