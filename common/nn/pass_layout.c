/* The memory of a pass. All device memory is one block, laid out by carve_pass(), which also answers tg_pass_bytes: plan and
 * reality are the same code. */
#include "common/nn/pass_state.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

/* Logits that are kept for backward: 192 MB. Beyond that they are made again, a panel at a time. */
enum { KEPT_FLOATS = 48 << 20 };

/* One layer's own buffers, but for x and out; the scratch ones are shared. Behind attention it has M rows, before it N. */
static void carve_layer(tg_carve *c, const tg_arch *arch, size_t N, size_t M, size_t P,
                        tg_acts *a) {
    size_t C = (size_t)arch->width, H = (size_t)arch->n_heads;
    size_t HD = (size_t)tg_trunk_attn_width(arch), Q = (size_t)tg_trunk_qkv_width(arch);
    a->mean1 = tg_carve_f32(c, N, 1);
    a->rstd1 = tg_carve_f32(c, N, 1);
    a->qkv = a->raw = tg_carve_f32(c, N, Q);
    if (arch->qk_norm) {
        a->raw = tg_carve_f32(c, N, Q);
        a->rstd_q = tg_carve_f32(c, N, H);
        a->rstd_k = tg_carve_f32(c, N, (size_t)arch->n_kv_heads);
    }
    if (arch->post_norms) {
        float **each[] = {&a->mean3, &a->rstd3, &a->mean4, &a->rstd4};
        for (size_t i = 0; i < TG_COUNT_OF(each); i++) *each[i] = tg_carve_f32(c, M, 1);
    }
    if (tg_trunk_keeps_post(arch)) {
        a->post1 = tg_carve_f32(c, M, C);
        a->post2 = tg_carve_f32(c, M, C);
    }
    a->att = tg_carve_f32(c, N, HD);
    a->lse = tg_carve_f32(c, N, H);
    if (!arch->parallel) a->mid = a->cmid = tg_carve_f32(c, M, C);
    if (arch->kind == TG_KIND_SEQ2SEQ) {
        a->cmean = tg_carve_f32(c, M, 1);
        a->crstd = tg_carve_f32(c, M, 1);
        a->cq = tg_carve_f32(c, M, HD);
        a->catt = tg_carve_f32(c, M, HD);
        a->clse = tg_carve_f32(c, M, H);
        a->cmid = tg_carve_f32(c, M, C);
        a->ckv = tg_carve_f32(c, P, 2 * (size_t)tg_trunk_kv_width(arch));
        if (arch->norm_after) a->cpost = tg_carve_f32(c, M, C);
    }
    a->mean2 = tg_carve_f32(c, M, 1);
    a->rstd2 = tg_carve_f32(c, M, 1);
    a->up = tg_carve_f32(c, M, (size_t)tg_trunk_up_width(arch));
}

/* What of a model is trained, and how; from its flags. */
typedef struct training {
    bool on, recompute, embed;
    int unfrozen; /* layers of the main stack, where not all is trained */
} training;

static training training_of(unsigned model_flags, unsigned mode) {
    unsigned unfrozen = model_flags >> TG_MODEL_UNFROZEN_SHIFT;
    return (training){.on = mode & TG_PASS_TRAIN,
                      .recompute = mode == TG_PASS_RECOMPUTE,
                      .embed = (mode & TG_PASS_TRAIN) && !unfrozen,
                      .unfrozen = (int)unfrozen - 1};
}

static int lowest_of(const training *t, const tg_arch *arch, bool is_encoder) {
    if (!t->on) return arch->n_layers;
    if (t->embed) return 0;
    return is_encoder ? arch->n_layers : TG_MAX(0, arch->n_layers - t->unfrozen);
}

/* Floats that a stack's rows take of a scratch buffer of rows so wide. */
static size_t wide_floats(const tg_arch *arch, size_t N) {
    return N * (size_t)TG_MAX(tg_trunk_qkv_width(arch), tg_trunk_up_width(arch));
}

static void carve_train(tg_carve *c, const tg_arch *arch, const tg_arch *enc, tg_pass_caps caps,
                        tg_pass_buffers *b) {
    size_t N = (size_t)caps.tokens, A = (size_t)caps.actions, C = (size_t)arch->width;
    size_t P = enc ? (size_t)caps.src : 0, rows = TG_MAX(N, P), kv = 0;
    size_t most = TG_MAX(TG_MAX(rows, A), (size_t)caps.seqs);
    int narrow = TG_MAX(arch->width, tg_trunk_attn_width(arch));
    narrow = TG_MAX(narrow, tg_trunk_embed_width(arch));
    size_t wide = wide_floats(arch, N), act = N * (size_t)arch->mlp_width;
    if (enc) {
        narrow = TG_MAX(narrow, tg_trunk_attn_width(enc));
        wide = TG_MAX(wide, wide_floats(enc, P));
        act = TG_MAX(act, P * (size_t)enc->mlp_width);
        kv = P * 2 * (size_t)tg_trunk_kv_width(arch);
        b->dstates = tg_carve_f32(c, P, C);
    }
    b->dlogp = tg_carve_f32(c, A, 1);
    b->dentropy = tg_carve_f32(c, A, 1);
    b->dvalue = tg_carve_f32(c, A, 1);
    b->dx = tg_carve_f32(c, rows, C);
    b->d1 = tg_carve_f32(c, most, (size_t)narrow);
    b->d2 = tg_carve_f32(c, most, (size_t)narrow);
    b->dy = arch->parallel || tg_trunk_keeps_post(arch) ? tg_carve_f32(c, rows, C) : NULL;
    b->wide = b->act = tg_carve_f32(c, TG_MAX(wide, kv), 1);
    if (arch->gated) b->act = tg_carve_f32(c, act, 1);
}

/* Positions that that many rows can have; texts with angles of their own do not count. */
static int positions_of(const tg_arch *arch, int rows) {
    return TG_MIN(rows, tg_arch_trainable(arch));
}

/* Layers of which nothing is kept. */
static void carve_untrained(tg_carve *c, const tg_arch *arch, size_t N, size_t P, tg_acts *a) {
    tg_carve_shared_acts(c, arch, N, a);
    if (arch->kind == TG_KIND_SEQ2SEQ)
        a->ckv = tg_carve_f32(c, P, 2 * (size_t)tg_trunk_kv_width(arch));
}

/* The layers from the lowest that is trained on; returns the acts for those below it, which use its buffers before it does. `last`: rows of
 * the last layer behind its attention, unless others use its buffers too. */
static tg_acts carve_trained(tg_carve *c, const tg_arch *arch, size_t N, size_t last, size_t P,
                             bool recompute, const tg_acts *scratch, tg_pass_stack *s) {
    const size_t C = (size_t)arch->width;
    tg_acts work = *scratch, below = {0};
    if (recompute) carve_layer(c, arch, N, N, P, &work);
    float *x = tg_carve_f32(c, N, C);
    for (int l = s->lowest; l < arch->n_layers; l++) {
        const size_t M = l > s->lowest && l == arch->n_layers - 1 ? last : N;
        tg_acts a = work;
        if (!recompute) carve_layer(c, arch, N, M, P, &a);
        if (l == s->lowest) {
            below = a;
            below.x = below.out = x;
            if (arch->parallel) below.mid = below.cmid = x;
        }
        a.x = x;
        x = a.out = tg_carve_f32(c, M, C);
        if (arch->parallel) a.mid = a.cmid = a.out;
        if (s->layers) s->layers[l] = a;
    }
    return below;
}

/* s->layers may be NULL: only the size is wanted. */
static void carve_stack(tg_carve *c, const tg_arch *arch, int rows, tg_pass_caps caps,
                        const training *train, const tg_pass_buffers *b, tg_pass_stack *s) {
    size_t N = (size_t)rows, P = (size_t)caps.src;
    s->tokens = tg_carve_i32(c, N);
    s->positions = tg_carve_i32(c, N);
    s->offsets = tg_carve_i32(c, (size_t)caps.seqs + 1);
    tg_carve_tables(c, arch, positions_of(arch, rows), rows, train->embed, &s->trunk);
    size_t E = (size_t)tg_trunk_embed_width(arch);
    if (arch->types) s->embed.types = tg_carve_i32(c, N);
    if (arch->embed_norm || arch->narrow_embed) {
        s->embed.raw = tg_carve_f32(c, N, E);
        s->embed.mean = tg_carve_f32(c, N, 1);
        s->embed.rstd = tg_carve_f32(c, N, 1);
    }
    if (arch->embed_norm && arch->narrow_embed) s->embed.narrow = tg_carve_f32(c, N, E);
    const tg_acts scratch = {.norm = b->d1, .act = b->act};
    const bool cut = caps.actions_only && arch->kind == TG_KIND_CAUSAL;
    const size_t last = cut ? TG_MIN(N, (size_t)caps.actions) : N;
    tg_acts below = {0};
    if (s->lowest < arch->n_layers)
        below = carve_trained(c, arch, N, last, P, train->recompute, &scratch, s);
    else
        carve_untrained(c, arch, N, P, &below);
    for (int l = 0; s->layers && l < s->lowest; l++) s->layers[l] = below;
}

static void carve_labels(tg_carve *c, const tg_arch *arch, size_t S, bool train,
                         tg_pass_buffers *b) {
    size_t C = (size_t)arch->width, L = (size_t)arch->n_labels;
    b->first = tg_carve_f32(c, S, C);
    b->pool = tg_carve_f32(c, S, C);
    b->pooled = b->judged = tg_carve_f32(c, S, C);
    if (tg_arch_judges_narrow(arch)) b->judged = tg_carve_f32(c, S, (size_t)arch->embed_width);
    b->labels = tg_carve_f32(c, S, L);
    b->label_rows = tg_carve_i32(c, S);
    b->label_mean = tg_carve_f32(c, S, 1);
    b->label_rstd = tg_carve_f32(c, S, 1);
    if (train) b->dlabels = tg_carve_f32(c, S, L);
}

bool tg_pass_keeps(const tg_arch *arch, tg_pass_caps caps) {
    const size_t most = (size_t)TG_MAX(caps.most_actions, caps.actions);
    return !caps.values && arch->kind != TG_KIND_ENCODER &&
           most * (size_t)arch->vocab_size <= KEPT_FLOATS;
}

/* The actions, and what becomes of their rows from the last layer to the heads. */
static void carve_actions(tg_carve *c, const tg_arch *arch, tg_pass_caps caps,
                          const training *train, tg_pass_buffers *b) {
    size_t N = (size_t)caps.tokens, A = (size_t)caps.actions, C = (size_t)arch->width;
    b->act_row = tg_carve_i32(c, A);
    b->act_token = tg_carve_i32(c, A);
    if (caps.masked)
        b->mask = (uint32_t *)tg_carve_i32(c, A * (size_t)tg_mask_words(arch->vocab_size));
    b->rows = tg_carve_f32(c, A, C);
    if (arch->kind != TG_KIND_SEQ2SEQ) {
        b->cut_x = tg_carve_f32(c, TG_MIN(A, N), C);
        b->cut_att = tg_carve_f32(c, TG_MIN(A, N), (size_t)tg_trunk_attn_width(arch));
    }
    b->hidden = b->lm = tg_carve_f32(c, A, C);
    if (tg_trunk_has_lm(arch)) b->lm = tg_carve_f32(c, A, (size_t)tg_trunk_embed_width(arch));
    float **per_action[] = {&b->mean, &b->rstd, &b->logp, &b->entropy, &b->lse, &b->value};
    for (size_t i = 0; i < TG_COUNT_OF(per_action); i++) *per_action[i] = tg_carve_f32(c, A, 1);
    b->kept = NULL;
    if (train->on && !train->recompute && tg_pass_keeps(arch, caps))
        b->kept = tg_carve_f32(c, A * (size_t)arch->vocab_size, 1);
}

/* The few rows at a time by which states and logits are read. */
static void carve_reading(tg_carve *c, const tg_arch *arch, tg_pass_caps caps, tg_pass_buffers *b) {
    size_t rows = (size_t)TG_MAX(caps.tokens, caps.src), C = (size_t)arch->width;
    size_t n = TG_MIN((size_t)TG_PASS_LOGIT_ROWS, rows);
    b->logit_rows = tg_carve_i32(c, n);
    b->logit_x = tg_carve_f32(c, n, C);
    b->logit_h = b->logit_lm = tg_carve_f32(c, n, C);
    if (arch->narrow_embed) b->logit_lm = tg_carve_f32(c, n, (size_t)arch->embed_width);
    b->logit_mean = tg_carve_f32(c, n, 1);
    b->logit_rstd = tg_carve_f32(c, n, 1);
    if (arch->kind != TG_KIND_ENCODER) b->logits = tg_carve_f32(c, n, (size_t)arch->vocab_size);
}

static void carve_pass(tg_carve *c, const tg_arch *arch, tg_pass_caps caps, const training *train,
                       tg_pass_buffers *b, tg_pass_stack *main, tg_pass_stack *enc) {
    const tg_arch encoder = tg_arch_encoder(arch);
    const bool seq2seq = arch->kind == TG_KIND_SEQ2SEQ;
    const size_t P = (size_t)caps.src, C = (size_t)arch->width;
    carve_actions(c, arch, caps, train, b);
    carve_reading(c, arch, caps, b);
    if (arch->labels) carve_labels(c, arch, (size_t)caps.seqs, train->on, b);
    main->lowest = lowest_of(train, arch, false);
    enc->lowest = lowest_of(train, &encoder, true);
    if (train->on) carve_train(c, arch, seq2seq ? &encoder : NULL, caps, b);
    carve_stack(c, arch, caps.tokens, caps, train, b, main);
    if (!seq2seq) return;
    carve_stack(c, &encoder, caps.src, caps, train, b, enc);
    b->states = tg_carve_f32(c, P, C);
    b->smean = tg_carve_f32(c, P, 1);
    b->srstd = tg_carve_f32(c, P, 1);
}

size_t tg_pass_bytes(const tg_arch *arch, unsigned model_flags, tg_pass_caps caps, unsigned mode) {
    const training train = training_of(model_flags, mode);
    tg_carve c = {0};
    tg_pass_buffers b = {0};
    tg_pass_stack main = {0}, enc = {0};
    carve_pass(&c, arch, caps, &train, &b, &main, &enc);
    return c.used;
}

size_t tg_pass_workspace(const tg_arch *arch, unsigned model_flags, tg_pass_caps caps,
                         unsigned mode, int others, int half_others) {
    const tg_scratch_sizes sizes = {.rows = TG_MAX(caps.tokens, caps.src),
                                    .actions = caps.actions,
                                    .others = others,
                                    .half_others = half_others,
                                    .width =
                                        TG_MAX(tg_trunk_qkv_width(arch), tg_trunk_up_width(arch)),
                                    .V = arch->vocab_size,
                                    .kept = mode == TG_PASS_TRAIN && tg_pass_keeps(arch, caps),
                                    .rounded = model_flags & TG_MODEL_ROUNDED};
    size_t most = 0;
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++)
        if ((*b)->scratch_used) most = TG_MAX(most, (*b)->scratch_used(&sizes));
    return most;
}

static tg_status open_stack(tg_pass_stack *s, const tg_model *m, tg_stack stack, tg_error *err) {
    tg_status st = tg_trunk_init(&s->trunk, m, stack, err);
    if (st != TG_OK) return st;
    s->trunk.rounded = m->flags & TG_MODEL_ROUNDED;
    size_t n = (size_t)s->trunk.arch.n_layers;
    s->layers = tg_alloc_array(n, sizeof *s->layers);
    return s->layers ? TG_OK : tg_fail_nomem(err, n * sizeof *s->layers);
}

static void close_stack(tg_pass_stack *s) {
    tg_trunk_fini(&s->trunk);
    tg_free(s->layers);
}

static tg_status open_block(tg_pass *p, unsigned mode, tg_error *err) {
    const tg_arch *arch = &p->m->arch;
    const training train = training_of(p->m->flags, mode);
    size_t bytes = tg_pass_bytes(arch, p->m->flags, p->caps, mode);
    p->block = tg_backend_alloc(p->m->be, bytes, err);
    if (!p->block) return TG_NOMEM;
    p->embed_trained = train.embed;
    tg_carve c = {.base = p->block};
    carve_pass(&c, arch, p->caps, &train, &p->b, &p->main, &p->enc);
    tg_status st = tg_trunk_fill_tables(&p->main.trunk, err);
    if (st == TG_OK && p->seq2seq) st = tg_trunk_fill_tables(&p->enc.trunk, err);
    return st;
}

tg_status tg_pass_create(tg_pass **out, tg_model *m, tg_pass_caps caps, unsigned mode,
                         tg_error *err) {
    *out = NULL;
    const bool seq2seq = m->arch.kind == TG_KIND_SEQ2SEQ;
    TG_ASSERT(caps.tokens > 0 && caps.seqs > 0 && caps.actions >= 0);
    TG_ASSERT(seq2seq ? caps.src > 0 : caps.src == 0);
    if (mode != TG_PASS_SCORE && !m->grad)
        return tg_fail(err, TG_BUG, "pass: training a model opened without gradients");
    tg_pass *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->m = m;
    p->caps = caps;
    p->train = mode & TG_PASS_TRAIN;
    p->recompute = mode == TG_PASS_RECOMPUTE;
    p->seq2seq = seq2seq;
    size_t rows = (size_t)TG_MAX(caps.tokens, caps.src);
    p->host_positions = tg_alloc_array(rows, sizeof *p->host_positions);
    tg_status st = p->host_positions ? TG_OK : tg_fail_nomem(err, rows * sizeof(int32_t));
    if (st == TG_OK) st = open_stack(&p->main, m, TG_STACK_MAIN, err);
    if (st == TG_OK && seq2seq) st = open_stack(&p->enc, m, TG_STACK_ENCODER, err);
    if (st == TG_OK) st = open_block(p, mode, err);
    if (st != TG_OK) tg_pass_destroy(&p);
    *out = p;
    return st;
}

void tg_pass_destroy(tg_pass **pass) {
    tg_pass *p = *pass;
    if (!p) return;
    tg_backend_free(p->m->be, p->block);
    close_stack(&p->main);
    close_stack(&p->enc);
    tg_free(p->host_positions);
    tg_free(p);
    *pass = NULL;
}
