/* The forward half of a pass: validation, the stacks of layers, heads at the action rows. */
#include "common/nn/pass_state.h"

#include "common/base/check.h"

static tg_status check_sizes(const tg_pass *p, const tg_batch *b, tg_error *err) {
    const struct {
        const char *what;
        int n, min, max;
    } sizes[] = {{"tokens", b->n_tokens, 1, p->caps.tokens},
                 {"sequences", b->n_seqs, 1, p->caps.seqs},
                 {"actions", b->n_actions, 0, p->caps.actions},
                 {"source tokens", b->n_src, p->seq2seq, p->caps.src}};
    for (size_t i = 0; i < TG_COUNT_OF(sizes); i++)
        if (sizes[i].n < sizes[i].min || sizes[i].n > sizes[i].max)
            return tg_fail(err, TG_DATA, "batch: %d %s, expected %d to %d", sizes[i].n,
                           sizes[i].what, sizes[i].min, sizes[i].max);
    return TG_OK;
}

/* Sequences or sources: `what`. */
static tg_status check_texts(const tg_arch *arch, const char *what, const int32_t *tokens, int n,
                             const int32_t *offsets, int n_seqs, tg_error *err) {
    if (offsets[0] != 0 || offsets[n_seqs] != n)
        return tg_fail(err, TG_DATA, "batch: %s offsets run from %d to %d, expected 0 to %d", what,
                       offsets[0], offsets[n_seqs], n);
    for (int s = 0; s < n_seqs; s++) {
        int begin = offsets[s], end = offsets[s + 1];
        if (end <= begin || end > n)
            return tg_fail(err, TG_DATA, "batch: %s %d runs from token %d to %d", what, s, begin,
                           end);
        if (end - begin > tg_arch_longest(arch))
            return tg_fail(err, TG_DATA, "batch: %s %d has %d tokens, the model has %d positions",
                           what, s, end - begin, tg_arch_longest(arch));
    }
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= arch->vocab_size)
            return tg_fail(err, TG_DATA, "batch: %s token %d is %d, the vocabulary has %d", what, i,
                           tokens[i], arch->vocab_size);
    return TG_OK;
}

static tg_status check_actions(const tg_pass *p, const tg_batch *b, tg_error *err) {
    const size_t words = (size_t)tg_mask_words(p->m->arch.vocab_size);
    if (p->caps.actions_only && (!b->actions_only || !b->n_actions))
        return tg_fail(err, TG_BUG, "pass: a batch that is not of actions only, as the caps say");
    if (b->mask && !p->caps.masked)
        return tg_fail(err, TG_BUG, "pass: a batch with masks, which the caps exclude");
    for (int i = 0; i < b->n_actions; i++) {
        if (b->act_row[i] < 0 || b->act_row[i] >= b->n_tokens)
            return tg_fail(err, TG_DATA, "batch: action %d is at row %d of %d", i, b->act_row[i],
                           b->n_tokens);
        if (b->act_token[i] < 0 || b->act_token[i] >= p->m->arch.vocab_size)
            return tg_fail(err, TG_DATA, "batch: action %d is token %d, the vocabulary has %d", i,
                           b->act_token[i], p->m->arch.vocab_size);
        if (b->mask &&
            !(b->mask[(size_t)i * words + (size_t)b->act_token[i] / 32] >> (b->act_token[i] % 32) &
              1))
            return tg_fail(err, TG_DATA, "batch: action %d is token %d, which its mask forbids", i,
                           b->act_token[i]);
    }
    return TG_OK;
}

static tg_status check_types(const tg_arch *arch, const tg_batch *b, tg_error *err) {
    for (int i = 0; b->types && i < b->n_tokens; i++)
        if (b->types[i] < 0 || b->types[i] >= TG_MAX(arch->n_types, 1))
            return tg_fail(err, TG_DATA, "batch: token %d is of type %d, the model has %d types", i,
                           b->types[i], arch->n_types);
    return TG_OK;
}

static tg_status check_batch(const tg_pass *p, const tg_batch *b, tg_pass_out out, tg_error *err) {
    const tg_arch *arch = &p->m->arch;
    tg_status st = check_sizes(p, b, err);
    if (st == TG_OK)
        st = check_texts(arch, "sequence", b->tokens, b->n_tokens, b->offsets, b->n_seqs, err);
    if (st == TG_OK && p->seq2seq)
        st = check_texts(&p->enc.trunk.arch, "source", b->src_tokens, b->n_src, b->src_offsets,
                         b->n_seqs, err);
    if (st == TG_OK) st = check_types(arch, b, err);
    if (st == TG_OK) st = check_actions(p, b, err);
    if (st != TG_OK) return st;
    if (out.value && !arch->value_head)
        return tg_fail(err, TG_BUG, "pass: values asked of a model without a value head");
    if ((out.logp || out.entropy) && !p->main.trunk.top.w[TG_ROLE_HEAD_W])
        return tg_fail(err, TG_BUG, "pass: log-probs asked of a model without a language head");
    return TG_OK;
}

/* The same where a pad token inside a text does not count, and has the row before the first. */
static void positions_without_pad(tg_pass *p, const tg_arch *arch, const int32_t *tokens,
                                  const int32_t *offsets) {
    for (int k = 0; k < p->n_seqs; k++)
        for (int i = offsets[k], at = arch->pos_offset; i < offsets[k + 1]; i++)
            p->host_positions[i] = tokens[i] == arch->pad_id ? arch->pos_offset - 1 : at++;
}

/* Tokens, offsets and positions, which begin anew with each sequence. */
static void upload_stack(tg_pass *p, tg_pass_stack *s, const int32_t *tokens, int n,
                         const int32_t *offsets) {
    tg_backend *be = p->m->be;
    for (int k = 0, used = 0; k < p->n_seqs; k++) {
        const int first = tg_trunk_place_text(&s->trunk, offsets[k + 1] - offsets[k], &used);
        for (int i = offsets[k]; i < offsets[k + 1]; i++)
            p->host_positions[i] = i - offsets[k] + first;
    }
    if (s->trunk.arch.skip_pad) positions_without_pad(p, &s->trunk.arch, tokens, offsets);
    s->n_tokens = n;
    tg_backend_upload(be, s->tokens, tokens, (size_t)n * sizeof(int32_t));
    tg_backend_upload(be, s->positions, p->host_positions, (size_t)n * sizeof(int32_t));
    tg_backend_upload(be, s->offsets, offsets, ((size_t)p->n_seqs + 1) * sizeof(int32_t));
}

static void upload_batch(tg_pass *p, const tg_batch *batch) {
    tg_backend *be = p->m->be;
    size_t A = (size_t)batch->n_actions;
    upload_stack(p, &p->main, batch->tokens, batch->n_tokens, batch->offsets);
    if (p->seq2seq) upload_stack(p, &p->enc, batch->src_tokens, batch->n_src, batch->src_offsets);
    size_t N = (size_t)batch->n_tokens;
    if (p->m->arch.types && batch->types)
        tg_backend_upload(be, p->main.embed.types, batch->types, N * sizeof(int32_t));
    else if (p->m->arch.types) /* all bits zero: the first type */
        be->ops->fill(be, (float *)(void *)p->main.embed.types, 0.0f, N);
    if (!A) return;
    tg_backend_upload(be, p->b.act_row, batch->act_row, A * sizeof(int32_t));
    tg_backend_upload(be, p->b.act_token, batch->act_token, A * sizeof(int32_t));
    if (batch->mask)
        tg_backend_upload(be, p->b.mask, batch->mask,
                          A * (size_t)tg_mask_words(p->m->arch.vocab_size) * sizeof(uint32_t));
}

/* Decoder rows attend to the source's states. */
static void run_cross(tg_pass *p, const tg_trunk *t, int layer, const tg_acts *a, int N) {
    const int GD = tg_trunk_kv_width(&t->arch), C = t->arch.width;
    tg_trunk_query(t, layer, a, N);
    tg_trunk_linear(t, &t->layers[layer], TG_ROLE_CROSS_K_W, a->ckv, p->b.states, p->enc.n_tokens,
                    2 * GD, C, false);
    t->be->ops->attention_forward(t->be, a->catt, a->clse, a->cq, a->ckv, a->ckv + GD,
                                  tg_trunk_attn_width(&t->arch), p->main.offsets, p->n_seqs,
                                  tg_pass_source(p));
    tg_trunk_cross(t, layer, a, N);
}

tg_pass_rows tg_pass_rows_of(const tg_pass *p, const tg_pass_stack *s, int layer) {
    tg_pass_rows r = {s->layers[layer], s->n_tokens};
    if (!tg_pass_is_cut(p, s, layer)) return r;
    r.n = p->n_actions;
    r.a.x = p->b.cut_x, r.a.att = p->b.cut_att, r.a.out = p->b.rows;
    if (s->trunk.arch.parallel) r.a.mid = r.a.cmid = r.a.out;
    if (s->trunk.arch.norm_stream) r.a.norm = r.a.x; /* which nothing else reads */
    return r;
}

void tg_pass_layer(tg_pass *p, const tg_pass_stack *s, int layer, bool to_up) {
    const tg_trunk *t = &s->trunk;
    const tg_heads at = tg_trunk_heads(&t->arch);
    const tg_acts *a = &s->layers[layer];
    const tg_pass_rows rows = tg_pass_rows_of(p, s, layer);
    const tg_ops *ops = t->be->ops;
    tg_trunk_qkv(t, layer, a, s->positions, s->n_tokens);
    ops->attention_forward(t->be, a->att, a->lse, a->qkv, a->qkv + at.k, a->qkv + at.v, at.stride,
                           s->offsets, p->n_seqs, tg_trunk_attn(t, layer));
    if (tg_pass_is_cut(p, s, layer)) {
        ops->gather_rows(t->be, rows.a.x, t->arch.norm_stream ? a->norm : a->x, p->b.act_row,
                         rows.n, t->arch.width);
        ops->gather_rows(t->be, rows.a.att, a->att, p->b.act_row, rows.n,
                         tg_trunk_attn_width(&t->arch));
    }
    tg_trunk_mix(t, layer, &rows.a, rows.n);
    if (t->arch.kind == TG_KIND_SEQ2SEQ) run_cross(p, t, layer, a, rows.n);
    if (to_up && !t->arch.parallel && !tg_trunk_keeps_post(&t->arch))
        tg_trunk_up(t, layer, &rows.a, rows.n);
    else
        tg_trunk_mlp(t, layer, &rows.a, rows.n);
}

static void run_stack(tg_pass *p, tg_pass_stack *s) {
    const tg_trunk *t = &s->trunk;
    tg_trunk_bias(t);
    tg_trunk_embed(t, s->layers[0].x, &s->embed, s->tokens, s->positions, s->n_tokens);
    for (int l = 0; l < t->arch.n_layers; l++) tg_pass_layer(p, s, l, false);
    s->held = t->arch.n_layers - 1;
}

/* Only the rows that carry an action pass the final norm and the heads. */
static void run_heads(tg_pass *p) {
    const tg_trunk *t = &p->main.trunk;
    const tg_pass_buffers *b = &p->b;
    const tg_ops *ops = t->be->ops;
    int A = p->n_actions, C = t->arch.width;
    if (!A) return;
    if (!p->cut) ops->gather_rows(t->be, b->rows, tg_pass_last_rows(&p->main), b->act_row, A, C);
    tg_trunk_final(t, b->hidden, b->mean, b->rstd, b->rows, A);
    p->kept_whole = p->b.kept != NULL;
    if (p->has_lm)
        ops->head_forward(t->be, b->logp, b->entropy, b->lse, tg_trunk_lm(t, b->lm, b->hidden, A),
                          t->top.w[TG_ROLE_HEAD_W], b->act_token, A, tg_trunk_embed_width(&t->arch),
                          t->arch.vocab_size, tg_pass_head(p));
    if (p->has_value)
        ops->matmul(t->be, b->value, b->hidden, t->top.w[TG_ROLE_VALUE_W], A, 1, C, false, true,
                    false, false);
}

tg_status tg_pass_forward(tg_pass *p, const tg_batch *batch, tg_pass_out out, tg_error *err) {
    tg_status st = check_batch(p, batch, out, err);
    if (st != TG_OK) return st;
    p->n_seqs = batch->n_seqs;
    p->n_actions = batch->n_actions;
    p->has_lm = out.logp || out.entropy;
    p->has_value = out.value != NULL;
    p->has_labels = false;
    p->has_mask = batch->mask != NULL;
    p->cut = batch->actions_only && !p->whole && !p->seq2seq && batch->n_actions > 0 &&
             batch->n_actions < batch->n_tokens;
    upload_batch(p, batch);
    if (p->seq2seq) {
        run_stack(p, &p->enc);
        tg_trunk_final(&p->enc.trunk, p->b.states, p->b.smean, p->b.srstd,
                       tg_pass_last_rows(&p->enc), p->enc.n_tokens);
    }
    run_stack(p, &p->main);
    run_heads(p);
    size_t bytes = (size_t)p->n_actions * sizeof(float);
    if (out.logp && bytes) tg_backend_download(p->m->be, out.logp, p->b.logp, bytes);
    if (out.entropy && bytes) tg_backend_download(p->m->be, out.entropy, p->b.entropy, bytes);
    if (out.value && bytes) tg_backend_download(p->m->be, out.value, p->b.value, bytes);
    return TG_OK;
}

/* ---- reading the last forward -------------------------------------------------------------------- */

static tg_status check_rows(const tg_pass *p, const tg_pass_stack *s, const int32_t *rows, int n,
                            tg_error *err) {
    if (p->cut) return tg_fail(err, TG_BUG, "pass: rows asked of a forward of actions only");
    if (!s->n_tokens) return tg_fail(err, TG_BUG, "pass: rows asked before a forward");
    for (int i = 0; i < n; i++)
        if (rows[i] < 0 || rows[i] >= s->n_tokens)
            return tg_fail(err, TG_DATA, "pass: row %d of %d", rows[i], s->n_tokens);
    return TG_OK;
}

/* Rows of a device table (., C) to the host, by way of a small buffer: `make` turns k rows at logit_x into the k results of `width` floats that
 * it returns. */
typedef const float *make_fn(const tg_pass *p, int k);
static void read_rows(tg_pass *p, const float *table, const int32_t *rows, int n, make_fn *make,
                      size_t width, float *out) {
    tg_backend *be = p->m->be;
    const tg_pass_buffers *b = &p->b;
    int piece = TG_MIN(TG_PASS_LOGIT_ROWS, TG_MAX(p->caps.tokens, p->caps.src));
    for (int at = 0; at < n; at += piece) {
        int k = TG_MIN(n - at, piece);
        tg_backend_upload(be, b->logit_rows, rows + at, (size_t)k * sizeof(int32_t));
        be->ops->gather_rows(be, b->logit_x, table, b->logit_rows, k, p->m->arch.width);
        tg_backend_download(be, out + (size_t)at * width, make(p, k),
                            (size_t)k * width * sizeof(float));
    }
}

static const float *make_nothing(const tg_pass *p, int k) {
    (void)k;
    return p->b.logit_x;
}

static const float *make_states(const tg_pass *p, int k) {
    const tg_pass_buffers *b = &p->b;
    tg_trunk_final(&p->main.trunk, b->logit_h, b->logit_mean, b->logit_rstd, b->logit_x, k);
    return b->logit_h;
}

static const float *make_logits(const tg_pass *p, int k) {
    make_states(p, k);
    tg_trunk_logits(&p->main.trunk, p->b.logits, p->b.logit_h, p->b.logit_lm, k);
    return p->b.logits;
}

tg_status tg_pass_states(tg_pass *p, const int32_t *rows, int n, float *states, tg_error *err) {
    tg_status st = check_rows(p, &p->main, rows, n, err);
    if (st == TG_OK)
        read_rows(p, tg_pass_last_rows(&p->main), rows, n, make_states, (size_t)p->m->arch.width,
                  states);
    return st;
}

tg_status tg_pass_source_states(tg_pass *p, const int32_t *rows, int n, float *states,
                                tg_error *err) {
    if (!p->seq2seq) return tg_fail(err, TG_BUG, "pass: source states of a model without encoder");
    tg_status st = check_rows(p, &p->enc, rows, n, err);
    if (st == TG_OK)
        read_rows(p, p->b.states, rows, n, make_nothing, (size_t)p->m->arch.width, states);
    return st;
}

tg_status tg_pass_logits(tg_pass *p, const int32_t *rows, int n, float *logits, tg_error *err) {
    tg_status st = check_rows(p, &p->main, rows, n, err);
    if (st == TG_OK && !p->main.trunk.top.w[TG_ROLE_HEAD_W])
        st = tg_fail(err, TG_BUG, "pass: logits asked of a model without a language head");
    if (st == TG_OK)
        read_rows(p, tg_pass_last_rows(&p->main), rows, n, make_logits,
                  (size_t)p->m->arch.vocab_size, logits);
    return st;
}
