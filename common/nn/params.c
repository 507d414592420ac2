/* Expanding a family's tensor rows into the table of one architecture. */
#include "common/nn/params.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/family/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16 };

static int dim_of(const tg_arch *a, tg_dim dim) {
    switch (dim) {
    case TG_DIM_NONE: break;
    case TG_DIM_VOCAB: return a->vocab_size;
    case TG_DIM_POSITIONS: return a->max_positions + a->pos_offset;
    case TG_DIM_WIDTH: return a->width;
    case TG_DIM_QKV: return (a->n_heads + 2 * a->n_kv_heads) * a->head_dim;
    case TG_DIM_ATTN: return a->n_heads * a->head_dim;
    case TG_DIM_KV: return a->n_kv_heads * a->head_dim;
    case TG_DIM_HEAD: return a->head_dim;
    case TG_DIM_MLP: return a->mlp_width;
    case TG_DIM_HEADS: return a->n_heads;
    case TG_DIM_BUCKETS: return a->rel_buckets;
    case TG_DIM_ONE: return 1;
    case TG_DIM_EMBED: return a->narrow_embed ? a->embed_width : a->width;
    case TG_DIM_TYPES: return a->n_types;
    case TG_DIM_LABELS: return a->n_labels;
    }
    TG_UNREACHABLE();
}

static bool is_layered(const tg_family_tensor *t) {
    return t->name && strstr(t->name, "%d");
}

static tg_param *push(tg_params *p, const char *name, int layer, int inner, tg_param_role role,
                      tg_init init) {
    TG_ASSERT(strlen(name) + 12 < TG_PARAM_NAME_MAX);
    tg_param *param = &p->list[p->n++];
    const char *number = strstr(name, "%d"), *second = number ? strstr(number + 2, "%d") : NULL;
    if (second) /* group, and which of its layers */
        snprintf(param->name, sizeof param->name, "%.*s%d%.*s%d%s", (int)(number - name), name,
                 layer / inner, (int)(second - number) - 2, number + 2, layer % inner, second + 2);
    else if (number)
        snprintf(param->name, sizeof param->name, "%.*s%d%s", (int)(number - name), name, layer,
                 number + 2);
    else
        snprintf(param->name, sizeof param->name, "%s", name);
    param->role = role;
    param->init = init;
    param->layer = number ? layer : -1;
    return param;
}

/* Keys continue queries, values keys, the gated half its gate: one product makes them all. */
static bool continues(tg_param_role role) {
    return role == TG_ROLE_K_W || role == TG_ROLE_V_W || role == TG_ROLE_K_B ||
           role == TG_ROLE_V_B || role == TG_ROLE_GATED_W || role == TG_ROLE_GATED_B ||
           role == TG_ROLE_CROSS_V_W || role == TG_ROLE_CROSS_V_B;
}

/* Gradients lie close together: nothing of a tensor without one is between them. */
static void place_grad(tg_params *p, tg_param *param, bool frozen) {
    param->grad_offset = TG_PARAM_FROZEN;
    if (frozen) return;
    param->grad_offset =
        continues(param->role) ? param[-1].grad_offset + param[-1].count : p->grad_total;
    p->grad_total = (param->grad_offset + param->count + ALIGN - 1) / ALIGN * ALIGN;
}

static void place(tg_params *p, tg_param *param) {
    param->count = 1;
    for (int i = 0; i < param->ndim; i++) param->count *= (size_t)param->shape[i];
    param->offset = continues(param->role) ? param[-1].offset + param[-1].count : p->total;
    p->total = (param->offset + param->count + ALIGN - 1) / ALIGN * ALIGN;
    place_grad(p, param, param->fixed);
}

static bool is_set(const tg_arch *arch, size_t field) {
    return *(const bool *)(const void *)((const char *)arch + field);
}

static void add_row(tg_params *p, const tg_arch *arch, const tg_family_tensor *t, int layer) {
    if (t->role == TG_ROLE_HEAD_W && arch->tied_head) return;
    if ((t->role == TG_ROLE_HEAD_W || t->role == TG_ROLE_HEAD_B) && arch->labels) return;
    if (t->when && !is_set(arch, t->when)) return;
    if (t->unless && is_set(arch, t->unless)) return;
    tg_param *param = push(p, t->name, layer, TG_MAX(arch->inner_group, 1), t->role, t->init);
    param->stack = t->stack;
    param->fixed = t->fixed;
    for (; param->ndim < 4 && t->dims[param->ndim] != TG_DIM_NONE; param->ndim++)
        param->shape[param->ndim] = dim_of(arch, t->dims[param->ndim]);
    place(p, param);
}

/* Rows that repeat per layer are repeated as a group: layer 0 whole, then layer 1. */
static void add_rows(tg_params *p, const tg_arch *arch, const tg_family_tensor *t) {
    const tg_arch encoder = tg_arch_encoder(arch);
    while (t->name) {
        const tg_arch *of = t->stack == TG_STACK_ENCODER ? &encoder : arch;
        if (!is_layered(t)) {
            add_row(p, of, t++, -1);
            continue;
        }
        const tg_family_tensor *end = t;
        while (is_layered(end) && end->stack == t->stack) end++;
        int layers = of->n_groups ? of->n_groups : of->n_layers;
        for (int layer = 0; layer < layers; layer++)
            for (const tg_family_tensor *row = t; row < end; row++) add_row(p, of, row, layer);
        t = end;
    }
}

static void add_head(tg_params *p, const char *name, tg_param_role role, tg_init init, int rows,
                     int columns) {
    tg_param *v = push(p, name, -1, 1, role, init);
    v->ndim = 2;
    v->shape[0] = rows;
    v->shape[1] = columns;
    place(p, v);
}

static int compare_names(const void *a, const void *b, void *list) {
    const tg_param *params = list;
    return strcmp(params[*(const uint32_t *)a].name, params[*(const uint32_t *)b].name);
}

static tg_status sort_names(tg_params *p, tg_error *err) {
    p->by_name = tg_alloc_array(p->n, sizeof *p->by_name);
    if (!p->by_name) return tg_fail_nomem(err, p->n * sizeof *p->by_name);
    for (size_t i = 0; i < p->n; i++) p->by_name[i] = (uint32_t)i;
    qsort_r(p->by_name, p->n, sizeof *p->by_name, compare_names, p->list);
    return TG_OK;
}

tg_status tg_params_init(tg_params *p, const tg_arch *arch, tg_error *err) {
    *p = (tg_params){0};
    tg_status st = tg_arch_check(arch, err);
    if (st != TG_OK) return st;
    const tg_family *f = tg_family_find(arch->family);
    size_t max = 2; /* heads that belong to no family */
    for (const tg_family_tensor *t = f->tensors; t->name; t++)
        max += is_layered(t) ? (size_t)TG_MAX(arch->n_layers, arch->enc_layers) : 1;
    p->list = tg_alloc_array(max, sizeof *p->list);
    if (!p->list) return tg_fail_nomem(err, max * sizeof *p->list);
    add_rows(p, arch, f->tensors);
    if (arch->labels && arch->kind == TG_KIND_CAUSAL)
        add_head(p, TG_CAUSAL_LABELS, TG_ROLE_LABELS_W, TG_INIT_NORMAL, arch->n_labels,
                 tg_arch_judged_width(arch));
    if (arch->value_head)
        add_head(p, "value_head.weight", TG_ROLE_VALUE_W, TG_INIT_LINEAR, 1, arch->width);
    TG_ASSERT(p->n <= max);
    st = sort_names(p, err);
    if (st != TG_OK) tg_params_fini(p);
    return st;
}

static bool is_frozen(const tg_param *p, const tg_arch *arch, int unfrozen) {
    if (p->stack == TG_STACK_ENCODER) return true;
    switch (p->role) {
    case TG_ROLE_TOKEN_EMBED:
    case TG_ROLE_POS_EMBED:
    case TG_ROLE_TYPE_EMBED:
    case TG_ROLE_EMBED_IN_W:
    case TG_ROLE_EMBED_IN_B:
    case TG_ROLE_REL_BIAS:
    case TG_ROLE_EMBED_NORM_W:
    case TG_ROLE_EMBED_NORM_B: return true;
    case TG_ROLE_HEAD_IN_W:
    case TG_ROLE_HEAD_IN_B:
    case TG_ROLE_HEAD_W:
    case TG_ROLE_HEAD_B: return unfrozen == 0;
    default: return p->layer >= 0 && p->layer < arch->n_layers - unfrozen;
    }
}

void tg_params_freeze(tg_params *p, const tg_arch *arch, int unfrozen) {
    p->grad_total = 0;
    for (size_t i = 0; i < p->n; i++) {
        tg_param *param = &p->list[i];
        place_grad(p, param, param->fixed || is_frozen(param, arch, unfrozen));
    }
}

void tg_params_fini(tg_params *p) {
    tg_free(p->list);
    tg_free(p->by_name);
    *p = (tg_params){0};
}

const tg_param *tg_params_find(const tg_params *p, const char *name) {
    size_t low = 0, high = p->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const tg_param *param = &p->list[p->by_name[mid]];
        const int c = strcmp(param->name, name);
        if (!c) return param;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const tg_param *tg_params_role(const tg_params *p, tg_param_role role, int layer) {
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].role == role && p->list[i].layer == layer &&
            p->list[i].stack == TG_STACK_MAIN)
            return &p->list[i];
    return NULL;
}
