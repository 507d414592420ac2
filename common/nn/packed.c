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
