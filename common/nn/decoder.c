/* Prefill runs the trunk on packed prompts exactly as a scoring pass does and keeps keys and values; a step runs it on one row per
 * slot and attends to what was kept. The source of a seq2seq slot is encoded once: what its layers attend to lies in a second
 * cache, one run of rows for each slot. One thread at a time, as the backend. */
#include "common/nn/decoder.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/kv_cache.h"
#include "common/nn/packed.h"

#include <string.h>

enum { PREFILL_ROWS = 2048 }; /* prompts beyond this many tokens are run in groups */

/* Of the encoder; in the place of the decoder's acts, which are not needed at the same time. E = work_rows() of sources. */
struct encoder {
    tg_acts acts;                /* E rows */
    int32_t *tokens, *positions; /* (E) */
    tg_embed_acts embed;
    float *states, *mean, *rstd; /* (E,C), (E) after the final norm */
};

/* Device buffers, all in one block. W = work_rows(), S = caps.slots. */
struct buffers {
    tg_kv_cache kv;
    float *src_k, *src_v;         /* (layers, S, src, G*D) */
    int32_t *src_begin, *src_end; /* (S) rows of the sources of a call's entries */
    int32_t *src_lengths;         /* (S) */
    struct encoder enc;
    tg_acts acts;                /* W rows */
    int32_t *tokens, *positions; /* (W) */
    int32_t *offsets;            /* (S + 1) prefill */
    int32_t *slots, *lengths;    /* (S) step: lengths with the new token */
    int32_t *cache_rows; /* (S) step: where the new key goes; prefill: last row of each sequence */
    tg_embed_acts embed;
    float *last, *hidden, *mean, *rstd; /* (S,C), (S) */
    float *logits;                      /* (S,V) */
};

struct tg_decoder {
    tg_model *m;
    tg_trunk trunk, enc; /* enc: seq2seq only */
    bool seq2seq;
    int n_slots, max_len, work_rows;
    int max_src, src_rows; /* 0: not seq2seq */
    void *block;
    struct buffers b;
    uint64_t packed_version; /* of the model, when its weights were packed; 0: not yet */
    int32_t *lengths;        /* (n_slots) tokens held */
    int32_t *src_lengths;    /* (n_slots) tokens of its source; 0: none yet */
    uint64_t *source_of;     /* (n_slots) number of its source, of those encoded so far */
    uint64_t n_sources;
    int32_t *staging; /* (max(work_rows, src_rows, n_slots + 1)) host side of an upload */
    bool *seen;       /* (n_slots) scratch of the checks */
};

static int work_rows(int n_slots, int max_len) {
    int64_t all = TG_MIN((int64_t)n_slots * max_len, (int64_t)PREFILL_ROWS);
    return TG_MAX(TG_MAX((int)all, max_len), n_slots);
}

static size_t kv_width(const tg_arch *a) {
    return (size_t)a->n_kv_heads * (size_t)a->head_dim;
}

/* Embeddings are normalised where they lie. */
static tg_embed_acts in_place(const tg_acts *a) {
    return (tg_embed_acts){.raw = a->x, .mean = a->mean1, .rstd = a->rstd1};
}

/* The source cache, and the encoder's buffers in the place from `shared` on. */
static void carve_source(tg_carve *c, const tg_arch *arch, tg_decoder_caps caps, size_t shared,
                         struct buffers *b, tg_trunk *t) {
    const tg_arch enc = tg_arch_encoder(arch);
    size_t S = (size_t)caps.slots, E = (size_t)work_rows(caps.slots, caps.src);
    size_t rows = (size_t)arch->n_layers * S * (size_t)caps.src;
    tg_carve over = {c->base, shared};
    tg_carve_shared_acts(&over, &enc, E, &b->enc.acts);
    b->enc.states = tg_carve_f32(&over, E, (size_t)arch->width);
    b->enc.mean = tg_carve_f32(&over, E, 1);
    b->enc.rstd = tg_carve_f32(&over, E, 1);
    c->used = TG_MAX(c->used, over.used);
    if (enc.embed_norm) b->enc.embed = in_place(&b->enc.acts);
    b->enc.tokens = tg_carve_i32(c, E);
    b->enc.positions = tg_carve_i32(c, E);
    b->src_k = tg_carve_f32(c, rows, kv_width(arch));
    b->src_v = tg_carve_f32(c, rows, kv_width(arch));
    int32_t **per_slot[] = {&b->src_begin, &b->src_end, &b->src_lengths};
    for (size_t i = 0; i < TG_COUNT_OF(per_slot); i++) *per_slot[i] = tg_carve_i32(c, S);
    tg_carve_tables(c, &enc, caps.src, false, t);
}

static void carve_decoder(tg_carve *c, const tg_arch *arch, tg_decoder_caps caps, struct buffers *b,
                          tg_trunk *t, tg_trunk *enc) {
    const int n_slots = caps.slots, max_len = caps.len;
    size_t S = (size_t)n_slots, W = (size_t)work_rows(n_slots, max_len), C = (size_t)arch->width;
    b->kv = (tg_kv_cache){.slots = n_slots, .len = max_len, .half = caps.half_cache};
    tg_carve_kv_cache(c, arch, &b->kv, (int)W);
    size_t shared = c->used;
    tg_carve_shared_acts(c, arch, W, &b->acts);
    if (arch->kind == TG_KIND_SEQ2SEQ) carve_source(c, arch, caps, shared, b, enc);
    int32_t **per_row[] = {&b->tokens, &b->positions};
    for (size_t i = 0; i < TG_COUNT_OF(per_row); i++) *per_row[i] = tg_carve_i32(c, W);
    tg_carve_tables(c, arch, max_len, false, t);
    tg_carve_packed(c, arch, t, caps.weights);
    if (arch->embed_norm) b->embed = in_place(&b->acts);
    if (arch->narrow_embed) b->embed.raw = b->acts.up; /* as wide, and free before the layers */
    int32_t **per_slot[] = {&b->offsets, &b->slots, &b->lengths, &b->cache_rows};
    for (size_t i = 0; i < TG_COUNT_OF(per_slot); i++) *per_slot[i] = tg_carve_i32(c, S + 1);
    b->last = tg_carve_f32(c, S, C);
    b->hidden = tg_carve_f32(c, S, C);
    b->mean = tg_carve_f32(c, S, 1);
    b->rstd = tg_carve_f32(c, S, 1);
    b->logits = tg_carve_f32(c, S, (size_t)arch->vocab_size);
}

size_t tg_decoder_bytes(const tg_arch *arch, tg_decoder_caps caps) {
    tg_carve c = {0};
    struct buffers b;
    tg_trunk t = {0}, enc;
    carve_decoder(&c, arch, caps, &b, &t, &enc);
    return c.used;
}

static tg_status make_block(tg_decoder *d, tg_decoder_caps caps, tg_error *err) {
    const tg_arch *arch = &d->m->arch;
    d->block = tg_backend_alloc(d->m->be, tg_decoder_bytes(arch, caps), err);
    if (!d->block) return TG_NOMEM;
    tg_carve c = {.base = d->block};
    carve_decoder(&c, arch, caps, &d->b, &d->trunk, &d->enc);
    tg_kv_cache_begin(&d->b.kv, d->m->be, arch, d->work_rows, d->staging);
    tg_status st = tg_trunk_fill_tables(&d->trunk, d->max_len, err);
    if (st == TG_OK && d->seq2seq) st = tg_trunk_fill_tables(&d->enc, d->max_src, err);
    return st;
}

static tg_status check_caps(const tg_arch *arch, tg_decoder_caps caps, tg_error *err) {
    if (arch->kind == TG_KIND_ENCODER)
        return tg_fail(err, TG_DATA, "model: %s is an encoder, which writes no text", arch->family);
    if (caps.half_cache && kv_width(arch) % 2)
        return tg_fail(err, TG_UNSUPPORTED,
                       "decoder: a bf16 cache of %d values a row: it must be even",
                       (int)kv_width(arch));
    const bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    TG_ASSERT(caps.slots > 0 && caps.len > 0 && (seq2seq ? caps.src > 0 : caps.src == 0));
    const int longest = TG_MAX(caps.len, caps.src);
    if (longest > arch->max_positions)
        return tg_fail(err, TG_DATA,
                       "decoder: sequences of up to %d tokens, but the model has %d positions",
                       longest, arch->max_positions);
    if ((int64_t)caps.slots * longest > INT32_MAX)
        return tg_fail(err, TG_DATA, "decoder: %d slots of %d tokens are too many", caps.slots,
                       longest);
    return TG_OK;
}

static tg_status make_lists(tg_decoder *d, tg_error *err) {
    size_t S = (size_t)d->n_slots;
    size_t staging = (size_t)TG_MAX(TG_MAX(d->work_rows * tg_kv_chunks(&d->m->arch), d->src_rows),
                                    d->n_slots + 1);
    d->lengths = tg_alloc_array(S, sizeof *d->lengths);
    d->src_lengths = tg_alloc_array(S, sizeof *d->src_lengths);
    d->source_of = tg_alloc_array(S, sizeof *d->source_of);
    d->staging = tg_alloc_array(staging, sizeof *d->staging);
    d->seen = tg_alloc_array(S, sizeof *d->seen);
    return d->lengths && d->src_lengths && d->source_of && d->staging && d->seen
               ? TG_OK
               : tg_fail_nomem(err, staging * sizeof *d->staging);
}

tg_status tg_decoder_create(tg_decoder **out, tg_model *m, tg_decoder_caps caps, tg_error *err) {
    *out = NULL;
    tg_status st = check_caps(&m->arch, caps, err);
    if (st != TG_OK) return st;
    tg_decoder *d = tg_alloc(sizeof *d);
    if (!d) return tg_fail_nomem(err, sizeof *d);
    d->m = m;
    d->seq2seq = m->arch.kind == TG_KIND_SEQ2SEQ;
    d->n_slots = caps.slots;
    d->max_len = caps.len;
    d->max_src = caps.src;
    d->work_rows = work_rows(caps.slots, caps.len);
    d->src_rows = d->seq2seq ? work_rows(caps.slots, caps.src) : 0;
    st = make_lists(d, err);
    if (st == TG_OK) st = tg_trunk_init(&d->trunk, m, TG_STACK_MAIN, err);
    if (st == TG_OK && d->seq2seq) st = tg_trunk_init(&d->enc, m, TG_STACK_ENCODER, err);
    if (st == TG_OK) st = make_block(d, caps, err);
    if (st != TG_OK) tg_decoder_destroy(&d);
    *out = d;
    return st;
}

void tg_decoder_destroy(tg_decoder **decoder) {
    tg_decoder *d = *decoder;
    if (!d) return;
    tg_backend_free(d->m->be, d->block);
    tg_trunk_fini(&d->trunk);
    tg_trunk_fini(&d->enc);
    tg_free(d->lengths);
    tg_free(d->src_lengths);
    tg_free(d->source_of);
    tg_free(d->staging);
    tg_free(d->seen);
    tg_free(d);
    *decoder = NULL;
}

int tg_decoder_length(const tg_decoder *d, int slot) {
    TG_ASSERT(slot >= 0 && slot < d->n_slots);
    return d->lengths[slot];
}

static tg_status check_slots(tg_decoder *d, const int32_t *slots, int n, tg_error *err) {
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

static tg_status check_tokens(const tg_trunk *t, const int32_t *tokens, int n, tg_error *err) {
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= t->arch.vocab_size)
            return tg_fail(err, TG_DATA, "decoder: token %d is %d, the vocabulary has %d", i,
                           tokens[i], t->arch.vocab_size);
    return TG_OK;
}

/* Final norm and logits of B rows, to the host. */
static void finish(tg_decoder *d, const float *rows, int B, float *logits) {
    const tg_trunk *t = &d->trunk;
    const struct buffers *b = &d->b;
    tg_trunk_final(t, b->hidden, b->mean, b->rstd, rows, B);
    tg_trunk_logits(t, b->logits, b->hidden, t->arch.narrow_embed ? b->acts.up : b->hidden, B);
    tg_backend_download(t->be, logits, b->logits,
                        (size_t)B * (size_t)t->arch.vocab_size * sizeof(float));
}

static size_t layer_floats(const tg_decoder *d, int rows) {
    return (size_t)d->n_slots * (size_t)rows * kv_width(&d->m->arch);
}

/* ---- sources ------------------------------------------------------------------------------------- */

static tg_status check_texts(const int32_t *offsets, int n, int max, const char *what,
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

/* Tokens, positions and offsets of the group's n texts. */
static void upload_texts(tg_decoder *d, int32_t *to_tokens, int32_t *to_positions,
                         const int32_t *tokens, const int32_t *offsets, int n) {
    tg_backend *be = d->m->be;
    int32_t *h = d->staging;
    int first = offsets[0], N = offsets[n] - first;
    tg_backend_upload(be, to_tokens, tokens + first, (size_t)N * sizeof *h);
    for (int s = 0; s < n; s++)
        for (int i = offsets[s]; i < offsets[s + 1]; i++)
            h[i - first] = i - offsets[s] + d->m->arch.pos_offset;
    tg_backend_upload(be, to_positions, h, (size_t)N * sizeof *h);
    for (int s = 0; s <= n; s++) h[s] = offsets[s] - first;
    tg_backend_upload(be, d->b.offsets, h, ((size_t)n + 1) * sizeof *h);
}

/* What every decoder layer attends to of the group's states, straight into the cache: a slot's rows lie together. */
static void store_sources(tg_decoder *d, const int32_t *slots, const int32_t *offsets, int n) {
    const tg_trunk *t = &d->trunk;
    const int C = t->arch.width, GD = (int)kv_width(&t->arch);
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
    const struct encoder *e = &d->b.enc;
    const tg_acts *a = &e->acts;
    const tg_heads at = tg_trunk_heads(&t->arch);
    const int N = offsets[n] - offsets[0];
    upload_texts(d, e->tokens, e->positions, tokens, offsets, n);
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
    tg_status st = check_slots(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    st = check_texts(offsets, n, d->max_src, "source", err);
    if (st == TG_OK) st = check_tokens(&d->enc, tokens, offsets[n], err);
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

static tg_status check_sources(const tg_decoder *d, const int32_t *slots, int n, tg_error *err) {
    for (int i = 0; d->seq2seq && i < n; i++)
        if (!d->src_lengths[slots[i]])
            return tg_fail(err, TG_DATA, "decoder: slot %d has no source", slots[i]);
    return TG_OK;
}

/* Where the sources of these slots lie. */
static void upload_sources(tg_decoder *d, const int32_t *slots, int n) {
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
static void cross(tg_decoder *d, int layer, int N, int n, bool step) {
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    if (!d->seq2seq) return;
    const int GD = (int)kv_width(&t->arch), HD = tg_trunk_attn_width(&t->arch);
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

/* ---- prefill ------------------------------------------------------------------------------------- */

/* The group's n sequences and their last rows. */
static void upload_group(tg_decoder *d, const int32_t *tokens, const int32_t *offsets, int n) {
    int32_t *h = d->staging;
    upload_texts(d, d->b.tokens, d->b.positions, tokens, offsets, n);
    for (int s = 0; s < n; s++) h[s] = offsets[s + 1] - offsets[0] - 1;
    tg_backend_upload(d->m->be, d->b.cache_rows, h, (size_t)n * sizeof *h);
}

static void prefill_group(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                          const int32_t *offsets, int n, float *logits) {
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    const tg_heads at = tg_trunk_heads(&t->arch);
    int N = offsets[n] - offsets[0];
    upload_group(d, tokens, offsets, n);
    upload_sources(d, slots, n);
    tg_trunk_bias(t);
    tg_trunk_embed(t, a->x, &d->b.embed, d->b.tokens, d->b.positions, N);
    for (int l = 0; l < t->arch.n_layers; l++) {
        tg_trunk_qkv(t, l, a, d->b.positions, N);
        for (int s = 0; s < n; s++)
            tg_kv_store_text(&d->b.kv, t, l, slots[s], a->qkv, offsets[s] - offsets[0],
                             offsets[s + 1] - offsets[s], a->att);
        t->be->ops->attention_forward(t->be, a->att, a->lse, a->qkv, a->qkv + at.k, a->qkv + at.v,
                                      at.stride, d->b.offsets, n, tg_trunk_attn(t, l));
        tg_trunk_mix(t, l, a, N);
        cross(d, l, N, n, false);
        tg_trunk_mlp(t, l, a, N);
    }
    t->be->ops->gather_rows(t->be, d->b.last, a->out, d->b.cache_rows, n, t->arch.width);
    finish(d, d->b.last, n, logits);
    for (int s = 0; s < n; s++) d->lengths[slots[s]] = offsets[s + 1] - offsets[s];
}

tg_status tg_decoder_prefill(tg_decoder *d, const int32_t *slots, const int32_t *tokens,
                             const int32_t *offsets, int n, float *logits, tg_error *err) {
    tg_status st = check_slots(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    st = check_texts(offsets, n, d->max_len, "prompt", err);
    if (st == TG_OK) st = check_tokens(&d->trunk, tokens, offsets[n], err);
    if (st == TG_OK) st = check_sources(d, slots, n, err);
    if (st != TG_OK) return st;
    if (d->packed_version != d->m->version) tg_packed_fill(&d->trunk);
    d->packed_version = d->m->version;
    size_t V = (size_t)d->m->arch.vocab_size;
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && offsets[to + 1] - offsets[from] <= d->work_rows;) to++;
        prefill_group(d, slots + from, tokens, offsets + from, to - from,
                      logits + (size_t)from * V);
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
    const struct buffers *b = &d->b;
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
    tg_status st = check_slots(d, slots, n, err);
    if (st == TG_OK) st = check_tokens(&d->trunk, tokens, n, err);
    if (st == TG_OK) st = check_room(d, slots, n, err);
    if (st != TG_OK || !n) return st;
    const tg_trunk *t = &d->trunk;
    const tg_acts *a = &d->b.acts;
    upload_step(d, slots, tokens, n);
    upload_sources(d, slots, n);
    tg_trunk_bias(t);
    tg_trunk_embed(t, a->x, &d->b.embed, d->b.tokens, d->b.positions, n);
    for (int l = 0; l < t->arch.n_layers; l++) {
        tg_trunk_qkv(t, l, a, d->b.positions, n);
        tg_kv_store_rows(&d->b.kv, t, l, a->qkv, d->b.cache_rows, n, a->att);
        attend_step(d, l, n);
        tg_trunk_mix(t, l, a, n);
        cross(d, l, n, n, true);
        tg_trunk_mlp(t, l, a, n);
    }
    finish(d, a->out, n, logits);
    for (int i = 0; i < n; i++) d->lengths[slots[i]]++;
    return TG_OK;
}

/* ---- fork ---------------------------------------------------------------------------------------- */

/* Slots that already share a source, as the beams of a prompt do, copy nothing. */
static void fork_source(tg_decoder *d, int from, int to) {
    tg_backend *be = d->m->be;
    if (!d->seq2seq || d->source_of[to] == d->source_of[from]) return;
    const size_t GD = kv_width(&d->m->arch), slot = (size_t)d->max_src * GD;
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
    fork_source(d, from, to);
    d->lengths[to] = length;
    return TG_OK;
}
