/* Prefill runs the trunk on packed prompts exactly as a scoring pass does and keeps keys and values; a step runs it on one row per
 * slot and attends to what was kept. One thread at a time, as the backend. */
#include "common/nn/decoder_state.h"

#include "common/base/check.h"

#include <string.h>

int tg_decoder_length(const tg_decoder *d, int slot) {
    TG_ASSERT(slot >= 0 && slot < d->n_slots);
    return d->lengths[slot];
}

const float *tg_decoder_values(const tg_decoder *d) {
    return d->values;
}

tg_status tg_decoder_check_slots(tg_decoder *d, const int32_t *slots, int n, tg_error *err) {
    if (n < 0 || n > d->n_slots)
        return tg_fail(err, TG_DATA, "decoder: %d entries, there are %d slots", n, d->n_slots);
    memset(d->seen, 0, (size_t)d->n_slots * sizeof *d->seen);
    for (int i = 0; i < n; i++) {
        if (slots[i] < 0 || slots[i] >= d->n_slots)
            return tg_fail(err, TG_DATA, "decoder: slot %d, there are %d", slots[i], d->n_slots);
        if (d->seen[slots[i]]) return tg_fail(err, TG_DATA, "decoder: slot %d twice", slots[i]);
        d->seen[slots[i]] = true;
    }
    return TG_OK;
}

tg_status tg_decoder_check_tokens(const tg_trunk *t, const int32_t *tokens, int n, tg_error *err) {
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= t->arch.vocab_size)
            return tg_fail(err, TG_DATA, "decoder: token %d is %d, the vocabulary has %d", i,
                           tokens[i], t->arch.vocab_size);
    return TG_OK;
}

tg_status tg_decoder_check_texts(const int32_t *offsets, int n, int max, const char *what,
                                 tg_error *err) {
    if (offsets[0] != 0)
        return tg_fail(err, TG_DATA, "decoder: offsets start at %d, not 0", offsets[0]);
    for (int i = 0; i < n; i++) {
        int64_t len = (int64_t)offsets[i + 1] - offsets[i];
        if (len < 1 || len > max)
            return tg_fail(err, TG_DATA, "decoder: %s %d has %lld tokens, expected 1 to %d", what,
                           i, (long long)len, max);
    }
    return TG_OK;
}

/* Tokens, positions and offsets of the group's n texts, for a stack. */
void tg_decoder_upload_texts(tg_decoder *d, const tg_trunk *t, int32_t *to_tokens,
                             int32_t *to_positions, const int32_t *tokens, const int32_t *offsets,
                             int n) {
    tg_backend *be = d->m->be;
    int32_t *h = d->staging;
    int first = offsets[0], N = offsets[n] - first;
    tg_backend_upload(be, to_tokens, tokens + first, (size_t)N * sizeof *h);
    for (int s = 0, used = 0; s < n; s++) {
        const int at = tg_trunk_place_text(t, offsets[s + 1] - offsets[s], &used);
        for (int i = offsets[s]; i < offsets[s + 1]; i++) h[i - first] = i - offsets[s] + at;
    }
    tg_backend_upload(be, to_positions, h, (size_t)N * sizeof *h);
    for (int s = 0; s <= n; s++) h[s] = offsets[s] - first;
    tg_backend_upload(be, d->b.offsets, h, ((size_t)n + 1) * sizeof *h);
}

/* Final norm and logits of B rows, to the host; values too, from entry `first` on. */
static void finish(tg_decoder *d, const float *rows, int B, float *logits, int first) {
    const tg_trunk *t = &d->trunk;
    const struct tg_decoder_buffers *b = &d->b;
    tg_trunk_final(t, b->hidden, b->mean, b->rstd, rows, B);
    if (b->value) { /* before the logits: they may use up the states */
        t->be->ops->matmul(t->be, b->value, b->hidden, t->top.w[TG_ROLE_VALUE_W], B, 1,
                           t->arch.width, false, true, false, false);
        tg_backend_download(t->be, d->values + first, b->value, (size_t)B * sizeof(float));
    }
    float *to = t->be->vtable->host_memory ? logits : b->logits;
    tg_trunk_logits(t, to, b->hidden, t->arch.narrow_embed ? b->acts.up : b->hidden, B);
    if (to != logits)
        tg_backend_download(t->be, logits, to,
                            (size_t)B * (size_t)t->arch.vocab_size * sizeof(float));
}

/* ---- prefill ------------------------------------------------------------------------------------- */

/* The group's n sequences and their last rows. */
static void upload_group(tg_decoder *d, const int32_t *tokens, const int32_t *offsets, int n) {
    int32_t *h = d->staging;
    tg_decoder_upload_texts(d, &d->trunk, d->b.tokens, d->b.positions, tokens, offsets, n);
    for (int s = 0; s < n; s++) h[s] = offsets[s + 1] - offsets[0] - 1;
    tg_backend_upload(d->m->be, d->b.cache_rows, h, (size_t)n * sizeof *h);
}

/* Of a prompt's last layer only the last row is needed: the rest of it runs on those of the n prompts. */
static void finish_last_layer(const tg_decoder *d, int layer, int n) {
    const tg_trunk *t = &d->trunk;
    const struct tg_decoder_buffers *b = &d->b;
    const tg_acts *a = &b->acts;
    tg_acts last = *a;
    last.x = last.mid = last.cmid = last.out = b->last;
    last.att = b->last_att;
    if (a->post1 == a->x) last.post1 = last.post2 = b->last;
    t->be->ops->gather_rows(t->be, b->last, t->arch.norm_stream ? a->norm : a->x, b->cache_rows, n,
                            t->arch.width);
    t->be->ops->gather_rows(t->be, b->last_att, a->att, b->cache_rows, n,
                            tg_trunk_attn_width(&t->arch));
    tg_acts mixed = last;
    if (t->arch.norm_stream) mixed.norm = b->last;
    tg_trunk_mix(t, layer, &mixed, n);
    tg_trunk_mlp(t, layer, &last, n);
}

static void prefill_group(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                          const int32_t *offsets, int n, float *logits, int first) {
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    const tg_heads at = tg_trunk_heads(&t->arch);
    int N = offsets[n] - offsets[0];
    upload_group(d, tokens, offsets, n);
    tg_decoder_upload_sources(d, slots, n);
    tg_trunk_bias(t);
    tg_trunk_embed(t, a->x, &d->b.embed, d->b.tokens, d->b.positions, N);
    for (int l = 0; l < t->arch.n_layers; l++) {
        tg_trunk_qkv(t, l, a, d->b.positions, N);
        for (int s = 0; s < n; s++)
            tg_kv_store_text(&d->b.kv, t, l, slots[s], a->qkv, offsets[s] - offsets[0],
                             offsets[s + 1] - offsets[s], a->att);
        t->be->ops->attention_forward(t->be, a->att, a->lse, a->qkv, a->qkv + at.k, a->qkv + at.v,
                                      at.stride, d->b.offsets, n, tg_trunk_attn(t, l));
        if (!d->seq2seq && l == t->arch.n_layers - 1) {
            finish_last_layer(d, l, n);
            break;
        }
        tg_trunk_mix(t, l, a, N);
        tg_decoder_cross(d, l, N, n, false);
        tg_trunk_mlp(t, l, a, N);
    }
    if (d->seq2seq)
        t->be->ops->gather_rows(t->be, d->b.last, a->out, d->b.cache_rows, n, t->arch.width);
    finish(d, d->b.last, n, logits, first);
    for (int s = 0; s < n; s++) d->lengths[slots[s]] = offsets[s + 1] - offsets[s];
}

tg_status tg_decoder_prefill(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                             const int32_t *offsets, int n, float *logits, tg_error *err) {
    tg_status st = tg_decoder_check_slots(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    st = tg_decoder_check_texts(offsets, n, d->max_len, "prompt", err);
    if (st == TG_OK) st = tg_decoder_check_tokens(&d->trunk, tokens, offsets[n], err);
    if (st == TG_OK) st = tg_decoder_check_sources(d, slots, n, err);
    if (st != TG_OK) return st;
    if (d->packed_version != d->m->version) tg_packed_fill(&d->trunk);
    d->packed_version = d->m->version;
    size_t V = (size_t)d->m->arch.vocab_size;
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && offsets[to + 1] - offsets[from] <= d->work_rows;) to++;
        prefill_group(d, slots + from, tokens, offsets + from, to - from, logits + (size_t)from * V,
                      from);
    }
    return TG_OK;
}

/* ---- step ---------------------------------------------------------------------------------------- */

static tg_status check_room(const tg_decoder *d, const int32_t *slots, int n, tg_error *err) {
    for (int i = 0; i < n; i++) {
        int len = d->lengths[slots[i]];
        if (len == 0) return tg_fail(err, TG_DATA, "decoder: slot %d was not prefilled", slots[i]);
        if (len >= d->max_len)
            return tg_fail(err, TG_DATA, "decoder: slot %d is full (%d tokens)", slots[i], len);
    }
    return TG_OK;
}

static void upload_step(tg_decoder *d, const int32_t *slots, const int32_t *tokens, int n) {
    tg_backend *be = d->m->be;
    const struct tg_decoder_buffers *b = &d->b;
    int32_t *h = d->staging;
    size_t bytes = (size_t)n * sizeof *h;
    tg_backend_upload(be, b->tokens, tokens, bytes);
    tg_backend_upload(be, b->slots, slots, bytes);
    for (int i = 0; i < n; i++) h[i] = d->lengths[slots[i]] + d->m->arch.pos_offset;
    tg_backend_upload(be, b->positions, h, bytes);
    for (int i = 0; i < n; i++) h[i] = d->lengths[slots[i]] + 1;
    tg_backend_upload(be, b->lengths, h, bytes);
    for (int i = 0; i < n; i++) h[i] = slots[i] * d->max_len + d->lengths[slots[i]];
    tg_backend_upload(be, b->cache_rows, h, bytes);
}

static void attend_step(const tg_decoder *d, int layer, int n) {
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    tg_attn_dims dims = tg_trunk_attn(t, layer);
    dims.half_cache = d->b.kv.half;
    t->be->ops->attention_decode(
        t->be, a->att, a->qkv, tg_trunk_qkv_width(&t->arch), tg_kv_keys(&d->b.kv, &t->arch, layer),
        tg_kv_values(&d->b.kv, &t->arch, layer), d->max_len, d->b.slots, d->b.lengths, n, dims);
}

tg_status tg_decoder_step(tg_decoder *d, const int32_t *slots, const int32_t *tokens, int n,
                          float *logits, tg_error *err) {
    tg_status st = tg_decoder_check_slots(d, slots, n, err);
    if (st == TG_OK) st = tg_decoder_check_tokens(&d->trunk, tokens, n, err);
    if (st == TG_OK) st = check_room(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    upload_step(d, slots, tokens, n);
    tg_decoder_upload_sources(d, slots, n);
    tg_trunk_bias(t);
    tg_trunk_embed(t, a->x, &d->b.embed, d->b.tokens, d->b.positions, n);
    for (int l = 0; l < t->arch.n_layers; l++) {
        tg_trunk_qkv(t, l, a, d->b.positions, n);
        tg_kv_store_rows(&d->b.kv, t, l, a->qkv, d->b.cache_rows, n, a->att);
        attend_step(d, l, n);
        tg_trunk_mix(t, l, a, n);
        tg_decoder_cross(d, l, n, n, true);
        tg_trunk_mlp(t, l, a, n);
    }
    finish(d, a->out, n, logits, 0);
    for (int i = 0; i < n; i++) d->lengths[slots[i]]++;
    return TG_OK;
}

/* ---- fork ---------------------------------------------------------------------------------------- */

tg_status tg_decoder_fork(tg_decoder *d, int from, int to, int length, int keep, tg_error *err) {
    if (from < 0 || from >= d->n_slots || to < 0 || to >= d->n_slots)
        return tg_fail(err, TG_DATA, "decoder: slots %d and %d, there are %d", from, to,
                       d->n_slots);
    if (length < 1 || length > d->lengths[from])
        return tg_fail(err, TG_DATA, "decoder: %d tokens of slot %d, which holds %d", length, from,
                       d->lengths[from]);
    if (keep < 0 || keep > length || keep > d->lengths[to])
        return tg_fail(err, TG_DATA, "decoder: slot %d does not hold the first %d tokens", to,
                       keep);
    tg_kv_copy(&d->b.kv, &d->trunk, from, to, keep, length);
    tg_decoder_fork_source(d, from, to);
    d->lengths[to] = length;
    return TG_OK;
}
