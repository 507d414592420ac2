/* Counting parameters by what they are for. */
#include "common/nn/model_summary.h"

#include "common/base/check.h"

#include <stdio.h>

typedef enum group { EMBEDDINGS, ATTENTION, MLP, NORMS, HEAD, LABELS, VALUE_HEAD, N_GROUPS } group;

static const char *const group_names[] = {"embeddings",  "attention", "MLP",       "norms",
                                          "output head", "labels",    "value head"};

/* Roles are listed in the order of the computation; a bias follows its weight. */
static group group_of(tg_param_role role) {
    switch (role) {
    case TG_ROLE_TOKEN_EMBED:
    case TG_ROLE_POS_EMBED:
    case TG_ROLE_TYPE_EMBED:
    case TG_ROLE_EMBED_IN_W:
    case TG_ROLE_EMBED_IN_B: return EMBEDDINGS;
    case TG_ROLE_UP_W:
    case TG_ROLE_UP_B:
    case TG_ROLE_GATED_W:
    case TG_ROLE_GATED_B:
    case TG_ROLE_DOWN_W:
    case TG_ROLE_DOWN_B: return MLP;
    case TG_ROLE_NORM1_W:
    case TG_ROLE_NORM1_B:
    case TG_ROLE_NORM2_W:
    case TG_ROLE_NORM2_B:
    case TG_ROLE_Q_NORM_W:
    case TG_ROLE_K_NORM_W:
    case TG_ROLE_POST1_W:
    case TG_ROLE_POST1_B:
    case TG_ROLE_POST2_W:
    case TG_ROLE_POST2_B:
    case TG_ROLE_CROSS_NORM_W:
    case TG_ROLE_CROSS_NORM_B:
    case TG_ROLE_EMBED_NORM_W:
    case TG_ROLE_EMBED_NORM_B:
    case TG_ROLE_FINAL_W:
    case TG_ROLE_FINAL_B: return NORMS;
    case TG_ROLE_HEAD_IN_W:
    case TG_ROLE_HEAD_IN_B:
    case TG_ROLE_HEAD_W:
    case TG_ROLE_HEAD_B: return HEAD;
    case TG_ROLE_POOL_W:
    case TG_ROLE_POOL_B:
    case TG_ROLE_LABELS_W:
    case TG_ROLE_LABELS_B: return LABELS;
    case TG_ROLE_VALUE_W: return VALUE_HEAD;
    default: return ATTENTION;
    }
}

static void put_bytes(tg_buf *out, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++) bytes /= 1000;
    tg_buf_printf(out, unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

/* 12345678 as 12,345,678, right-aligned in 16 columns. */
static void put_count(tg_buf *out, size_t n) {
    char digits[32], text[48];
    int len = snprintf(digits, sizeof digits, "%zu", n), at = 0;
    for (int i = 0; i < len; i++) {
        text[at++] = digits[i];
        if ((len - i - 1) % 3 == 0 && i + 1 < len) text[at++] = ',';
    }
    text[at] = '\0';
    tg_buf_printf(out, "%16s", text);
}

static void put_types(tg_buf *out, const tg_params *params, const tg_weights *w) {
    size_t counts[TG_BOOL8 + 1] = {0};
    for (size_t i = 0; i < params->n; i++)
        if (w->found[i] && params->list[i].role != TG_ROLE_VALUE_W)
            counts[w->found[i]->dtype] += params->list[i].count;
    const char *separator = "";
    for (int d = 0; d <= TG_BOOL8; d++) {
        if (!counts[d]) continue;
        tg_buf_printf(out, "%s%s", separator, tg_dtype_name((tg_dtype)d));
        separator = " and ";
    }
}

static void put_groups(tg_buf *out, const tg_params *params, size_t total) {
    size_t tensors[N_GROUPS] = {0}, counts[N_GROUPS] = {0};
    for (size_t i = 0; i < params->n; i++) {
        group g = group_of(params->list[i].role);
        tensors[g]++;
        counts[g] += params->list[i].count;
    }
    tg_buf_printf(out, "\n  %-14s%10s%16s%10s\n", "part", "tensors", "parameters", "share");
    for (int g = 0; g < N_GROUPS; g++) {
        if (!tensors[g]) continue;
        tg_buf_printf(out, "  %-14s%10zu", group_names[g], tensors[g]);
        put_count(out, counts[g]);
        tg_buf_printf(out, "%9.2f%%\n", 100.0 * (double)counts[g] / (double)total);
    }
}

void tg_model_summary(tg_buf *out, const tg_arch *a, const tg_params *params, const tg_weights *w) {
    size_t total = 0, bytes = 0;
    for (size_t i = 0; i < params->n; i++) {
        total += params->list[i].count;
        if (w->found[i]) bytes += w->found[i]->bytes;
    }
    tg_buf_printf(out, "  family       %s\n  parameters  ", a->family);
    tg_buf_printf(out, " %zu (%.2f M) in %zu tensors\n", total, (double)total / 1e6, params->n);
    tg_buf_printf(out, "  layers       %d of width %d, MLP %d, %d heads of %d", a->n_layers,
                  a->width, a->mlp_width, a->n_heads, a->head_dim);
    if (a->n_kv_heads != a->n_heads) tg_buf_printf(out, " (%d for keys and values)", a->n_kv_heads);
    if (a->kind == TG_KIND_SEQ2SEQ)
        tg_buf_printf(out, "\n  encoder      %d layers, MLP %d, %d heads of %d", a->enc_layers,
                      a->enc_mlp_width, a->enc_heads, a->enc_head_dim);
    tg_buf_printf(out, "\n  vocabulary   %d, positions %d\n  stored as    ", a->vocab_size,
                  a->max_positions);
    put_types(out, params, w);
    tg_buf_puts(out, ", ");
    put_bytes(out, (double)bytes);
    tg_buf_printf(out, " in %zu file%s\n", w->set.n, w->set.n == 1 ? "" : "s");
    if (a->kind != TG_KIND_ENCODER && !a->labels)
        tg_buf_printf(out, "  output head  %s\n",
                      a->tied_head ? "tied to the embeddings" : "its own");
    if (a->labels) tg_buf_printf(out, "  labels       %d\n", a->n_labels);
    put_groups(out, params, total);
}
