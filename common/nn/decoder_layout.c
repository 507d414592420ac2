/* The memory of a decoder: one device block, laid out by carve_decoder(), which also answers tg_decoder_bytes; and the host's lists. */
#include "common/nn/decoder_state.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

static int work_rows(int n_slots, int max_len) {
    int64_t all = TG_MIN((int64_t)n_slots * max_len, (int64_t)TG_DECODER_ROWS);
    return TG_MAX(TG_MAX((int)all, max_len), n_slots);
}

/* Embeddings are normalised where they lie. */
static tg_embed_acts in_place(const tg_acts *a) {
    return (tg_embed_acts){.raw = a->x, .mean = a->mean1, .rstd = a->rstd1};
}

/* The source cache, and the encoder's buffers in the place from `shared` on. */
static void carve_source(tg_carve *c, const tg_arch *arch, tg_decoder_caps caps, size_t shared,
                         struct tg_decoder_buffers *b, tg_trunk *t) {
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
    b->src_k = tg_carve_f32(c, rows, tg_decoder_kv_width(arch));
    b->src_v = tg_carve_f32(c, rows, tg_decoder_kv_width(arch));
    int32_t **per_slot[] = {&b->src_begin, &b->src_end, &b->src_lengths};
    for (size_t i = 0; i < TG_COUNT_OF(per_slot); i++) *per_slot[i] = tg_carve_i32(c, S);
    tg_carve_tables(c, &enc, caps.src, 0, false, t);
}

static void carve_decoder(tg_carve *c, const tg_arch *arch, tg_decoder_caps caps,
                          struct tg_decoder_buffers *b, tg_trunk *t, tg_trunk *enc) {
    const int n_slots = caps.slots, max_len = caps.len;
    size_t S = (size_t)n_slots, W = (size_t)work_rows(n_slots, max_len), C = (size_t)arch->width;
    b->kv = (tg_kv_cache){.slots = n_slots, .len = max_len, .half = caps.half_cache};
    tg_carve_kv_cache(c, arch, &b->kv, (int)W);
    size_t shared = c->used;
    tg_carve_shared_acts(c, arch, W, &b->acts);
    if (arch->kind == TG_KIND_SEQ2SEQ) carve_source(c, arch, caps, shared, b, enc);
    int32_t **per_row[] = {&b->tokens, &b->positions};
    for (size_t i = 0; i < TG_COUNT_OF(per_row); i++) *per_row[i] = tg_carve_i32(c, W);
    tg_carve_tables(c, arch, max_len, max_len > arch->max_positions ? (int)W : 0, false, t);
    tg_carve_packed(c, arch, t, caps.weights);
    if (arch->embed_norm) b->embed = in_place(&b->acts);
    if (arch->narrow_embed) b->embed.raw = b->acts.up; /* as wide, and free before the layers */
    int32_t **per_slot[] = {&b->offsets, &b->slots, &b->lengths, &b->cache_rows};
    for (size_t i = 0; i < TG_COUNT_OF(per_slot); i++) *per_slot[i] = tg_carve_i32(c, S + 1);
    b->last = tg_carve_f32(c, S, C);
    b->last_att =
        arch->kind == TG_KIND_CAUSAL ? tg_carve_f32(c, S, (size_t)tg_trunk_attn_width(arch)) : NULL;
    b->hidden = tg_carve_f32(c, S, C);
    b->mean = tg_carve_f32(c, S, 1);
    b->rstd = tg_carve_f32(c, S, 1);
    b->logits = tg_carve_f32(c, S, (size_t)arch->vocab_size);
    b->value = caps.values ? tg_carve_f32(c, S, 1) : NULL;
}

size_t tg_decoder_bytes(const tg_arch *arch, tg_decoder_caps caps) {
    tg_carve c = {0};
    struct tg_decoder_buffers b;
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
    tg_status st = tg_trunk_fill_tables(&d->trunk, err);
    if (st == TG_OK && d->seq2seq) st = tg_trunk_fill_tables(&d->enc, err);
    return st;
}

static tg_status check_caps(const tg_arch *arch, tg_decoder_caps caps, tg_error *err) {
    if (arch->kind == TG_KIND_ENCODER || arch->labels)
        return tg_fail(err, TG_DATA, "model: %s %s writes no text", arch->family,
                       arch->labels ? "with labels" : "is an encoder, which");
    if (caps.half_cache && tg_decoder_kv_width(arch) % 2)
        return tg_fail(err, TG_UNSUPPORTED,
                       "decoder: a bf16 cache of %d values a row: it must be even",
                       (int)tg_decoder_kv_width(arch));
    if (caps.values && !arch->value_head)
        return tg_fail(err, TG_BUG, "decoder: values asked of a model without a value head");
    const bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    TG_ASSERT(caps.slots > 0 && caps.len > 0 && (seq2seq ? caps.src > 0 : caps.src == 0));
    const int longest = TG_MAX(caps.len, caps.src);
    if (longest > tg_arch_longest(arch))
        return tg_fail(err, TG_DATA,
                       "decoder: sequences of up to %d tokens, but the model has %d positions",
                       longest, tg_arch_longest(arch));
    if ((int64_t)caps.slots * longest > INT32_MAX)
        return tg_fail(err, TG_DATA, "decoder: %d slots of %d tokens are too many", caps.slots,
                       longest);
    return TG_OK;
}

static tg_status make_lists(tg_decoder *d, bool values, tg_error *err) {
    size_t S = (size_t)d->n_slots;
    size_t staging = (size_t)TG_MAX(TG_MAX(d->work_rows * tg_kv_chunks(&d->m->arch), d->src_rows),
                                    d->n_slots + 1);
    d->lengths = tg_alloc_array(S, sizeof *d->lengths);
    d->src_lengths = tg_alloc_array(S, sizeof *d->src_lengths);
    d->source_of = tg_alloc_array(S, sizeof *d->source_of);
    d->staging = tg_alloc_array(staging, sizeof *d->staging);
    d->seen = tg_alloc_array(S, sizeof *d->seen);
    if (values) d->values = tg_alloc_array(S, sizeof *d->values);
    return (d->values || !values) && d->lengths && d->src_lengths && d->source_of && d->staging &&
                   d->seen
               ? TG_OK
               : tg_fail_nomem(err, staging * sizeof *d->staging);
}

tg_status tg_decoder_create(tg_decoder **out, tg_model *m, tg_decoder_caps caps, tg_error *err) {
    *out = NULL;
    tg_status st = check_caps(&m->arch, caps, err);
    if (st == TG_OK && m->half) st = tg_fail(err, TG_BUG, "decoder: of a halved model");
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
    st = make_lists(d, caps.values, err);
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
    tg_free(d->values);
    tg_free(d->lengths);
    tg_free(d->src_lengths);
    tg_free(d->source_of);
    tg_free(d->staging);
    tg_free(d->seen);
    tg_free(d);
    *decoder = NULL;
}
