/* The matrices that every token meets, by role. */
#include "common/nn/packed.h"

#include "common/base/check.h"

typedef struct matrix {
    tg_param_role role;
    int out, in;
} matrix;

enum { MOST = 6 };

/* Those of a layer; returns their number. */
static int layer_matrices(const tg_arch *a, matrix m[MOST]) {
    const int C = a->width, HD = tg_trunk_attn_width(a);
    int n = 0;
    m[n++] = (matrix){TG_ROLE_QKV_W, tg_trunk_qkv_width(a), C};
    m[n++] = (matrix){TG_ROLE_ATTN_OUT_W, C, HD};
    m[n++] = (matrix){TG_ROLE_UP_W, tg_trunk_up_width(a), C};
    m[n++] = (matrix){TG_ROLE_DOWN_W, C, a->mlp_width};
    if (a->kind != TG_KIND_SEQ2SEQ) return n;
    m[n++] = (matrix){TG_ROLE_CROSS_Q_W, HD, C};
    m[n++] = (matrix){TG_ROLE_CROSS_OUT_W, C, HD};
    return n;
}

static matrix head_matrix(const tg_arch *a) {
    return (matrix){TG_ROLE_HEAD_W, a->vocab_size, tg_trunk_embed_width(a)};
}

void tg_carve_packed(tg_carve *c, const tg_arch *arch, tg_trunk *t, tg_weight_form form) {
    if (form == TG_WEIGHT_PLAIN) return;
    matrix m[MOST], head = head_matrix(arch);
    const int n = layer_matrices(arch, m);
    t->form = form;
    for (int l = 0; l < arch->n_layers; l++)
        for (int i = 0; i < n; i++) {
            void *at = tg_carve_bytes(c, tg_weight_bytes(m[i].out, m[i].in, form));
            if (t->layers) t->layers[l].packed[m[i].role] = at;
        }
    t->top.packed[head.role] = tg_carve_bytes(c, tg_weight_bytes(head.out, head.in, form));
}

static void fill(const tg_trunk *t, const tg_tensors *p, const matrix *m, bool out_in) {
    t->be->ops->weight_pack(t->be, p->packed[m->role], p->w[m->role], m->out, m->in, out_in,
                            t->form);
}

void tg_packed_fill(const tg_trunk *t) {
    if (t->form == TG_WEIGHT_PLAIN) return;
    matrix m[MOST], head = head_matrix(&t->arch);
    const int n = layer_matrices(&t->arch, m);
    for (int l = 0; l < t->arch.n_layers; l++)
        for (int i = 0; i < n; i++) fill(t, &t->layers[l], &m[i], t->arch.out_in);
    fill(t, &t->top, &head, true);
}

/* The tied embedding of a causal model is then read from the packed matrix too. */
static bool embeds_packed(const tg_arch *a) {
    return a->tied_head && a->kind == TG_KIND_CAUSAL;
}

void tg_packed_half(tg_trunk *t, void *half) {
    tg_carve c = {.base = half};
    tg_carve_packed(&c, &t->arch, t, TG_WEIGHT_PACKED_BF16);
    if (embeds_packed(&t->arch)) t->top.packed[TG_ROLE_TOKEN_EMBED] = t->top.packed[TG_ROLE_HEAD_W];
}

static size_t half_bytes(const tg_arch *arch) {
    tg_carve c = {0};
    tg_trunk t = {0};
    tg_carve_packed(&c, arch, &t, TG_WEIGHT_PACKED_BF16);
    return c.used;
}

static size_t floats_of(const matrix *m) {
    return (size_t)m->out * (size_t)m->in;
}

size_t tg_model_half_bytes(const tg_arch *arch) {
    matrix m[MOST], head = head_matrix(arch);
    const int n = layer_matrices(arch, m);
    size_t gone = arch->tied_head && !embeds_packed(arch) ? 0 : floats_of(&head);
    for (int i = 0; i < n; i++) gone += (size_t)arch->n_layers * floats_of(&m[i]);
    return tg_model_bytes(arch, 0) - gone * sizeof(float) + half_bytes(arch);
}

static void give_back(const tg_trunk *t, const tg_tensors *p, const matrix *m) {
    tg_backend_release(t->be, p->w[m->role], floats_of(m) * sizeof(float));
}

tg_status tg_model_halve(tg_model *model, tg_error *err) {
    tg_trunk t;
    if (model->grad || model->half || model->arch.kind == TG_KIND_ENCODER)
        return tg_fail(err, TG_BUG, "model: cannot be halved");
    tg_status st = tg_trunk_init(&t, model, TG_STACK_MAIN, err);
    if (st == TG_OK && !(model->half = tg_backend_alloc(model->be, half_bytes(&t.arch), err)))
        st = TG_NOMEM;
    if (st == TG_OK) {
        matrix m[MOST], head = head_matrix(&t.arch);
        const int n = layer_matrices(&t.arch, m);
        tg_packed_half(&t, model->half);
        tg_packed_fill(&t);
        for (int l = 0; l < t.arch.n_layers; l++)
            for (int i = 0; i < n; i++) give_back(&t, &t.layers[l], &m[i]);
        if (!t.arch.tied_head || embeds_packed(&t.arch)) give_back(&t, &t.top, &head);
        tg_model_changed(model);
    }
    tg_trunk_fini(&t);
    return st;
}
