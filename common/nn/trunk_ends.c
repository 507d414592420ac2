/* Both ends of a stack: from tokens to the first layer's rows, from states to logits. */
#include "common/nn/trunk.h"

#include "common/base/check.h"

void tg_trunk_tables(const tg_trunk *t, float *y, const int32_t *tokens, const int32_t *types,
                     const int32_t *positions, int N) {
    const tg_ops *ops = t->be->ops;
    const tg_arch *a = &t->arch;
    const float *table = t->top.w[TG_ROLE_POS_EMBED];
    int E = tg_trunk_embed_width(a);
    const tg_weight words = tg_trunk_weight(t, &t->top, TG_ROLE_TOKEN_EMBED, true);
    ops->weight_rows(t->be, y, words, tokens, N, a->vocab_size, E);
    if (tg_trunk_scales(a)) ops->scale(t->be, y, a->embed_scale, (size_t)N * (size_t)E);
    if (a->types) ops->embed_forward(t->be, y, t->top.w[TG_ROLE_TYPE_EMBED], types, N, E, true);
    if (table && !a->norm_first && !a->wide_positions)
        ops->embed_forward(t->be, y, table, positions, N, E, true);
}

void tg_trunk_embed(const tg_trunk *t, float *x, const tg_embed_acts *e, const int32_t *tokens,
                    const int32_t *positions, int N) {
    const tg_arch *a = &t->arch;
    const float *table = t->top.w[TG_ROLE_POS_EMBED];
    float *y = a->embed_norm || a->narrow_embed ? e->raw : x;
    tg_trunk_tables(t, y, tokens, e->types, positions, N);
    if (a->embed_norm) {
        float *to = a->narrow_embed ? e->narrow : x;
        tg_trunk_norm(t, &t->top, TG_ROLE_EMBED_NORM_W, to, e->mean, e->rstd, e->raw, N);
        y = to;
    }
    if (a->narrow_embed)
        tg_trunk_linear(t, &t->top, TG_ROLE_EMBED_IN_W, x, y, N, a->width, a->embed_width, false);
    if (table && (a->norm_first || a->wide_positions))
        t->be->ops->embed_forward(t->be, x, table, positions, N, a->width, true);
}

const float *tg_trunk_lm(const tg_trunk *t, float *lm, const float *h, int n) {
    const tg_ops *ops = t->be->ops;
    const tg_arch *a = &t->arch;
    if (!tg_trunk_has_lm(a)) return h;
    if (a->narrow_embed) {
        TG_ASSERT(lm != h);
        tg_trunk_linear(t, &t->top, TG_ROLE_HEAD_IN_W, lm, h, n, a->embed_width, a->width, false);
    } else if (lm != h) {
        ops->copy(t->be, lm, h, (size_t)n * (size_t)a->width);
    }
    if (a->logit_scale > 0)
        ops->scale(t->be, lm, a->logit_scale, (size_t)n * (size_t)tg_trunk_embed_width(a));
    return lm;
}

void tg_trunk_logits(const tg_trunk *t, float *logits, const float *h, float *lm, int n) {
    const tg_ops *ops = t->be->ops;
    int V = t->arch.vocab_size;
    const float *in = tg_trunk_lm(t, lm, h, n);
    ops->linear(t->be, logits, in, tg_trunk_weight(t, &t->top, TG_ROLE_HEAD_W, true),
                t->top.w[TG_ROLE_HEAD_B], n, V, tg_trunk_embed_width(&t->arch), false);
    if (t->arch.logit_softcap > 0)
        ops->softcap(t->be, logits, t->arch.logit_softcap, (size_t)n * (size_t)V);
}
