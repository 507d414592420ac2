/* Sources of seq2seq slots: encoded once, in groups; what the decoder's layers attend to of them lies in a cache of its own, one run of
 * rows for each slot. */
#include "common/nn/decoder_state.h"

#include "common/base/check.h"

static size_t layer_floats(const tg_decoder *d, int rows) {
    return (size_t)d->n_slots * (size_t)rows * tg_decoder_kv_width(&d->m->arch);
}

/* What every decoder layer attends to of the group's states, straight into the cache: a slot's rows lie together. */
static void store_sources(tg_decoder *d, const int32_t *slots, const int32_t *offsets, int n) {
    const tg_trunk *t = &d->trunk;
    const int C = t->arch.width, GD = (int)tg_decoder_kv_width(&t->arch);
    const tg_param_role roles[] = {TG_ROLE_CROSS_K_W, TG_ROLE_CROSS_V_W};
    for (int l = 0; l < t->arch.n_layers; l++)
        for (int s = 0; s < n; s++)
            for (int i = 0; i < 2; i++) {
                size_t at = (size_t)l * layer_floats(d, d->max_src) +
                            (size_t)slots[s] * (size_t)d->max_src * (size_t)GD;
                tg_trunk_linear(t, &t->layers[l], roles[i], (i ? d->b.src_v : d->b.src_k) + at,
                                d->b.enc.states + (size_t)(offsets[s] - offsets[0]) * (size_t)C,
                                offsets[s + 1] - offsets[s], GD, C, false);
            }
}

static void encode_group(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                         const int32_t *offsets, int n) {
    const tg_trunk *t = &d->enc;
    const struct tg_decoder_encoder *e = &d->b.enc;
    const tg_acts *a = &e->acts;
    const tg_heads at = tg_trunk_heads(&t->arch);
    const int N = offsets[n] - offsets[0];
    tg_decoder_upload_texts(d, &d->enc, e->tokens, e->positions, tokens, offsets, n);
    tg_trunk_bias(t);
    tg_trunk_embed(t, a->x, &e->embed, e->tokens, e->positions, N);
    for (int l = 0; l < t->arch.n_layers; l++) {
        tg_trunk_qkv(t, l, a, e->positions, N);
        t->be->ops->attention_forward(t->be, a->att, a->lse, a->qkv, a->qkv + at.k, a->qkv + at.v,
                                      at.stride, d->b.offsets, n, tg_trunk_attn(t, l));
        tg_trunk_mix(t, l, a, N);
        tg_trunk_mlp(t, l, a, N);
    }
    tg_trunk_final(t, e->states, e->mean, e->rstd, a->out, N);
    store_sources(d, slots, offsets, n);
}

tg_status tg_decoder_encode(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                            const int32_t *offsets, int n, tg_error *err) {
    if (!d->seq2seq) return tg_fail(err, TG_BUG, "decoder: a causal model has no source");
    tg_status st = tg_decoder_check_slots(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    st = tg_decoder_check_texts(offsets, n, d->max_src, "source", err);
    if (st == TG_OK) st = tg_decoder_check_tokens(&d->enc, tokens, offsets[n], err);
    if (st != TG_OK) return st;
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && offsets[to + 1] - offsets[from] <= d->src_rows;) to++;
        encode_group(d, slots + from, tokens, offsets + from, to - from);
    }
    for (int s = 0; s < n; s++) {
        d->src_lengths[slots[s]] = offsets[s + 1] - offsets[s];
        d->source_of[slots[s]] = ++d->n_sources;
    }
    return TG_OK;
}

tg_status tg_decoder_check_sources(const tg_decoder *d, const int32_t *slots, int n,
                                   tg_error *err) {
    for (int i = 0; d->seq2seq && i < n; i++)
        if (!d->src_lengths[slots[i]])
            return tg_fail(err, TG_DATA, "decoder: slot %d has no source", slots[i]);
    return TG_OK;
}

/* Where the sources of these slots lie. */
void tg_decoder_upload_sources(tg_decoder *d, const int32_t *slots, int n) {
    tg_backend *be = d->m->be;
    int32_t *h = d->staging;
    size_t bytes = (size_t)n * sizeof *h;
    if (!d->seq2seq) return;
    for (int i = 0; i < n; i++) h[i] = slots[i] * d->max_src;
    tg_backend_upload(be, d->b.src_begin, h, bytes);
    for (int i = 0; i < n; i++) h[i] = slots[i] * d->max_src + d->src_lengths[slots[i]];
    tg_backend_upload(be, d->b.src_end, h, bytes);
    for (int i = 0; i < n; i++) h[i] = d->src_lengths[slots[i]];
    tg_backend_upload(be, d->b.src_lengths, h, bytes);
}

/* The layer's rows attend to the sources of n entries: N rows packed by b.offsets, or (step) one each. */
void tg_decoder_cross(tg_decoder *d, int layer, int N, int n, bool step) {
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    if (!d->seq2seq) return;
    const int GD = (int)tg_decoder_kv_width(&t->arch), HD = tg_trunk_attn_width(&t->arch);
    const float *k = d->b.src_k + (size_t)layer * layer_floats(d, d->max_src);
    const float *v = d->b.src_v + (size_t)layer * layer_floats(d, d->max_src);
    tg_attn_dims dims = tg_trunk_attn_source(t, d->b.src_begin, d->b.src_end, GD);
    tg_trunk_query(t, layer, a, N);
    if (step)
        t->be->ops->attention_decode(t->be, a->catt, a->cq, HD, k, v, d->max_src, d->b.slots,
                                     d->b.src_lengths, n, dims);
    else
        t->be->ops->attention_forward(t->be, a->catt, a->clse, a->cq, k, v, HD, d->b.offsets, n,
                                      dims);
    tg_trunk_cross(t, layer, a, N);
}

/* Slots that already share a source, as the beams of a prompt do, copy nothing. */
void tg_decoder_fork_source(tg_decoder *d, int from, int to) {
    tg_backend *be = d->m->be;
    if (!d->seq2seq || d->source_of[to] == d->source_of[from]) return;
    const size_t GD = tg_decoder_kv_width(&d->m->arch), slot = (size_t)d->max_src * GD;
    const size_t n = (size_t)d->src_lengths[from] * GD;
    for (int l = 0; l < d->m->arch.n_layers; l++) {
        float *k = d->b.src_k + (size_t)l * layer_floats(d, d->max_src);
        float *v = d->b.src_v + (size_t)l * layer_floats(d, d->max_src);
        be->ops->copy(be, k + (size_t)to * slot, k + (size_t)from * slot, n);
        be->ops->copy(be, v + (size_t)to * slot, v + (size_t)from * slot, n);
    }
    d->src_lengths[to] = d->src_lengths[from];
    d->source_of[to] = d->source_of[from];
}
