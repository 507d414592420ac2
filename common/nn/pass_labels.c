/* Sequence classification and regression: logits of whole texts. With x the state of a text's first token,
 *
 *     logits = pool_act(x Wp + bp) Wl + bl. */
#include "common/nn/pass_state.h"

tg_status tg_pass_labels(tg_pass *p, const tg_batch *batch, float *logits, tg_error *err) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const int C = t->arch.width, L = t->arch.n_labels;
    if (!t->arch.labels) return tg_fail(err, TG_BUG, "pass: labels asked of a model without them");
    tg_batch bare = *batch;
    bare.n_actions = 0;
    tg_status st = tg_pass_forward(p, &bare, (tg_pass_out){0}, err);
    if (st != TG_OK) return st;
    const int S = p->n_seqs;
    ops->gather_rows(t->be, b->first, tg_pass_last_rows(&p->main), p->main.offsets, S, C);
    tg_trunk_linear(t, &t->top, TG_ROLE_POOL_W, b->pool, b->first, S, C, C, false);
    ops->act_forward(t->be, b->pooled, b->pool, (size_t)S * (size_t)C, t->arch.pool_act);
    tg_trunk_linear(t, &t->top, TG_ROLE_LABELS_W, b->labels, b->pooled, S, L, C, false);
    tg_backend_download(t->be, logits, b->labels, (size_t)S * (size_t)L * sizeof(float));
    p->has_labels = true;
    return TG_OK;
}

tg_status tg_pass_labels_backward(tg_pass *p, const float *dlogits, tg_error *err) {
    const tg_trunk *t = &p->main.trunk;
    const tg_ops *ops = t->be->ops;
    const tg_pass_buffers *b = &p->b;
    const int S = p->n_seqs, C = t->arch.width, L = t->arch.n_labels;
    if (!p->train || !p->has_labels)
        return tg_fail(err, TG_BUG, "pass: backward of labels that forward did not compute");
    tg_backend_upload(t->be, b->dlabels, dlogits, (size_t)S * (size_t)L * sizeof(float));
    tg_pass_weight_backward(t, &t->top, TG_ROLE_LABELS_W, b->dlabels, b->pooled, S, L, C);
    tg_pass_input_backward(t, &t->top, TG_ROLE_LABELS_W, b->d1, b->dlabels, S, L, C, false);
    ops->act_backward(t->be, b->d1, b->d1, b->pool, (size_t)S * (size_t)C, t->arch.pool_act);
    tg_pass_weight_backward(t, &t->top, TG_ROLE_POOL_W, b->d1, b->first, S, C, C);
    tg_pass_input_backward(t, &t->top, TG_ROLE_POOL_W, b->d2, b->d1, S, C, C, false);
    ops->fill(t->be, b->dx, 0.0f, (size_t)p->main.n_tokens * (size_t)C);
    ops->scatter_add_rows(t->be, b->dx, b->d2, p->main.offsets, S, C);
    tg_pass_stack_backward(p, &p->main);
    return TG_OK;
}
