/* The forward half of a pass: validation, trunk, heads at the action rows. All device memory is one block, laid out by
 * carve_pass(), which also answers tg_pass_bytes: plan and reality are the same code. */
#include "common/nn/pass_state.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

/* One layer's own buffers; the scratch ones are shared. */
static void carve_layer(tg_carve *c, const tg_arch *arch, size_t N, tg_acts *a) {
    size_t C = (size_t)arch->width;
    a->mean1 = tg_carve_f32(c, N, 1);
    a->rstd1 = tg_carve_f32(c, N, 1);
    a->qkv = a->raw = tg_carve_f32(c, N, (size_t)tg_trunk_qkv_width(arch));
    if (arch->qk_norm) {
        a->raw = tg_carve_f32(c, N, (size_t)tg_trunk_qkv_width(arch));
        a->rstd_q = tg_carve_f32(c, N, (size_t)arch->n_heads);
        a->rstd_k = tg_carve_f32(c, N, (size_t)arch->n_kv_heads);
    }
    if (arch->post_norms) {
        float **each[] = {&a->mean3, &a->rstd3, &a->mean4, &a->rstd4};
        for (size_t i = 0; i < TG_COUNT_OF(each); i++) *each[i] = tg_carve_f32(c, N, 1);
        a->post1 = tg_carve_f32(c, N, C);
        a->post2 = tg_carve_f32(c, N, C);
    }
    a->att = tg_carve_f32(c, N, (size_t)tg_trunk_attn_width(arch));
    a->lse = tg_carve_f32(c, N, (size_t)arch->n_heads);
    if (!arch->parallel) a->mid = tg_carve_f32(c, N, C);
    a->mean2 = tg_carve_f32(c, N, 1);
    a->rstd2 = tg_carve_f32(c, N, 1);
    a->up = tg_carve_f32(c, N, (size_t)tg_trunk_up_width(arch));
    a->out = tg_carve_f32(c, N, C);
    if (arch->parallel) a->mid = a->out;
}

static void carve_train(tg_carve *c, const tg_arch *arch, tg_pass_caps caps, tg_pass_buffers *b,
                        tg_acts *layers) {
    size_t N = (size_t)caps.tokens, A = (size_t)caps.actions, C = (size_t)arch->width;
    size_t wide = (size_t)TG_MAX(tg_trunk_qkv_width(arch), tg_trunk_up_width(arch));
    size_t narrow = (size_t)TG_MAX(arch->width, tg_trunk_attn_width(arch));
    b->dlogp = tg_carve_f32(c, A, 1);
    b->dentropy = tg_carve_f32(c, A, 1);
    b->dvalue = tg_carve_f32(c, A, 1);
    b->dx = tg_carve_f32(c, N, C);
    b->d1 = tg_carve_f32(c, TG_MAX(N, A), narrow);
    b->d2 = tg_carve_f32(c, TG_MAX(N, A), narrow);
    b->dy = arch->parallel || arch->post_norms ? tg_carve_f32(c, N, C) : NULL;
    b->wide = b->act = tg_carve_f32(c, N, wide);
    if (arch->gated) b->act = tg_carve_f32(c, N, (size_t)arch->mlp_width);
    float *x = tg_carve_f32(c, N, C);
    for (int l = 0; l < arch->n_layers; l++) {
        tg_acts a = {.x = x, .norm = b->d1, .act = b->act};
        carve_layer(c, arch, N, &a);
        x = a.out;
        if (layers) layers[l] = a;
    }
}

/* Positions that a pass can meet. */
static int positions_of(const tg_arch *arch, tg_pass_caps caps) {
    return TG_MIN(caps.tokens, arch->max_positions);
}

static void carve_pass(tg_carve *c, const tg_arch *arch, tg_pass_caps caps, bool train,
                       tg_pass_buffers *b, tg_acts *layers, tg_trunk *t) {
    size_t N = (size_t)caps.tokens, A = (size_t)caps.actions, C = (size_t)arch->width;
    b->tokens = tg_carve_i32(c, N);
    b->positions = tg_carve_i32(c, N);
    b->offsets = tg_carve_i32(c, (size_t)caps.seqs + 1);
    b->act_row = tg_carve_i32(c, A);
    b->act_token = tg_carve_i32(c, A);
    b->rows = tg_carve_f32(c, A, C);
    b->hidden = tg_carve_f32(c, A, C);
    float **per_action[] = {&b->mean, &b->rstd, &b->logp, &b->entropy, &b->lse, &b->value};
    for (size_t i = 0; i < TG_COUNT_OF(per_action); i++) *per_action[i] = tg_carve_f32(c, A, 1);
    size_t n = TG_MIN((size_t)TG_PASS_LOGIT_ROWS, N);
    b->logit_rows = tg_carve_i32(c, n);
    b->logit_x = tg_carve_f32(c, n, C);
    b->logit_h = tg_carve_f32(c, n, C);
    b->logit_mean = tg_carve_f32(c, n, 1);
    b->logit_rstd = tg_carve_f32(c, n, 1);
    b->logits = tg_carve_f32(c, n, (size_t)arch->vocab_size);
    tg_carve_tables(c, arch, positions_of(arch, caps), t);
    if (arch->embed_norm)
        b->embed =
            (tg_embed_acts){tg_carve_f32(c, N, C), tg_carve_f32(c, N, 1), tg_carve_f32(c, N, 1)};
    if (train) {
        carve_train(c, arch, caps, b, layers);
        return;
    }
    tg_acts shared = {0};
    tg_carve_shared_acts(c, arch, N, &shared);
    for (int l = 0; layers && l < arch->n_layers; l++) layers[l] = shared;
}

size_t tg_pass_bytes(const tg_arch *arch, tg_pass_caps caps, bool train) {
    tg_carve c = {0};
    tg_pass_buffers b = {0};
    tg_trunk t;
    carve_pass(&c, arch, caps, train, &b, NULL, &t);
    return c.used;
}

tg_status tg_pass_create(tg_pass **out, tg_model *m, tg_pass_caps caps, bool train, tg_error *err) {
    *out = NULL;
    TG_ASSERT(caps.tokens > 0 && caps.seqs > 0 && caps.actions >= 0);
    if (train && !m->grad)
        return tg_fail(err, TG_BUG, "pass: training a model opened without gradients");
    tg_pass *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->m = m;
    p->caps = caps;
    p->train = train;
    p->layers = tg_alloc_array((size_t)m->arch.n_layers, sizeof *p->layers);
    p->host_positions = tg_alloc_array((size_t)caps.tokens, sizeof *p->host_positions);
    tg_status st = tg_trunk_init(&p->trunk, m, err);
    if (st == TG_OK && (!p->layers || !p->host_positions))
        st = tg_fail_nomem(err, (size_t)caps.tokens * sizeof(int32_t));
    if (st == TG_OK) {
        p->block = tg_backend_alloc(m->be, tg_pass_bytes(&m->arch, caps, train), err);
        if (!p->block) st = TG_NOMEM;
    }
    if (st == TG_OK) {
        tg_carve c = {.base = p->block};
        carve_pass(&c, &m->arch, caps, train, &p->b, p->layers, &p->trunk);
        st = tg_trunk_fill_tables(&p->trunk, positions_of(&m->arch, caps), err);
    }
    if (st != TG_OK) tg_pass_destroy(&p);
    *out = p;
    return st;
}

void tg_pass_destroy(tg_pass **pass) {
    tg_pass *p = *pass;
    if (!p) return;
    tg_backend_free(p->m->be, p->block);
    tg_trunk_fini(&p->trunk);
    tg_free(p->layers);
    tg_free(p->host_positions);
    tg_free(p);
    *pass = NULL;
}

static tg_status check_sizes(const tg_pass *p, const tg_batch *b, tg_error *err) {
    const struct {
        const char *what;
        int n, min, max;
    } sizes[] = {{"tokens", b->n_tokens, 1, p->caps.tokens},
                 {"sequences", b->n_seqs, 1, p->caps.seqs},
                 {"actions", b->n_actions, 0, p->caps.actions}};
    for (size_t i = 0; i < TG_COUNT_OF(sizes); i++)
        if (sizes[i].n < sizes[i].min || sizes[i].n > sizes[i].max)
            return tg_fail(err, TG_DATA, "batch: %d %s, expected %d to %d", sizes[i].n,
                           sizes[i].what, sizes[i].min, sizes[i].max);
    return TG_OK;
}

/* Also fills host_positions. */
static tg_status check_sequences(tg_pass *p, const tg_batch *b, tg_error *err) {
    const tg_arch *arch = &p->m->arch;
    if (b->offsets[0] != 0 || b->offsets[b->n_seqs] != b->n_tokens)
        return tg_fail(err, TG_DATA, "batch: offsets run from %d to %d, expected 0 to %d",
                       b->offsets[0], b->offsets[b->n_seqs], b->n_tokens);
    for (int s = 0; s < b->n_seqs; s++) {
        int begin = b->offsets[s], end = b->offsets[s + 1];
        if (end <= begin || end > b->n_tokens)
            return tg_fail(err, TG_DATA, "batch: sequence %d runs from token %d to %d", s, begin,
                           end);
        if (end - begin > arch->max_positions)
            return tg_fail(err, TG_DATA,
                           "batch: sequence %d has %d tokens, the model has %d positions", s,
                           end - begin, arch->max_positions);
        for (int i = begin; i < end; i++) p->host_positions[i] = i - begin + arch->pos_offset;
    }
    for (int i = 0; i < b->n_tokens; i++)
        if (b->tokens[i] < 0 || b->tokens[i] >= arch->vocab_size)
            return tg_fail(err, TG_DATA, "batch: token %d is %d, the vocabulary has %d", i,
                           b->tokens[i], arch->vocab_size);
    return TG_OK;
}

static tg_status check_actions(const tg_pass *p, const tg_batch *b, tg_error *err) {
    for (int i = 0; i < b->n_actions; i++) {
        if (b->act_row[i] < 0 || b->act_row[i] >= b->n_tokens)
            return tg_fail(err, TG_DATA, "batch: action %d is at row %d of %d", i, b->act_row[i],
                           b->n_tokens);
        if (b->act_token[i] < 0 || b->act_token[i] >= p->m->arch.vocab_size)
            return tg_fail(err, TG_DATA, "batch: action %d is token %d, the vocabulary has %d", i,
                           b->act_token[i], p->m->arch.vocab_size);
    }
    return TG_OK;
}

static void upload_batch(tg_pass *p, const tg_batch *batch) {
    tg_backend *be = p->m->be;
    const tg_pass_buffers *b = &p->b;
    size_t N = (size_t)batch->n_tokens, A = (size_t)batch->n_actions;
    tg_backend_upload(be, b->tokens, batch->tokens, N * sizeof(int32_t));
    tg_backend_upload(be, b->positions, p->host_positions, N * sizeof(int32_t));
    tg_backend_upload(be, b->offsets, batch->offsets,
                      ((size_t)batch->n_seqs + 1) * sizeof(int32_t));
    if (!A) return;
    tg_backend_upload(be, b->act_row, batch->act_row, A * sizeof(int32_t));
    tg_backend_upload(be, b->act_token, batch->act_token, A * sizeof(int32_t));
}

static void run_trunk(tg_pass *p) {
    const tg_trunk *t = &p->trunk;
    const tg_heads at = tg_trunk_heads(t->arch);
    int N = p->n_tokens;
    tg_trunk_embed(t, p->layers[0].x, &p->b.embed, p->b.tokens, p->b.positions, N);
    for (int l = 0; l < t->arch->n_layers; l++) {
        const tg_acts *a = &p->layers[l];
        tg_trunk_qkv(t, l, a, p->b.positions, N);
        t->be->ops->attention_forward(t->be, a->att, a->lse, a->qkv, a->qkv + at.k, a->qkv + at.v,
                                      at.stride, p->b.offsets, p->n_seqs, tg_trunk_attn(t, l));
        tg_trunk_mix(t, l, a, N);
    }
}

static const float *last_rows(const tg_pass *p) {
    return p->layers[p->m->arch.n_layers - 1].out;
}

/* Only the rows that carry an action pass the final norm and the heads. */
static void run_heads(tg_pass *p) {
    const tg_trunk *t = &p->trunk;
    const tg_pass_buffers *b = &p->b;
    int A = p->n_actions, C = t->arch->width;
    if (!A) return;
    t->be->ops->gather_rows(t->be, b->rows, last_rows(p), b->act_row, A, C);
    tg_trunk_final(t, b->hidden, b->mean, b->rstd, b->rows, A);
    if (p->has_lm)
        t->be->ops->head_forward(
            t->be, b->logp, b->entropy, b->lse, b->hidden, t->top.w[TG_ROLE_HEAD_W], b->act_token,
            A, C, t->arch->vocab_size,
            (tg_head_extra){.bias = t->top.w[TG_ROLE_HEAD_B], .softcap = t->arch->logit_softcap});
    if (p->has_value)
        t->be->ops->matmul(t->be, b->value, b->hidden, t->top.w[TG_ROLE_VALUE_W], A, 1, C, false,
                           true, false);
}

tg_status tg_pass_forward(tg_pass *p, const tg_batch *batch, tg_pass_out out, tg_error *err) {
    tg_status st = check_sizes(p, batch, err);
    if (st == TG_OK) st = check_sequences(p, batch, err);
    if (st == TG_OK) st = check_actions(p, batch, err);
    if (st != TG_OK) return st;
    if (out.value && !p->m->arch.value_head)
        return tg_fail(err, TG_BUG, "pass: values asked of a model without a value head");
    p->n_tokens = batch->n_tokens;
    p->n_seqs = batch->n_seqs;
    p->n_actions = batch->n_actions;
    p->has_lm = out.logp || out.entropy;
    p->has_value = out.value != NULL;
    upload_batch(p, batch);
    run_trunk(p);
    run_heads(p);
    size_t bytes = (size_t)p->n_actions * sizeof(float);
    if (out.logp && bytes) tg_backend_download(p->m->be, out.logp, p->b.logp, bytes);
    if (out.entropy && bytes) tg_backend_download(p->m->be, out.entropy, p->b.entropy, bytes);
    if (out.value && bytes) tg_backend_download(p->m->be, out.value, p->b.value, bytes);
    return TG_OK;
}

tg_status tg_pass_logits(tg_pass *p, const int32_t *rows, int n, float *logits, tg_error *err) {
    if (!p->n_tokens) return tg_fail(err, TG_BUG, "pass: logits asked before a forward");
    for (int i = 0; i < n; i++)
        if (rows[i] < 0 || rows[i] >= p->n_tokens)
            return tg_fail(err, TG_DATA, "logits: row %d of %d", rows[i], p->n_tokens);
    const tg_trunk *t = &p->trunk;
    const tg_pass_buffers *b = &p->b;
    size_t V = (size_t)t->arch->vocab_size;
    int piece = TG_MIN(TG_PASS_LOGIT_ROWS, p->caps.tokens);
    for (int at = 0; at < n; at += piece) {
        int k = TG_MIN(n - at, piece);
        tg_backend_upload(t->be, b->logit_rows, rows + at, (size_t)k * sizeof(int32_t));
        t->be->ops->gather_rows(t->be, b->logit_x, last_rows(p), b->logit_rows, k, t->arch->width);
        tg_trunk_final(t, b->logit_h, b->logit_mean, b->logit_rstd, b->logit_x, k);
        tg_trunk_logits(t, b->logits, b->logit_h, k);
        tg_backend_download(t->be, logits + (size_t)at * V, b->logits,
                            (size_t)k * V * sizeof(float));
    }
    return TG_OK;
}
